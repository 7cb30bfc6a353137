"""`feed add`, `feed list`, `feed remove`, `feed poll`, against a local site."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from xmlrpc.client import ServerProxy

import pytest

from tests.support.processes.command_line import Tidings, listens_at, start
from tests.support.servers.site import Response, Site, a_site, rss
from tidings.store.database import sqlite_url
from tidings.store.store import open_store


@pytest.fixture
def site() -> Iterator[Site]:
    with a_site() as made:
        made.pages["/rss.xml"] = Response(200, rss("a", "b", ttl=30))
        yield made


def test_add_says_what_was_found(tidings: Tidings, site: Site) -> None:
    done = tidings("feed", "add", site.url(), "--contact", "mailto:ann@example.org")
    assert re.fullmatch(
        re.escape(site.url()) + r"  News  2 items: 2 new  next poll in 3[0-3] minutes\n", done.stdout
    )
    assert "mailto:ann@example.org" in site.requests[0].headers["user-agent"]
    done = tidings("feed", "list")
    header, row = (line.split() for line in done.stdout.splitlines())
    assert header == ["feed", "title", "next", "poll", "state"]
    assert (row[:2], row[3:]) == ([site.url(), "News"], ["ok"])


def test_add_and_list_say_what_is_left_out_of_items(tidings: Tidings, site: Site) -> None:
    body = rss("a", "b").replace(b"<item>", b"<item><g:price xmlns:g='urn:g'>5</g:price>")
    site.pages["/rss.xml"] = Response(200, body)
    done = tidings("feed", "add", site.url())
    assert done.stderr == "left out of the items: g:price (2)\n"
    assert "ok; left out of the items: g:price (2)" in " ".join(tidings("feed", "list").stdout.split())
    assert json.loads(tidings("feed", "list", "--json").stdout)["left_out"] == "g:price (2)"
    site.pages["/rss.xml"] = Response(200, rss("a", "b", "c"))
    tidings("feed", "add", site.url())
    assert json.loads(tidings("feed", "list", "--json").stdout)["left_out"] is None


def test_for_machines(tidings: Tidings, site: Site) -> None:
    added = json.loads(tidings("feed", "add", site.url(), "--json").stdout)
    assert added["taken"] == {"items": 2, "new": 2, "edited": 0, "refused": 0}
    listed = json.loads(tidings("feed", "list", "--json").stdout)
    assert (listed["url"], listed["title"], listed["failures"]) == (site.url(), "News", 0)
    assert "secret" not in listed and "callback" not in listed


def test_a_password_is_shown_nowhere(tidings: Tidings, site: Site) -> None:
    typed = site.url().replace("//", "//ann:hidden@")
    said = [
        tidings("feed", *words)
        for words in (("add", typed), ("list",), ("list", "--json"), ("remove", typed))
    ]
    assert [done.exit_code for done in said] == [0, 0, 0, 0]
    assert all(site.url() in done.stdout and "hidden" not in done.output for done in said)
    assert site.requests[0].headers["authorization"].startswith("Basic ")


def test_what_cannot_be_read_is_refused(tidings: Tidings, site: Site) -> None:
    done = tidings("feed", "add", site.url("/nothing"))
    assert (done.exit_code, done.stderr) == (
        1,
        f"error: the feed is not available ({site.url('/nothing')}); received status 404\n",
    )
    done = tidings("feed", "add", "news")
    assert (done.exit_code, done.stderr[:42]) == (2, "error: not a web address; received 'news';")
    assert tidings("feed", "list").stderr == "no feeds: tidings feed add URL\n"


def test_poll_once(tidings: Tidings, site: Site) -> None:
    tidings("feed", "add", site.url())
    done = tidings("feed", "poll")
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr.startswith("the next feed is due at 20")
    assert len(site.requests) == 1


def test_a_feed_that_broke_is_shown_with_its_problem(tidings: Tidings, site: Site) -> None:
    tidings("feed", "add", site.url())
    site.pages["/rss.xml"] = Response(500)
    done = tidings("feed", "add", site.url())
    assert done.exit_code == 3
    assert "status 500" in done.stderr
    assert "status 500 (1 failure in a row)" in tidings("feed", "list").stdout


def test_nobody_listens_at_the_address(tidings: Tidings) -> None:
    with a_site() as gone:
        url = gone.url()
    done = tidings("feed", "add", url)
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == (f"error: connection refused ({url}); is the server running, on this port?\n")
    assert tidings("feed", "list").stdout == ""


def test_remove(tidings: Tidings, site: Site) -> None:
    tidings("feed", "add", site.url())
    assert tidings("feed", "remove", site.url()).stdout == f"{site.url()}  removed\n"
    done = tidings("feed", "remove", site.url())
    assert (done.exit_code, done.stderr) == (3, f"{site.url()}  there is no such feed\n")
    done = tidings("feed", "remove", site.url(), "--json")
    assert (done.exit_code, json.loads(done.stdout)) == (3, {"url": site.url(), "removed": False})


@pytest.mark.parametrize(("how", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_following_until_somebody_ends_it(
    tidings: Tidings, site: Site, tmp_path: Path, how: int, code: int
) -> None:
    """A feed that another process adds is heard of while it waits."""
    tidings("feed", "add", site.url())
    with start("feed", "poll", "--follow", "--json", cwd=tmp_path) as following:
        site.pages["/more.xml"] = Response(200, rss("c", prefix="more"))
        tidings("feed", "add", site.url("/more.xml"))
        _make_due(tmp_path)
        assert following.stdout is not None
        told = {json.loads(following.stdout.readline())["url"] for _ in range(2)}
        following.send_signal(how)
        _, problems = following.communicate(timeout=60)
    assert told == {site.url(), site.url("/more.xml")}
    assert (following.returncode, problems) == (code, "")


def test_serve_reads_feeds_and_takes_pings(tidings: Tidings, site: Site, tmp_path: Path) -> None:
    tidings("feed", "add", site.url())
    _make_due(tmp_path)
    with start("serve", "--port", "0", "--only", "api", cwd=tmp_path) as serving:
        address = listens_at(serving)
        site.wait_for(2)
        answer = ServerProxy(f"{address}/RPC2").weblogUpdates.ping("News", "http://example.org/")
        serving.send_signal(signal.SIGTERM)
        _, problems = serving.communicate(timeout=60)
    assert answer == {"flerror": False, "message": "Thanks for the ping."}
    assert (serving.returncode, problems) == (0, "")


def _make_due(home: Path) -> None:
    """As if hours had passed."""
    with open_store(sqlite_url(home / ".tidings" / "store.db")) as store:
        for feed in store.polled_feeds.load():
            store.polled_feeds.record(feed, {"next_poll": feed.added})

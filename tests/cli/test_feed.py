"""`feed add`, `feed list`, `feed remove` and `feed poll`, with a local site."""

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
    with a_site() as opened:
        opened.pages["/rss.xml"] = Response(200, rss("a", "b", ttl=30))
        yield opened


def test_feed_add_and_list_print_title_and_items(tidings: Tidings, site: Site) -> None:
    result = tidings("feed", "add", site.url(), "--contact", "mailto:ann@example.org")
    assert re.fullmatch(
        re.escape(site.url()) + r"  News  2 items: 2 new  next poll in 3[0-3] minutes\n", result.stdout
    )
    assert "mailto:ann@example.org" in site.requests[0].headers["user-agent"]
    result = tidings("feed", "list")
    header, row = (line.split() for line in result.stdout.splitlines())
    assert header == ["feed", "title", "next", "poll", "state"]
    assert (row[:2], row[3:]) == ([site.url(), "News"], ["ok"])


def test_feed_add_and_list_report_ignored_elements(tidings: Tidings, site: Site) -> None:
    body = rss("a", "b").replace(b"<item>", b"<item><g:price xmlns:g='urn:g'>5</g:price>")
    site.pages["/rss.xml"] = Response(200, body)
    result = tidings("feed", "add", site.url())
    assert result.stderr == "left out of the items: g:price (2)\n"
    assert "ok; left out of the items: g:price (2)" in " ".join(tidings("feed", "list").stdout.split())
    assert json.loads(tidings("feed", "list", "--json").stdout)["left_out"] == "g:price (2)"
    site.pages["/rss.xml"] = Response(200, rss("a", "b", "c"))
    tidings("feed", "add", site.url())
    assert json.loads(tidings("feed", "list", "--json").stdout)["left_out"] is None


def test_feed_add_and_list_as_json(tidings: Tidings, site: Site) -> None:
    added = json.loads(tidings("feed", "add", site.url(), "--json").stdout)
    assert added["taken"] == {"items": 2, "new": 2, "edited": 0, "refused": 0}
    listed = json.loads(tidings("feed", "list", "--json").stdout)
    assert (listed["url"], listed["title"], listed["failures"]) == (site.url(), "News", 0)
    assert "secret" not in listed and "callback" not in listed


def test_feed_commands_never_print_password(tidings: Tidings, site: Site) -> None:
    typed = site.url().replace("//", "//ann:hidden@")
    results = [
        tidings("feed", *words)
        for words in (("add", typed), ("list",), ("list", "--json"), ("remove", typed))
    ]
    assert [result.exit_code for result in results] == [0, 0, 0, 0]
    assert all(site.url() in result.stdout and "hidden" not in result.output for result in results)
    assert site.requests[0].headers["authorization"].startswith("Basic ")


def test_feed_add_unavailable_or_invalid_url_is_rejected(tidings: Tidings, site: Site) -> None:
    result = tidings("feed", "add", site.url("/nothing"))
    assert (result.exit_code, result.stderr) == (
        1,
        f"error: the feed is not available ({site.url('/nothing')}); received status 404\n",
    )
    result = tidings("feed", "add", "news")
    assert (result.exit_code, result.stderr[:42]) == (2, "error: not a web address; received 'news';")
    assert tidings("feed", "list").stderr == "no feeds: tidings feed add URL\n"


def test_feed_poll_before_due_time_reads_nothing(tidings: Tidings, site: Site) -> None:
    tidings("feed", "add", site.url())
    result = tidings("feed", "poll")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr.startswith("the next feed is due at 20")
    assert len(site.requests) == 1


def test_feed_list_shows_problem_of_failing_feed(tidings: Tidings, site: Site) -> None:
    tidings("feed", "add", site.url())
    site.pages["/rss.xml"] = Response(500)
    result = tidings("feed", "add", site.url())
    assert result.exit_code == 3
    assert "status 500" in result.stderr
    assert "status 500 (1 failure in a row)" in tidings("feed", "list").stdout


def test_feed_add_connection_refused_is_reported(tidings: Tidings) -> None:
    with a_site() as closed:
        url = closed.url()
    result = tidings("feed", "add", url)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == (f"error: connection refused ({url}); is the server running, on this port?\n")
    assert tidings("feed", "list").stdout == ""


def test_feed_remove_and_repeat(tidings: Tidings, site: Site) -> None:
    tidings("feed", "add", site.url())
    assert tidings("feed", "remove", site.url()).stdout == f"{site.url()}  removed\n"
    result = tidings("feed", "remove", site.url())
    assert (result.exit_code, result.stderr) == (3, f"{site.url()}  there is no such feed\n")
    result = tidings("feed", "remove", site.url(), "--json")
    assert (result.exit_code, json.loads(result.stdout)) == (3, {"url": site.url(), "removed": False})


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_feed_poll_follow_reads_new_feeds_and_ends_on_signal(
    tidings: Tidings, site: Site, tmp_path: Path, number: int, code: int
) -> None:
    """Including a feed that another process adds meanwhile."""
    tidings("feed", "add", site.url())
    with start("feed", "poll", "--follow", "--json", cwd=tmp_path) as following:
        site.pages["/more.xml"] = Response(200, rss("c", prefix="more"))
        tidings("feed", "add", site.url("/more.xml"))
        _make_due(tmp_path)
        assert following.stdout is not None
        polled = {json.loads(following.stdout.readline())["url"] for _ in range(2)}
        following.send_signal(number)
        _, problems = following.communicate(timeout=60)
    assert polled == {site.url(), site.url("/more.xml")}
    assert (following.returncode, problems) == (code, "")


def test_serve_polls_feeds_and_accepts_pings(tidings: Tidings, site: Site, tmp_path: Path) -> None:
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
    """Set the time of the next poll to the past."""
    with open_store(sqlite_url(home / ".tidings" / "store.db")) as store:
        for feed in store.polled_feeds.load():
            store.polled_feeds.record(feed, {"next_poll": feed.added})

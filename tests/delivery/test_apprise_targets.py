"""Mail and messages through Apprise to real servers on loopback; which targets may be named, where they may lead."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from email.message import EmailMessage
from pathlib import Path
from threading import Event

import pytest

from tests.delivery.delivering_store import OK, RULES, delivering
from tests.support.servers.mail_server import a_post
from tests.support.servers.site import Request, Response, Site
from tidings.delivery.destination_types.apprise_process import ENDED, AppriseProcess
from tidings.delivery.destination_types.apprise_targets import AppriseTargets
from tidings.delivery.retry_policy import DeliveryPolicy
from tidings.errors import InputError
from tidings.operations.egress_policy import EgressPolicy
from tidings.operations.sandbox import PRIVATE_ADDRESS
from tidings.store.database import sqlite_url


def text_of(mail: EmailMessage) -> str:
    part = mail.get_body(("plain", "html"))
    assert part
    return str(part.get_content())


def test_mail_says_what_and_why_and_is_tried_again(tmp_path: Path) -> None:
    with delivering(sqlite_url(tmp_path / "store.db")) as at, a_post() as post:
        at.subscribe("ana", "s-1")
        at.subscribe("ana", "s-2", within=60)
        to = at.destinations.add("ana", "apprise", post.target)
        post.full = True
        at.tell("ana", "s-1", "p-1")
        at.steps()
        health = at.store.destinations.health_of([to.id])[to.id]
        assert post.mails == [] and health.consecutive_failures == 1 and health.last_error
        post.full = False
        at.clock.go(5)
        at.steps()
        [mail] = post.mails
        assert mail["Subject"] == "p-1"
        assert "Because price 180 < 200." in text_of(mail) and "Subscription s-1, number 1." in text_of(mail)
        at.tell("ana", "s-2", "p-2", "p-3", body="the same")
        at.clock.go(60)
        at.steps()
        assert "2 notifications for s-2" in str(post.mails[1]["Subject"])
        assert "(2 times)" in text_of(post.mails[1])
        assert at.destinations.test(to).taken and "A sample" not in at.destinations.shown(to)


def test_a_target_is_a_secret(tmp_path: Path) -> None:
    with delivering(sqlite_url(tmp_path / "store.db"), DeliveryPolicy()) as at:
        target = "discord://012345678901234567/aSecretToken_0123456789"
        to = at.destinations.add("ana", "apprise", target)
        assert at.destinations.shown(to) == "discord://..." and "aSecretToken" not in repr(to)
        with pytest.raises(InputError) as refused:
            at.destinations.add("ana", "apprise", "json://127.0.0.1/")
        assert refused.value.pointer == "/target" and "delivery.private_callbacks" in (
            refused.value.hint or ""
        )


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("gnome://", "this service is not allowed"),
        ("macosx://", "this service is not allowed"),
        ("file:///etc/passwd", "this service is not allowed"),
        ("syslog://", "this service is not allowed"),
        ("nonsense", "this service is not allowed"),
        ("jsn://example.org", "did you mean 'json'"),
        ("tgram://nonsense", "invalid tgram URL"),
        ("mailto://u:p@example.org?smtp=127.0.0.1", "the host is in a private network"),
        ("mailto://10.0.0.1/?from=a@b.org&to=c@d.org", "the host is in a private network"),
        ("json://127.0.0.1/", "the host is in a private network"),
        ("jsons://[::1]:8000/", "the host is in a private network"),
        ("xml://2130706433/", "the host is in a private network"),
        ("form://[::ffff:10.0.0.1]/", "the host is in a private network"),
        ("gotify://localhost/AbCdEfGhIjKlMno", "the host is in a private network"),
        ("ntfy://169.254.169.254/topic", "the host is in a private network"),
        ("matrix://user:pass@192.168.0.1/#room", "the host is in a private network"),
        ("json://example.org\\@127.0.0.1/", "the host is in a private network"),
        ("json://example.org/?attach=/etc/passwd", "this parameter of a target is not allowed"),
        ("json://example.org/?redirect=yes", "this parameter of a target is not allowed"),
        ("mailto://u:p@example.org?pgpkey=/etc/passwd", "this parameter of a target is not allowed"),
        ("slack://T/A/B?template=/etc/passwd", "this parameter of a target is not allowed"),
    ],
)
def test_what_may_not_be_a_target(target: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        AppriseTargets(DeliveryPolicy()).check(target)


@pytest.mark.parametrize(
    ("target", "place"),
    [
        ("ntfy://topic", "ntfy:"),
        ("mailgun://me@localhost/key", "mailgun:"),
        ("json://8.8.8.8/?method=PUT&-a=b&:c=d", "json:8.8.8.8"),
    ],
)
def test_places(target: str, place: str) -> None:
    """Services at hosts of their own lead nowhere else, whatever stands where others have a host."""
    assert AppriseTargets(DeliveryPolicy()).check(target) == place


def test_a_name_that_leads_inside_later_gains_nothing(tmp_path: Path, site: Site) -> None:
    """The name is that of this machine; when it is named, it seems to be a public one."""
    network = EgressPolicy(resolve=lambda host, port: ["93.184.216.34"])
    rules = replace(RULES, inside=False)
    site.pages["/"] = OK
    with delivering(sqlite_url(tmp_path / "s.db"), rules, network) as at, a_post() as post:
        mail = post.target.replace("127.0.0.1", "localhost")
        for target in (mail, f"json://localhost:{site.port}/", f"gotify://localhost:{site.port}/{'t' * 15}"):
            tested = at.destinations.test(at.destinations.add("ana", "apprise", target))
            assert (tested.taken, tested.problem) == (False, PRIVATE_ADDRESS), target
        assert (post.mails, site.requests) == ([], [])


def test_redirects_are_not_followed(tmp_path: Path, site: Site) -> None:
    site.pages["/"] = Response(307, headers={"Location": site.url("/inside")})
    site.pages["/inside"] = OK
    with delivering(sqlite_url(tmp_path / "s.db")) as at:
        to = at.destinations.add("ana", "apprise", f"json://127.0.0.1:{site.port}/?+X-Of=ana")
        assert not at.destinations.test(to).taken
        assert [(each.path, each.headers["x-of"]) for each in site.requests] == [("/", "ana")]
        site.pages["/"] = OK
        assert at.destinations.test(to).taken


def test_what_hangs_holds_up_nothing_else(site: Site) -> None:
    """The process that it hangs in is asked for nothing more, and is ended when the rest of it is done."""
    held, place = Event(), f"json://127.0.0.1:{site.port}"
    site.pages |= {"/": OK, "/slow": lambda _: OK if held.wait(60) else Response(500)}
    with AppriseProcess(2, inside=True, seconds=60.0) as process, ThreadPoolExecutor(1) as other:
        slow = other.submit(process.send, f"{place}/slow", "t", "x")
        site.wait_for(1)
        process.seconds = 0.0
        assert process.send(f"{place}/slow", "t", "x") == "the service did not answer within 0 seconds"
        process.seconds = 60.0
        assert process.send(f"{place}/", "t", "x") is None and not slow.done()
        held.set()
        assert slow.result(60) is None


def test_a_process_that_ends_fails_what_it_was_asked_and_is_replaced(site: Site) -> None:
    def killing(_: Request) -> Response:
        process.close()
        return OK

    site.pages["/"], target = killing, f"json://127.0.0.1:{site.port}/"
    with AppriseProcess(2, inside=True, seconds=60.0) as process:
        assert process.send(target, "t", "x") == ENDED
        site.pages["/"] = OK
        assert process.send(target, "t", "x") is None

"""Mail and messages through Apprise to real servers on loopback, and allowed targets."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from email.message import EmailMessage
from pathlib import Path
from threading import Event

import pytest

from tests.delivery.delivery_setup import OK, RULES, open_delivery
from tests.support.servers.mail_server import a_post
from tests.support.servers.site import Request, Response, Site
from tidings.delivery.delivery_policy import DeliveryPolicy
from tidings.delivery.destination_types.apprise_process import ENDED, AppriseProcess
from tidings.delivery.destination_types.apprise_targets import AppriseTargets
from tidings.errors import InputError
from tidings.operations.egress_policy import EgressPolicy
from tidings.operations.sandbox import PRIVATE_ADDRESS
from tidings.store.database import sqlite_url


def text_of(mail: EmailMessage) -> str:
    part = mail.get_body(("plain", "html"))
    assert part
    return str(part.get_content())


def test_apprise_mail_has_title_and_reasons_and_is_retried(tmp_path: Path) -> None:
    with open_delivery(sqlite_url(tmp_path / "store.db")) as delivery, a_post() as post:
        delivery.subscribe("ana", "s-1")
        delivery.subscribe("ana", "s-2", within=60)
        to = delivery.destinations.add("ana", "apprise", post.target)
        post.full = True
        delivery.notify("ana", "s-1", "p-1")
        delivery.steps()
        health = delivery.store.destinations.health_of([to.id])[to.id]
        assert post.mails == [] and health.consecutive_failures == 1 and health.last_error
        post.full = False
        delivery.clock.go(5)
        delivery.steps()
        [mail] = post.mails
        assert mail["Subject"] == "p-1"
        assert "Because price 180 < 200." in text_of(mail) and "Subscription s-1, number 1." in text_of(mail)
        delivery.notify("ana", "s-2", "p-2", "p-3", body="the same")
        delivery.clock.go(60)
        delivery.steps()
        assert "2 notifications for s-2" in str(post.mails[1]["Subject"])
        assert "(2 times)" in text_of(post.mails[1])
        assert delivery.destinations.test(to).taken and "A sample" not in delivery.destinations.mask_target(
            to
        )


def test_apprise_target_is_masked_and_private_host_is_rejected(tmp_path: Path) -> None:
    with open_delivery(sqlite_url(tmp_path / "store.db"), DeliveryPolicy()) as delivery:
        target = "discord://012345678901234567/aSecretToken_0123456789"
        to = delivery.destinations.add("ana", "apprise", target)
        assert delivery.destinations.mask_target(to) == "discord://..." and "aSecretToken" not in repr(to)
        with pytest.raises(InputError) as error:
            delivery.destinations.add("ana", "apprise", "json://127.0.0.1/")
        assert error.value.pointer == "/target" and "delivery.private_callbacks" in (error.value.hint or "")


@pytest.mark.parametrize(
    ("target", "message"),
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
def test_apprise_check_forbidden_target_is_rejected(target: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        AppriseTargets(DeliveryPolicy()).check(target)


@pytest.mark.parametrize(
    ("target", "place"),
    [
        ("ntfy://topic", "ntfy:"),
        ("mailgun://me@localhost/key", "mailgun:"),
        ("json://8.8.8.8/?method=PUT&-a=b&:c=d", "json:8.8.8.8"),
    ],
)
def test_apprise_check_returns_place_of_target(target: str, place: str) -> None:
    """Services with their own host connect nowhere else, whatever host the URL has."""
    assert AppriseTargets(DeliveryPolicy()).check(target) == place


def test_apprise_host_that_resolves_to_private_address_later_is_blocked(tmp_path: Path, site: Site) -> None:
    """The name resolves to a public address when it is checked, and later to this machine."""
    network = EgressPolicy(resolve=lambda host, port: ["93.184.216.34"])
    rules = replace(RULES, inside=False)
    site.pages["/"] = OK
    with open_delivery(sqlite_url(tmp_path / "s.db"), rules, network) as delivery, a_post() as post:
        mail = post.target.replace("127.0.0.1", "localhost")
        for target in (mail, f"json://localhost:{site.port}/", f"gotify://localhost:{site.port}/{'t' * 15}"):
            tested = delivery.destinations.test(delivery.destinations.add("ana", "apprise", target))
            assert (tested.taken, tested.problem) == (False, PRIVATE_ADDRESS), target
        assert (post.mails, site.requests) == ([], [])


def test_apprise_redirect_is_not_followed(tmp_path: Path, site: Site) -> None:
    site.pages["/"] = Response(307, headers={"Location": site.url("/inside")})
    site.pages["/inside"] = OK
    with open_delivery(sqlite_url(tmp_path / "s.db")) as delivery:
        to = delivery.destinations.add("ana", "apprise", f"json://127.0.0.1:{site.port}/?+X-Of=ana")
        assert not delivery.destinations.test(to).taken
        assert [(each.path, each.headers["x-of"]) for each in site.requests] == [("/", "ana")]
        site.pages["/"] = OK
        assert delivery.destinations.test(to).taken


def test_apprise_process_hanging_send_blocks_no_other(site: Site) -> None:
    """The process with the hanging send gets no more work, and ends when its other sends are done."""
    released, place = Event(), f"json://127.0.0.1:{site.port}"
    site.pages |= {"/": OK, "/slow": lambda _: OK if released.wait(60) else Response(500)}
    with AppriseProcess(2, inside=True, seconds=60.0) as process, ThreadPoolExecutor(1) as other:
        slow = other.submit(process.send, f"{place}/slow", "t", "x")
        site.wait_for(1)
        process.seconds = 0.0
        assert process.send(f"{place}/slow", "t", "x") == "the service did not answer within 0 seconds"
        process.seconds = 60.0
        assert process.send(f"{place}/", "t", "x") is None and not slow.done()
        released.set()
        assert slow.result(60) is None


def test_apprise_process_that_dies_fails_its_sends_and_is_replaced(site: Site) -> None:
    def killing(_: Request) -> Response:
        process.close()
        return OK

    site.pages["/"], target = killing, f"json://127.0.0.1:{site.port}/"
    with AppriseProcess(2, inside=True, seconds=60.0) as process:
        assert process.send(target, "t", "x") == ENDED
        site.pages["/"] = OK
        assert process.send(target, "t", "x") is None

"""Mail through Apprise to a real server on loopback; which targets may be named."""

from __future__ import annotations

from dataclasses import replace
from email.message import EmailMessage
from pathlib import Path

import pytest

from tests.delivery.mail import a_post
from tests.delivery.receiving import RULES, delivering
from tidings.delivery import Rules
from tidings.errors import InputError
from tidings.store import sqlite_url
from tidings.web.network import Network


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
    with delivering(sqlite_url(tmp_path / "store.db"), Rules()) as at:
        target = "discord://012345678901234567/aSecretToken_0123456789"
        to = at.destinations.add("ana", "apprise", target)
        assert at.destinations.shown(to) == "discord://..." and "aSecretToken" not in repr(to)


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("json://example.org/", "no service that may be used"),
        ("file:///etc/passwd", "no service that may be used"),
        ("syslog://", "no service that may be used"),
        ("nonsense", "no service that may be used"),
        ("tgram://nonsense", "no address of tgram"),
        ("mailto://u:p@example.org?smtp=127.0.0.1", "a mail server in a private network"),
        ("mailto://10.0.0.1/?from=a@b.org&to=c@d.org", "a mail server in a private network"),
        ("mailto://u:p@example.org?pgpkey=/etc/passwd", "no parameter of a target"),
        ("slack://T/A/B?template=/etc/passwd", "no parameter of a target"),
    ],
)
def test_what_may_not_be_a_target(tmp_path: Path, target: str, said: str) -> None:
    with delivering(sqlite_url(tmp_path / "store.db"), Rules()) as at, pytest.raises(InputError, match=said):
        at.destinations.add("ana", "apprise", target)


def test_a_mail_server_is_looked_at_each_time(tmp_path: Path) -> None:
    leads = ["93.184.216.34"]
    network = Network(resolve=lambda host, port: leads)
    with (
        delivering(sqlite_url(tmp_path / "s.db"), replace(RULES, inside=False), network) as at,
        a_post() as post,
    ):
        at.subscribe("ana", "s-1")
        to = at.destinations.add("ana", "apprise", "mailto://u:p@example.org?smtp=mail.example.org")
        leads[:] = ["127.0.0.1"]
        at.tell("ana", "s-1", "p-1")
        at.steps()
        health = at.store.destinations.health_of([to.id])[to.id]
        assert post.mails == [] and health.last_error == "a mail server in a private network"

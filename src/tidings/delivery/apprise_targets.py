"""Mail and chat, by Apprise: a target is one of its addresses, `mailto://...` or `slack://...`, and a secret.

Apprise makes its own connections, so the look at addresses cannot be pinned to them. That is why only some services may
be named, those at hosts of their own; of mail the server is looked at each time it is used.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from tidings.counts import plural
from tidings.delivery.messages import Item, Message
from tidings.delivery.rules import Rules
from tidings.delivery.sending import Enough, Refusal, Sent
from tidings.errors import InputError, SetupError
from tidings.model import Publication
from tidings.reasons import because, bound, show_change
from tidings.store import Destination, FeedEntry
from tidings.web.network import ALLOWED, PUBLIC, Network

try:
    import apprise
except ModuleNotFoundError:  # it is an extra
    apprise = None  # type: ignore[assignment]

MAIL = ("mailto", "mailtos")
MAILING = ("to", "from", "name", "smtp", "user", "pass", "mode", "cc", "bcc", "reply")
PARAMETERS = frozenset(
    (*MAILING, "format", "overflow", "region", "priority", "sound", "thread", "topic", "footer")
)
"""What may be set behind a `?`. Others name files that are read (`template`) or addresses that are fetched."""
LONGEST = 4_000
TITLE, LINES = 200, 50
"""How many characters a title has, and how many notifications of a digest are written out."""


@dataclass(frozen=True, slots=True)
class Described:
    """A notification for people: what it is about, and where to look."""

    title: str
    text: str = ""
    link: str | None = None


Describe = Callable[[FeedEntry, Publication | None], Described]


def plainly(entry: FeedEntry, _: Publication | None) -> Described:
    """What can be said of a notification without its publication."""
    told = entry.notification
    return Described(show_change(told) or bound(told.bindings) or told.publication)


class AppriseTargets:
    """Sends texts for people."""

    def __init__(self, rules: Rules, network: Network | None = None, describe: Describe = plainly) -> None:
        self._rules, self._network, self._describe = rules, network or Network(), describe

    def check(self, target: str) -> str:
        scheme = target.partition(":")[0].lower()
        if scheme not in self._rules.schemes:
            accepted = ", ".join(f"{each}://" for each in self._rules.schemes)
            raise InputError(
                "no service that may be used", where="target", received=scheme[:40], accepted=accepted
            )
        strange = [name for name, _ in parse_qsl(target.partition("?")[2], True) if name not in PARAMETERS]
        if strange:
            accepted = ", ".join(sorted(PARAMETERS))
            raise InputError("no parameter of a target", received=strange[0][:40], accepted=accepted)
        service = _service(target) if len(target) <= LONGEST else None
        if service is None:
            hint = "https://appriseit.com/services/ says how each is written"
            raise InputError(f"no address of {scheme}", where="target", accepted=f"{scheme}://...", hint=hint)
        if self._leads_inside(service, scheme):
            raise InputError(
                "a mail server in a private network", where="target", accepted=PUBLIC, hint=ALLOWED
            )
        return f"{scheme}:{_server(service) or ''}"

    def shown(self, target: str) -> str:
        """Names, passwords and keys can stand anywhere in it."""
        return f"{target.partition(':')[0]}://..."

    def send(self, to: Destination, messages: Sequence[Message], enough: Enough) -> Sent:
        for number, message in enumerate(messages):
            if number and enough():
                return Sent(number)
            refusal = self._notify(to, message)
            if refusal is not None:
                return Sent(number, refusal)
        return Sent(len(messages))

    def end(self) -> None:
        """Apprise has limits of time of its own, of a few seconds; it cannot be ended."""

    def close(self) -> None:
        """Nothing is held."""

    def _notify(self, to: Destination, message: Message) -> Refusal | None:
        service = _service(to.target)
        if service is None:
            return Refusal("Apprise does not know this target", hopeless=True)
        if self._leads_inside(service, to.target.partition(":")[0].lower()):
            return Refusal("a mail server in a private network")
        title, text = self.written(message)
        with _heard() as said:
            taken = service.notify(title=title, body=text)
        return None if taken else Refusal(said[-1] if said else "the service did not take it")

    def written(self, message: Message) -> tuple[str, str]:
        """A title and a text: what, and why."""
        if not message.is_digest:
            [item] = message.items
            return self._one(item)
        parts = [self._one(item, listed=True) for item in message.items[:LINES]]
        more = len(message.items) - LINES
        text = "\n\n".join(f"{title}\n{text}" for title, text in parts)
        text += f"\n\nand {plural(more, 'more notification')}" if more > 0 else ""
        return f"{plural(len(message.ids), 'notification')} for {message.subscription}", text

    def _one(self, item: Item, listed: bool = False) -> tuple[str, str]:
        told = item.entry.notification
        found = self._describe(item.entry, item.publication)
        times = f" ({len(item.sequences)} times)" if len(item.sequences) > 1 else ""
        title = f"{'- ' if listed else ''}{found.title[:TITLE]}{times}"
        why = because(told.because)
        kind = "" if told.kind == "matched" else f"{told.kind}. "
        lines = [found.text, f"{kind}Because {why}." if why else kind, found.link or ""]
        lines += [] if listed else [f"Subscription {told.subscription}, number {told.sequence}."]
        return title, "\n".join(line for line in lines if line)

    def _leads_inside(self, service: Any, scheme: str) -> bool:
        server = _server(service)
        if self._rules.inside or scheme not in MAIL or not server:
            return False
        return self._network.leads_inside(f"http://[{server}]/" if ":" in server else f"http://{server}/")


def _service(target: str) -> Any:
    """What Apprise makes of a target; nothing if it is none."""
    if apprise is None:
        hint = "pip install 'tidings[apprise]'"
        raise SetupError("Apprise is not installed, by which mail and chat are sent", hint=hint)
    with _heard():
        return apprise.Apprise.instantiate(target, suppress_exceptions=True)


def _server(service: Any) -> str | None:
    """The mail server; services at hosts of their own have none to name."""
    found: str | None = getattr(service, "smtp_host", None)
    return found


class _Ear(logging.Handler):
    """Apprise says only in its log why something was not taken. Several threads send: each hears what it caused."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.own = threading.local()

    def emit(self, record: logging.LogRecord) -> None:
        heard: list[str] | None = getattr(self.own, "heard", None)
        if heard is not None:
            heard.append(record.getMessage()[:200])


_EAR = _Ear()


@contextmanager
def _heard() -> Iterator[list[str]]:
    log = logging.getLogger("apprise")
    if _EAR not in log.handlers:
        log.addHandler(_EAR)
        log.propagate = False  # what it says is in the problem of the delivery
    _EAR.own.heard = []
    try:
        yield _EAR.own.heard
    finally:
        _EAR.own.heard = None

"""Mail and chat, by Apprise: a target is one of its addresses, `mailto://...` or `slack://...`, and a secret.

Apprise makes its own connections, in a process with walls around it: `apprise_worker`. Where a target leads is looked
at when it is named, so that it can be refused at once; what counts are the walls. Services that do something to this
machine are on no list.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from tidings.core.suggest import did_you_mean
from tidings.core.text import plural
from tidings.delivery.destination_types.apprise_process import AppriseProcess
from tidings.delivery.destination_types.apprise_worker import UNKNOWN, parse_target
from tidings.delivery.destination_types.sender import Refusal, SendResult, StopCheck
from tidings.delivery.messages import Item, Message
from tidings.delivery.policy import DeliveryPolicy
from tidings.delivery.sql.destination_store import Destination
from tidings.errors import InputError
from tidings.model import Publication
from tidings.operations.egress_policy import ALLOW_HINT, PUBLIC_ADDRESSES, EgressPolicy
from tidings.reasons import because, bound, show_change
from tidings.store.entries import SubscriptionEntry

MAILING = ("to", "from", "name", "smtp", "user", "pass", "mode", "cc", "bcc", "reply")
CHATTING = ("priority", "sound", "thread", "topic", "footer", "channel", "token", "auth", "method")
PARAMETERS = frozenset((*MAILING, *CHATTING, "format", "overflow", "region"))
"""What may be set behind a `?`. Others name files that are read (`template`) or addresses that are fetched."""
EXTRAS = ("+", " ", "-", ":")
"""How headers, parameters and fields of messages of one's own begin; a plus sign in an address is read as a space."""
DOMAINS = ("mailgun",)
"""Services whose host is the name that a mail comes from."""
CLOUD = ("cloud", "t2bot")
"""Ways to use a service in which it is at a host of its own."""
LONGEST = 4_000
SECONDS = 60.0
"""How long a message may take. Apprise waits for 4 s at each step, and a mail has a dozen."""
TITLE, LINES = 200, 50
"""How many characters a title has, and how many notifications of a digest are written out."""


@dataclass(frozen=True, slots=True)
class Description:
    """A notification for people: what it is about, and where to look."""

    title: str
    text: str = ""
    link: str | None = None


Describer = Callable[[SubscriptionEntry, Publication | None], Description]


def describe_plainly(entry: SubscriptionEntry, _: Publication | None) -> Description:
    """What can be said of a notification without its publication."""
    told = entry.notification
    return Description(show_change(told) or bound(told.bindings) or told.publication)


class AppriseTargets:
    """Sends texts for people."""

    def __init__(
        self,
        rules: DeliveryPolicy,
        network: EgressPolicy | None = None,
        describe: Describer = describe_plainly,
    ) -> None:
        self._rules, self._network, self._describe = rules, network or EgressPolicy(), describe
        self._process = AppriseProcess(rules.workers, rules.inside, SECONDS)

    def check(self, target: str) -> str:
        scheme = target.partition(":")[0].lower()
        if scheme not in self._rules.schemes:
            accepted = ", ".join(f"{each}://" for each in self._rules.schemes)
            hint = did_you_mean(scheme[:40], self._rules.schemes)
            what = "this service may not be used"
            raise InputError(what, where="target", received=scheme[:40], accepted=accepted, hint=hint)
        for name, _ in parse_qsl(target.partition("?")[2], True):
            if name not in PARAMETERS and not name.startswith(EXTRAS):
                accepted = ", ".join(sorted(PARAMETERS))
                raise InputError("this is no parameter of a target", received=name[:40], accepted=accepted)
        service = parse_target(target) if len(target) <= LONGEST else None
        if service is None:
            hint = "https://appriseit.com/services/ says how each is written"
            raise InputError(
                f"this is no address of {scheme}", where="target", accepted=f"{scheme}://...", hint=hint
            )
        host = None if scheme in DOMAINS else _host(service)
        if host and not self._rules.inside and self._network.leads_inside(_as_url(host)):
            raise InputError(
                "a host in a private network", where="target", accepted=PUBLIC_ADDRESSES, hint=ALLOW_HINT
            )
        return f"{scheme}:{host or ''}"

    def shown(self, target: str) -> str:
        """Names, passwords and keys can stand anywhere in it."""
        return f"{target.partition(':')[0]}://..."

    def send(self, to: Destination, messages: Sequence[Message], enough: StopCheck) -> SendResult:
        for number, message in enumerate(messages):
            if number and enough():
                return SendResult(number)
            refusal = self._notify(to, message)
            if refusal is not None:
                return SendResult(number, refusal)
        return SendResult(len(messages))

    def end(self) -> None:
        self._process.close()

    def close(self) -> None:
        self._process.close()

    def _notify(self, to: Destination, message: Message) -> Refusal | None:
        title, text = self.written(message)
        problem = self._process.send(to.target, title, text)
        return Refusal(problem, hopeless=problem == UNKNOWN) if problem else None

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


def _host(service: Any) -> str | None:
    """The host that a target names; services at hosts of their own have none to name."""
    if "host" not in service.template_tokens or getattr(service, "mode", None) in CLOUD:
        return None
    found: str = getattr(service, "smtp_host", None) or service.host
    return found.strip("[]")


def _as_url(host: str) -> str:
    return f"http://[{host}]/" if ":" in host else f"http://{host}/"

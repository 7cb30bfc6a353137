"""Mail and chat with Apprise: a target is an Apprise URL, `mailto://...` or `slack://...`, and a secret.

Apprise opens its own connections, in a sandboxed process: `apprise_worker`. The host of a target is checked when it is
added, for an early error; the sandbox enforces the policy. Services that act on this machine cannot be allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from tidings.core.suggest import did_you_mean
from tidings.core.text import plural
from tidings.delivery.delivery_policy import DeliveryPolicy
from tidings.delivery.destination_types.apprise_process import AppriseProcess
from tidings.delivery.destination_types.apprise_worker import UNKNOWN, parse_target
from tidings.delivery.destination_types.sender import Refusal, SendResult, StopCheck
from tidings.delivery.messages import Item, Message
from tidings.delivery.sql.destination_store import Destination
from tidings.errors import InputError
from tidings.model import Publication
from tidings.notification_text import format_bindings, format_change, format_reasons
from tidings.operations.egress_policy import ALLOW_HINT, PUBLIC_ADDRESSES, EgressPolicy
from tidings.store.notifications.subscription_entries import NumberedNotification

MAILING = ("to", "from", "name", "smtp", "user", "pass", "mode", "cc", "bcc", "reply")
CHATTING = ("priority", "sound", "thread", "topic", "footer", "channel", "token", "auth", "method")
PARAMETERS = frozenset((*MAILING, *CHATTING, "format", "overflow", "region"))
"""Allowed query parameters. Others name files to read (`template`) or URLs to fetch."""
EXTRAS = ("+", " ", "-", ":")
"""Prefixes of custom headers, parameters and message fields; a plus sign in a URL is decoded as a space."""
DOMAINS = ("mailgun",)
"""Services whose URL has the sender's domain in the place of the host."""
CLOUD = ("cloud", "t2bot")
"""Modes in which a service runs at its own host."""
MAX_TARGET_LENGTH = 4_000
TIMEOUT_SECONDS = 60.0
"""Time limit for a message. Apprise waits up to 4 s at each step, and a mail has a dozen."""
MAX_TITLE_LENGTH = 200
MAX_DIGEST_ITEMS = 50
"""Maximum number of items that a digest writes out."""


@dataclass(frozen=True, slots=True)
class Description:
    """A notification for people: title, text and link."""

    title: str
    text: str = ""
    link: str | None = None


Describer = Callable[[NumberedNotification, Publication | None], Description]


def describe_plainly(entry: NumberedNotification, _: Publication | None) -> Description:
    """Describe a notification without its publication."""
    notification = entry.notification
    title = format_change(notification) or format_bindings(notification.bindings) or notification.publication
    return Description(title)


class AppriseTargets:
    """Sender of mail and chat messages."""

    def __init__(
        self,
        policy: DeliveryPolicy,
        network: EgressPolicy | None = None,
        describe: Describer = describe_plainly,
    ) -> None:
        self._policy, self._network, self._describe = policy, network or EgressPolicy(), describe
        self._process = AppriseProcess(policy.workers, policy.inside, TIMEOUT_SECONDS)

    def check(self, target: str) -> str:
        scheme = target.partition(":")[0].lower()
        if scheme not in self._policy.schemes:
            accepted = ", ".join(f"{each}://" for each in self._policy.schemes)
            hint = did_you_mean(scheme[:40], self._policy.schemes)
            message = "this service is not allowed"
            raise InputError(message, where="target", received=scheme[:40], accepted=accepted, hint=hint)
        for name, _ in parse_qsl(target.partition("?")[2], True):
            if name not in PARAMETERS and not name.startswith(EXTRAS):
                accepted = ", ".join(sorted(PARAMETERS))
                raise InputError(
                    "this parameter of a target is not allowed", received=name[:40], accepted=accepted
                )
        service = parse_target(target) if len(target) <= MAX_TARGET_LENGTH else None
        if service is None:
            hint = "see https://appriseit.com/services/ for the format of each service"
            raise InputError(f"invalid {scheme} URL", where="target", accepted=f"{scheme}://...", hint=hint)
        host = None if scheme in DOMAINS else _host(service)
        if host and not self._policy.inside and self._network.leads_inside(_as_url(host)):
            raise InputError(
                "the host is in a private network", where="target", accepted=PUBLIC_ADDRESSES, hint=ALLOW_HINT
            )
        return f"{scheme}:{host or ''}"

    def mask_target(self, target: str) -> str:
        """Return only the scheme: names, passwords and keys can be anywhere in the rest."""
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
        title, text = self.render(message)
        problem = self._process.send(to.target, title, text)
        return Refusal(problem, hopeless=problem == UNKNOWN) if problem else None

    def render(self, message: Message) -> tuple[str, str]:
        """Render a message as title and text."""
        if not message.is_digest:
            [item] = message.items
            return self._render_item(item)
        parts = [self._render_item(item, in_digest=True) for item in message.items[:MAX_DIGEST_ITEMS]]
        omitted = len(message.items) - MAX_DIGEST_ITEMS
        text = "\n\n".join(f"{title}\n{text}" for title, text in parts)
        text += f"\n\nand {plural(omitted, 'more notification')}" if omitted > 0 else ""
        return f"{plural(len(message.ids), 'notification')} for {message.subscription}", text

    def _render_item(self, item: Item, in_digest: bool = False) -> tuple[str, str]:
        notification = item.entry.notification
        description = self._describe(item.entry, item.publication)
        times = f" ({len(item.sequences)} times)" if len(item.sequences) > 1 else ""
        title = f"{'- ' if in_digest else ''}{description.title[:MAX_TITLE_LENGTH]}{times}"
        reasons = format_reasons(notification.because)
        kind = "" if notification.kind == "matched" else f"{notification.kind}. "
        lines = [description.text, f"{kind}Because {reasons}." if reasons else kind, description.link or ""]
        if not in_digest:
            lines.append(f"Subscription {notification.subscription}, number {notification.sequence}.")
        return title, "\n".join(line for line in lines if line)


def _host(service: Any) -> str | None:
    """Return the host in a target; None for services at their own hosts."""
    if "host" not in service.template_tokens or getattr(service, "mode", None) in CLOUD:
        return None
    host: str = getattr(service, "smtp_host", None) or service.host
    return host.strip("[]")


def _as_url(host: str) -> str:
    return f"http://[{host}]/" if ":" in host else f"http://{host}/"

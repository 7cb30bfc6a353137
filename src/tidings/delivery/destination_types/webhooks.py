"""Webhooks, as Standard Webhooks has them: a CloudEvent is posted, signed, under an id that stays when it is repeated.

    webhook-id          the id of the notification or the digest: who has seen it before drops what comes again
    webhook-timestamp   when this attempt was made
    webhook-signature   v1,... of id, timestamp and body; two of them while a secret is being replaced

Whatever is not 2xx is a failure, redirects included; 410 says that nothing more is wanted.
"""

from __future__ import annotations

import secrets
from base64 import b64encode
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from urllib.parse import urlsplit

from standardwebhooks.webhooks import Webhook

from tidings.cloud_events import MEDIA_TYPE
from tidings.delivery.destination_types.sender import Refusal, SendResult, StopCheck
from tidings.delivery.messages import Message
from tidings.delivery.policy import DeliveryPolicy
from tidings.delivery.sql.destination_store import Destination
from tidings.errors import InputError
from tidings.operations.egress_policy import (
    ALLOW_HINT,
    PUBLIC_ADDRESSES,
    EgressPolicy,
    FetchProblem,
    split_host,
)
from tidings.operations.http_pool import HttpPool, PostResponse
from tidings.operations.retry_after import parse_retry_after
from tidings.store.encoding import format_instant, utc_now

SECRET_BYTES = 32
LONGEST = 2_000
GONE = 410
ASKS_TO_WAIT = (429, 503)
SHOWN = 200
"""How many characters of an answer stand in the problem."""


def generate_secret() -> str:
    """A secret as Standard Webhooks writes it."""
    return "whsec_" + b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def secrets_of(to: Destination, moment: datetime) -> list[str]:
    """What signs at a moment: the secret, and the one before as long as it counts."""
    old = to.old_secret if to.old_until is not None and to.old_until > format_instant(moment) else None
    return [each for each in (to.secret, old) if each]


class Webhooks:
    """Posts messages to addresses."""

    def __init__(
        self,
        rules: DeliveryPolicy,
        network: EgressPolicy | None = None,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self._rules, self._clock = rules, clock
        self._poster = HttpPool(rules.times, network)
        self._agent = f"Tidings/{version('tidings')} (webhooks)"

    def check(self, target: str) -> str:
        host, port = split_host(target)
        if len(target) > LONGEST or not target.isascii() or urlsplit(target).fragment:
            accepted = f"at most {LONGEST:,} characters, all of them ASCII, without a fragment"
            raise InputError("this is no address of a webhook", where="target", accepted=accepted)
        if not self._rules.inside and self._poster.network.leads_inside(target):
            raise InputError(
                "a webhook in a private network", where="target", accepted=PUBLIC_ADDRESSES, hint=ALLOW_HINT
            )
        return f"{host}:{port}"

    def shown(self, target: str) -> str:
        """The address; what is in its query may be a secret."""
        parts = urlsplit(target)
        return parts._replace(query="...").geturl() if parts.query else target

    def send(self, to: Destination, messages: Sequence[Message], enough: StopCheck) -> SendResult:
        status = None
        for number, message in enumerate(messages):
            if number and enough():
                return SendResult(number, None, status)
            posted = self._post(to, message)
            if isinstance(posted, Refusal):
                return SendResult(number, posted, posted.status)
            status = posted.status
        return SendResult(len(messages), None, status)

    def end(self) -> None:
        self._poster.end()

    def close(self) -> None:
        self._poster.close()

    def _post(self, to: Destination, message: Message) -> PostResponse | Refusal:
        moment = datetime.now(UTC)
        headers = {
            "content-type": MEDIA_TYPE,
            "user-agent": self._agent,
            "webhook-id": message.id,
            "webhook-timestamp": str(int(moment.timestamp())),
            "webhook-signature": " ".join(
                Webhook(each).sign(message.id, moment, message.text) for each in secrets_of(to, self._clock())
            ),
        }
        inside = split_host(to.target)[0] if self._rules.inside else None
        try:
            answer = self._poster.post(to.target, headers, message.text.encode(), inside)
        except FetchProblem as problem:
            return Refusal(_in_short(problem))
        return answer if 200 <= answer.status < 300 else self._refusal(answer)

    def _refusal(self, answer: PostResponse) -> Refusal:
        said = " ".join(answer.body[: 4 * SHOWN].decode("utf-8", "replace").split())[:SHOWN]
        where = answer.headers.get("location") if 300 <= answer.status < 400 else None
        told = f" (redirects to {where[:SHOWN]}, which is not followed)" if where else ""
        asked = answer.status in ASKS_TO_WAIT
        after = (parse_retry_after(answer.headers, self._clock()) or 0) if asked else 0
        problem = f"status {answer.status}{told}" + (f": {said}" if said and not told else "")
        return Refusal(problem, answer.status, min(after, self._rules.patience), answer.status == GONE)


def _in_short(problem: FetchProblem) -> str:
    """A problem without the address, in which there may be a secret, and without what a name inside leads to."""
    is_inside = problem.accepted == PUBLIC_ADDRESSES
    return f"{problem.what} ({problem.received})" if problem.received and not is_inside else problem.what

"""Sender over HTTP: posts messages and classifies responses.

Every status other than 2xx is a failure, redirects included. 410 disables the destination.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from urllib.parse import urlsplit

from tidings.delivery.delivery_policy import DeliveryPolicy
from tidings.delivery.destination_types.sender import Refusal, SendResult, StopCheck
from tidings.delivery.messages import Message
from tidings.delivery.sql.destination_store import Destination
from tidings.errors import InputError
from tidings.operations.egress_policy import (
    ALLOW_HINT,
    PUBLIC_ADDRESSES,
    EgressPolicy,
    FetchProblem,
    split_host,
)
from tidings.operations.http_client import HttpClient, HttpResponse, build_user_agent
from tidings.operations.retry_after import parse_retry_after
from tidings.store.encoding import utc_now

MAX_URL_LENGTH = 2_000
GONE = 410
RETRY_AFTER_STATUSES = (429, 503)
MAX_READ_BYTES, MAX_SHOWN = 10_000, 200
"""Maximum number of bytes read from a response, and of characters that a problem quotes."""


class HttpSender(ABC):
    """Sender that posts each message to the URL of its destination. `purpose` is part of the User-Agent header."""

    purpose = "webhooks"

    def __init__(
        self,
        policy: DeliveryPolicy,
        network: EgressPolicy | None = None,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self._policy, self._clock = policy, clock
        self._client = HttpClient(replace(policy.times, size=MAX_READ_BYTES, truncate=True), network)
        self._user_agent = build_user_agent(self.purpose)

    @abstractmethod
    def build_request(self, to: Destination, message: Message) -> tuple[Mapping[str, str], bytes] | Refusal:
        """Return the headers and the body of a message, or why it cannot be sent."""

    def check(self, target: str) -> str:
        host, port = split_host(target)
        if len(target) > MAX_URL_LENGTH or not target.isascii() or urlsplit(target).fragment:
            accepted = f"at most {MAX_URL_LENGTH:,} characters, all of them ASCII, without a fragment"
            raise InputError("invalid URL of a webhook", where="target", accepted=accepted)
        if not self._policy.inside and self._client.egress.leads_inside(target):
            raise InputError(
                "the webhook is in a private network",
                where="target",
                accepted=PUBLIC_ADDRESSES,
                hint=ALLOW_HINT,
            )
        return f"{host}:{port}"

    def mask_target(self, target: str) -> str:
        """Return the URL without its query, which may contain a secret."""
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
        self._client.end()

    def close(self) -> None:
        self._client.close()

    def _post(self, to: Destination, message: Message) -> HttpResponse | Refusal:
        request = self.build_request(to, message)
        if isinstance(request, Refusal):
            return request
        headers, body = request
        inside = split_host(to.target)[0] if self._policy.inside else None
        try:
            response = self._client.request(
                "POST", to.target, {"user-agent": self._user_agent, **headers}, body, inside
            )
        except FetchProblem as problem:
            return Refusal(_summarize(problem))
        return response if 200 <= response.status < 300 else self._refusal(response)

    def _refusal(self, response: HttpResponse) -> Refusal:
        body = " ".join(response.body[: 4 * MAX_SHOWN].decode("utf-8", "replace").split())[:MAX_SHOWN]
        location = response.headers.get("location") if 300 <= response.status < 400 else None
        problem = f"status {response.status}"
        if location:
            problem += f" (redirects are not followed: {location[:MAX_SHOWN]})"
        elif body:
            problem += f": {body}"
        can_wait = response.status in RETRY_AFTER_STATUSES
        retry_after = (parse_retry_after(response.headers, self._clock()) or 0) if can_wait else 0
        return Refusal(
            problem, response.status, min(retry_after, self._policy.max_retry_after), response.status == GONE
        )


def _summarize(problem: FetchProblem) -> str:
    """Return the problem without the URL, which may contain a secret, and without private addresses."""
    is_inside = problem.accepted == PUBLIC_ADDRESSES
    return f"{problem.what} ({problem.received})" if problem.received and not is_inside else problem.what

"""Server-sent events, line by line."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime

import httpx

from tidings.client.calls import STREAM, build_params
from tidings.client.notifications import ReceivedNotification, parse_notification
from tidings.client.responses import FORMAT_ERRORS, MAX_EXCERPT, NoAnswer, parse_problem
from tidings.client.retry import RETRY_STATUSES, RetryPolicy
from tidings.operations.retry_after import parse_retry_after

_CURSOR = re.compile("[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class ServerSentEvent:
    """What stands between two empty lines: an id, data, or both."""

    id: int
    data: str | None


class EventStreamParser:
    """Gathers lines to blocks. Comments and what is not for notifications say nothing."""

    def __init__(self) -> None:
        self._id: int | None = None
        self._data: list[str] = []

    def take(self, line: str) -> ServerSentEvent | None:
        """The block that ends with this line, if one does."""
        if line:
            name, _, value = line.partition(":")
            self._field(name, value.removeprefix(" "))
            return None
        id, data = self._id, self._data
        self._id, self._data = None, []
        return None if id is None else ServerSentEvent(id, "\n".join(data) if data else None)

    def _field(self, name: str, value: str) -> None:
        if name == "id" and _CURSOR.fullmatch(value):
            self._id = int(value)
        elif name == "data":
            self._data.append(value)


# Following a stream of notifications across disconnects: what both clients remember.
#
# The cursor is that of the last notification that was given out. Whoever comes back asks for what is after it, and
# what comes twice is left out: nothing is lost, and nothing is repeated.


READ_TIMEOUT_SECONDS = 45.0
"""The service says every 15 seconds that it is still there; who hears nothing for so long comes back."""


class NotificationStream:
    """A stream that is followed, from a cursor on."""

    def __init__(
        self, cursor: int, subscription: str | None, subscriber: str | None, patience: RetryPolicy
    ) -> None:
        self.cursor, self._patience, self._failures = cursor, patience, 0
        self._params = build_params(subscription=subscription, subscriber=subscriber)
        self._lines = EventStreamParser()
        self._asked_for: float | None = None

    def request(self, client: httpx.Client | httpx.AsyncClient) -> httpx.Request:
        """The request for what comes after the cursor; what was half read is forgotten."""
        self._lines = EventStreamParser()
        headers = {"Last-Event-ID": str(self.cursor), "Accept": "text/event-stream"}
        timeout = httpx.Timeout(READ_TIMEOUT_SECONDS, connect=10)
        return client.build_request("GET", STREAM, params=self._params, headers=headers, timeout=timeout)

    def take(self, line: str) -> ReceivedNotification | None:
        """The notification that ends with this line, if one does."""
        block = self._lines.take(line)
        if block is None or block.id <= self.cursor:
            return None
        self.cursor, self._failures = block.id, 0
        return None if block.data is None else _parse_event(block.data)

    def begun(self, response: httpx.Response) -> bool:
        """Whether the stream has begun; false if the service says: not now. What it says otherwise is an error."""
        if response.status_code != 200 and response.status_code not in RETRY_STATUSES:
            raise parse_problem(response)
        self._asked_for = parse_retry_after(response.headers, datetime.now(UTC))
        return response.status_code == 200

    def pause(self) -> float:
        """How long to wait before coming back. What came meanwhile makes it short again."""
        self._failures += 1
        asked_for, self._asked_for = self._asked_for, None
        return self._patience.pause(self._failures, asked_for)


def _parse_event(data: str) -> ReceivedNotification:
    try:
        return parse_notification(json.loads(data))
    except FORMAT_ERRORS as error:
        what = "this is not a stream of Tidings"
        raise NoAnswer(what, where=STREAM, received=data[:MAX_EXCERPT]) from error

"""Notification stream: server-sent events, resumed by cursor after a disconnect."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime

import httpx

from tidings.client.calls import STREAM, build_params
from tidings.client.records import ReceivedNotification, parse_notification
from tidings.client.transport import (
    CONNECT_SECONDS,
    FORMAT_ERRORS,
    MAX_EXCERPT,
    RETRY_STATUSES,
    NoResponse,
    RetryPolicy,
    parse_problem,
)
from tidings.operations.retry_after import parse_retry_after

READ_TIMEOUT_SECONDS = 45.0
"""The service sends a heartbeat every 15 seconds; after this much silence the client reconnects."""

_CURSOR = re.compile("[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class ServerSentEvent:
    """The fields between two empty lines: an id, and data if there is any."""

    id: int
    data: str | None


class EventStreamParser:
    """Joins lines to server-sent events. Comments, and events without a numeric id, are ignored."""

    def __init__(self) -> None:
        self._id: int | None = None
        self._data: list[str] = []

    def feed_line(self, line: str) -> ServerSentEvent | None:
        """Return the event that this line completes, if it does."""
        if line:
            name, _, value = line.partition(":")
            self._add_field(name, value.removeprefix(" "))
            return None
        id, data = self._id, self._data
        self._id, self._data = None, []
        return None if id is None else ServerSentEvent(id, "\n".join(data) if data else None)

    def _add_field(self, name: str, value: str) -> None:
        if name == "id" and _CURSOR.fullmatch(value):
            self._id = int(value)
        elif name == "data":
            self._data.append(value)


class NotificationStream:
    """The state of a stream across disconnects: a cursor and the number of failures.

    The cursor is that of the latest notification that was returned. A reconnect resumes after it, and events at or
    before it are dropped: nothing is lost, and nothing is repeated.
    """

    def __init__(
        self, cursor: int, subscription: str | None, subscriber: str | None, policy: RetryPolicy
    ) -> None:
        self.cursor, self._policy, self._failures = cursor, policy, 0
        self._params = build_params(subscription=subscription, subscriber=subscriber)
        self._parser = EventStreamParser()
        self._retry_after: float | None = None

    def build_request(self, client: httpx.Client | httpx.AsyncClient) -> httpx.Request:
        """Return the request that resumes after the cursor. A partial event is discarded."""
        self._parser = EventStreamParser()
        headers = {"Last-Event-ID": str(self.cursor), "Accept": "text/event-stream"}
        timeout = httpx.Timeout(READ_TIMEOUT_SECONDS, connect=CONNECT_SECONDS)
        return client.build_request("GET", STREAM, params=self._params, headers=headers, timeout=timeout)

    def feed_line(self, line: str) -> ReceivedNotification | None:
        """Return the notification that this line completes, if it does."""
        event = self._parser.feed_line(line)
        if event is None or event.id <= self.cursor:
            return None
        self.cursor, self._failures = event.id, 0
        return None if event.data is None else _parse_event(event.data)

    def accept(self, response: httpx.Response) -> bool:
        """Return whether the stream has begun; false if the service asks to come back later. Raise other errors."""
        if response.status_code != 200 and response.status_code not in RETRY_STATUSES:
            raise parse_problem(response)
        self._retry_after = parse_retry_after(response.headers, datetime.now(UTC))
        return response.status_code == 200

    def next_delay(self) -> float:
        """Return the delay before the next reconnect. It grows until a notification arrives."""
        self._failures += 1
        retry_after, self._retry_after = self._retry_after, None
        return self._policy.delay(self._failures, retry_after)


def _parse_event(data: str) -> ReceivedNotification:
    try:
        return parse_notification(json.loads(data))
    except FORMAT_ERRORS as error:
        message = "this is not a stream of Tidings"
        raise NoResponse(message, where=STREAM, received=data[:MAX_EXCERPT]) from error

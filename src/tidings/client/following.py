"""Following a stream of notifications across disconnects: what both clients remember.

The cursor is that of the last notification that was given out. Whoever comes back asks for what is after it, and what
comes twice is left out: nothing is lost, and nothing is repeated.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime

import httpx

from tidings.client.answers import LONGEST, NOT_OURS, NoAnswer, problem_of
from tidings.client.calls import STREAM, asked
from tidings.client.event_lines import EventLines
from tidings.client.retrying import AGAIN, Patience
from tidings.client.told import Told, told_from
from tidings.web.retry_after import retry_after

SILENT_SECONDS = 45.0
"""The service says every 15 seconds that it is still there; who hears nothing for so long comes back."""


class Following:
    """A stream that is followed, from a cursor on."""

    def __init__(
        self, cursor: int, subscription: str | None, subscriber: str | None, patience: Patience
    ) -> None:
        self.cursor, self._patience, self._failures = cursor, patience, 0
        self._params = asked(subscription=subscription, subscriber=subscriber)
        self._lines = EventLines()
        self._asked_for: float | None = None

    def request(self, client: httpx.Client | httpx.AsyncClient) -> httpx.Request:
        """The request for what comes after the cursor; what was half read is forgotten."""
        self._lines = EventLines()
        headers = {"Last-Event-ID": str(self.cursor), "Accept": "text/event-stream"}
        timeout = httpx.Timeout(SILENT_SECONDS, connect=10)
        return client.build_request("GET", STREAM, params=self._params, headers=headers, timeout=timeout)

    def take(self, line: str) -> Told | None:
        """The notification that ends with this line, if one does."""
        block = self._lines.take(line)
        if block is None or block.id <= self.cursor:
            return None
        self.cursor, self._failures = block.id, 0
        return None if block.data is None else _told(block.data)

    def begun(self, response: httpx.Response) -> bool:
        """Whether the stream has begun; false if the service says: not now. What it says otherwise is an error."""
        if response.status_code != 200 and response.status_code not in AGAIN:
            raise problem_of(response)
        self._asked_for = retry_after(response.headers, datetime.now(UTC))
        return response.status_code == 200

    def pause(self) -> float:
        """How long to wait before coming back. What came meanwhile makes it short again."""
        self._failures += 1
        asked_for, self._asked_for = self._asked_for, None
        return self._patience.pause(self._failures, asked_for)


def _told(data: str) -> Told:
    try:
        return told_from(json.loads(data))
    except NOT_OURS as error:
        what = "this is not a stream of Tidings"
        raise NoAnswer(what, where=STREAM, received=data[:LONGEST]) from error

"""The client for programs that wait for each answer."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import TypeVar

import httpx

from tidings.client import calls
from tidings.client.answers import checked
from tidings.client.asking import Attempts, outcome, request_of
from tidings.client.calls import Call
from tidings.client.following import Following
from tidings.client.retrying import Patience
from tidings.client.told import Page, Standing, Told
from tidings.closing import Closing

T = TypeVar("T")


class Client(Closing):
    """A service at an address, asked with a token.

    with Client("http://127.0.0.1:8080", "tdg_...") as client:
        client.subscribe("price < 200")
        for told in client.follow():
            client.acknowledge(told.sequence)

    What fails because the service is away or busy is tried again, with growing pauses; what is refused is the error
    that was raised there. An administrator names with `subscriber` whose subscriptions and notifications are meant.
    """

    def __init__(self, url: str, token: str, patience: Patience | None = None) -> None:
        self.url, self._patience = checked(url), patience or Patience()
        headers = {"Authorization": f"Bearer {token}"}
        self._http = httpx.Client(base_url=self.url, headers=headers, trust_env=False)

    def notifications(
        self,
        after: int | None = None,
        limit: int = 100,
        subscription: str | None = None,
        subscriber: str | None = None,
        wait: float = 0,
    ) -> Page:
        """A page of notifications after a cursor, or after what is acknowledged. `wait` is for the first: seconds."""
        return self._ask(calls.page(after, limit, subscription, subscriber, wait))

    def follow(
        self, after: int | None = None, subscription: str | None = None, subscriber: str | None = None
    ) -> Iterator[Told]:
        """Notifications as they come, each once and in order, whatever happens to the connection. It never ends."""
        start = self.standing(subscriber).acknowledged if after is None else after
        following = Following(start, subscription, subscriber, self._patience)
        while True:
            with suppress(httpx.TransportError):
                yield from self._streamed(following)
            time.sleep(following.pause())

    def _streamed(self, following: Following) -> Iterator[Told]:
        """What comes until the connection ends."""
        with closing(self._http.send(following.request(self._http), stream=True)) as response:
            if response.status_code != 200:
                response.read()
            if following.begun(response):
                yield from filter(None, map(following.take, response.iter_lines()))

    def standing(self, subscriber: str | None = None) -> Standing:
        """Up to which number everything is acknowledged, and the last one there is."""
        return self._ask(calls.standing(subscriber))

    def acknowledge(self, upto: int, subscriber: str | None = None) -> Standing:
        """Everything up to this number is dealt with; durable on return."""
        return self._ask(calls.acknowledge(upto, subscriber))

    def close(self) -> None:
        self._http.close()

    def _ask(self, call: Call[T]) -> T:
        attempts = Attempts(self._patience)
        while True:
            try:
                response = self._http.send(request_of(self._http, call))
                pause = attempts.refused(response)
                if pause is None:
                    return outcome(call, response)
            except httpx.TransportError as error:
                pause = attempts.failed(self.url, error)
            time.sleep(pause)

"""The client for programs that do other things while they wait."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, suppress
from typing import Self, TypeVar

import httpx

from tidings.client import calls
from tidings.client.answers import checked
from tidings.client.asking import Attempts, outcome, request_of
from tidings.client.calls import Call
from tidings.client.following import Following
from tidings.client.retrying import Patience
from tidings.client.told import Page, Standing, Told

T = TypeVar("T")


class AsyncClient:
    """A service at an address, asked with a token. It has what `Client` has, to be awaited.

    async with AsyncClient("http://127.0.0.1:8080", "tdg_...") as client:
        async for told in client.follow():
            await client.acknowledge(told.sequence)
    """

    def __init__(self, url: str, token: str, patience: Patience | None = None) -> None:
        self.url, self._patience = checked(url), patience or Patience()
        headers = {"Authorization": f"Bearer {token}"}
        self._http = httpx.AsyncClient(base_url=self.url, headers=headers, trust_env=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self._http.aclose()

    async def notifications(
        self,
        after: int | None = None,
        limit: int = 100,
        subscription: str | None = None,
        subscriber: str | None = None,
        wait: float = 0,
    ) -> Page:
        """A page of notifications after a cursor, or after what is acknowledged. `wait` is for the first: seconds."""
        return await self._ask(calls.page(after, limit, subscription, subscriber, wait))

    async def follow(
        self, after: int | None = None, subscription: str | None = None, subscriber: str | None = None
    ) -> AsyncIterator[Told]:
        """Notifications as they come, each once and in order, whatever happens to the connection. It never ends."""
        start = (await self.standing(subscriber)).acknowledged if after is None else after
        following = Following(start, subscription, subscriber, self._patience)
        while True:
            with suppress(httpx.TransportError):
                async with aclosing(self._streamed(following)) as streamed:
                    async for told in streamed:
                        yield told
            await asyncio.sleep(following.pause())

    async def _streamed(self, following: Following) -> AsyncGenerator[Told, None]:
        """What comes until the connection ends."""
        response = await self._http.send(following.request(self._http), stream=True)
        async with aclosing(response):
            if response.status_code != 200:
                await response.aread()
            if following.begun(response):
                async for line in response.aiter_lines():
                    if (told := following.take(line)) is not None:
                        yield told

    async def standing(self, subscriber: str | None = None) -> Standing:
        """Up to which number everything is acknowledged, and the last one there is."""
        return await self._ask(calls.standing(subscriber))

    async def acknowledge(self, upto: int, subscriber: str | None = None) -> Standing:
        """Everything up to this number is dealt with; durable on return."""
        return await self._ask(calls.acknowledge(upto, subscriber))

    async def _ask(self, call: Call[T]) -> T:
        attempts = Attempts(self._patience)
        while True:
            try:
                response = await self._http.send(request_of(self._http, call))
                pause = attempts.refused(response)
                if pause is None:
                    return outcome(call, response)
            except httpx.TransportError as error:
                pause = attempts.failed(self.url, error)
            await asyncio.sleep(pause)

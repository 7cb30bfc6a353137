"""Asynchronous client: the methods of `Client` as coroutines and asynchronous iterators."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable
from contextlib import aclosing, suppress
from typing import Any, Protocol, Self, TypeVar

import httpx

from tidings.client import calls
from tidings.client.calls import UNCHANGED, Call, Unchanged
from tidings.client.client import Client, Destinations
from tidings.client.records import (
    AckPosition,
    CheckResult,
    DeadLetter,
    Destination,
    DestinationTest,
    Feed,
    NotificationPage,
    Page,
    Preview,
    PublishResult,
    ReceivedNotification,
    SubscribeResult,
    Subscription,
)
from tidings.client.request_body import JSON, Body, SubscriptionRequest, batch_lines, batch_subscriptions
from tidings.client.responses import check_url
from tidings.client.retry import Attempts, RetryPolicy, build_http_request
from tidings.client.stream import NotificationStream
from tidings.core.arguments import checks_arguments
from tidings.errors import DecodeProblem, InputError, TidingsError

T = TypeVar("T")
C = TypeVar("C", bound=type)


class SendCallAsync(Protocol):
    """A function that sends a call; the parsed response is awaited."""

    def __call__(self, call: Call[T]) -> Awaitable[T]: ...


def documented_by(source: type) -> Callable[[C], C]:
    """Copy the docstrings of a class to the methods of the same name that have none."""

    def copy(cls: C) -> C:
        for name, member in vars(cls).items():
            if callable(member) and not member.__doc__ and not name.startswith("_"):
                member.__doc__ = getattr(getattr(source, name, None), "__doc__", None)
        return cls

    return copy


async def iterate_pages(
    send: SendCallAsync, list_page: Callable[[Any], Call[Page[T]]], after: Any
) -> AsyncIterator[T]:
    """Yield the items of all pages after a cursor."""
    while after is not None:
        page = await send(list_page(after))
        for item in page.items:
            yield item
        after = page.next


@checks_arguments
@documented_by(Destinations)
class AsyncDestinations:
    """Destinations of notifications, asynchronously; see `Destinations`."""

    def __init__(self, send: SendCallAsync) -> None:
        self._send = send

    async def add(
        self,
        kind: str,
        target: str,
        subscription: str | None = None,
        name: str = "",
        subscriber: str | None = None,
    ) -> Destination:
        return await self._send(calls.add_destination(kind, target, subscription, name, subscriber))

    def list(self, subscriber: str | None = None) -> AsyncIterator[Destination]:
        return iterate_pages(self._send, lambda after: calls.list_destinations(subscriber, after), "")

    async def find(self, id: str) -> Destination:
        return await self._send(calls.read_destination(id))

    async def change(self, id: str, target: str | None = None, name: str | None = None) -> Destination:
        return await self._send(calls.change_destination(id, target, name))

    async def remove(self, id: str) -> None:
        await self._send(calls.remove_destination(id))

    async def pause(self, id: str) -> Destination:
        return await self._send(calls.act_on_destination(id, "pause"))

    async def resume(self, id: str) -> Destination:
        return await self._send(calls.act_on_destination(id, "resume"))

    async def rotate(self, id: str) -> Destination:
        return await self._send(calls.act_on_destination(id, "rotate"))

    async def test(self, id: str) -> DestinationTest:
        return await self._send(calls.test_destination(id))

    def dead_letters(self, id: str) -> AsyncIterator[DeadLetter]:
        return iterate_pages(self._send, lambda after: calls.list_dead_letters(id, after), 0)

    async def replay(self, id: str, number: int | None = None) -> int:
        return await self._send(calls.replay_dead_letters(id, number))


@checks_arguments
@documented_by(Client)
class AsyncClient:
    """A connection to a service, used asynchronously. Methods behave as those of `Client`.

    async with AsyncClient("http://127.0.0.1:8080", "tdg_...") as client:
        async for notification in client.follow():
            await client.acknowledge(notification.sequence)
    """

    def __init__(self, url: str, token: str, retry: RetryPolicy | None = None) -> None:
        self.url, self._retry = check_url(url), retry or RetryPolicy()
        headers = {"Authorization": f"Bearer {token}"}
        self._http = httpx.AsyncClient(base_url=self.url, headers=headers, trust_env=False)
        self.destinations = AsyncDestinations(self._send)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self._http.aclose()

    async def publish(
        self,
        body: Body,
        media_type: str = JSON,
        id: str | None = None,
        base: str | None = None,
        audience: str | None = None,
    ) -> PublishResult:
        return await self._send(calls.publish(body, media_type, id, base, audience))

    async def publish_many(
        self, bodies: Iterable[Body], id_field: str | None = None, audience: str | None = None
    ) -> AsyncIterator[PublishResult | TidingsError]:
        if id_field is not None:
            for batch in batch_lines(bodies):
                if isinstance(batch, DecodeProblem):
                    yield batch
                    continue
                for outcome in await self._send(calls.publish_batch(batch, id_field, audience)):
                    yield outcome
            return
        for body in bodies:
            try:
                yield await self.publish(body, audience=audience)
            except InputError as problem:
                yield problem

    async def subscribe(
        self,
        text: str,
        language: str = "predicates",
        within: str | None = None,
        id: str | None = None,
        subscriber: str | None = None,
    ) -> Subscription:
        return await self._send(calls.subscribe(text, language, within, id, subscriber))

    async def subscribe_many(
        self, requests: Iterable[SubscriptionRequest], subscriber: str | None = None
    ) -> AsyncIterator[SubscribeResult | TidingsError]:
        for batch in batch_subscriptions(requests, subscriber):
            if isinstance(batch, DecodeProblem):
                yield batch
                continue
            for outcome in await self._send(calls.subscribe_batch(batch)):
                yield outcome

    def subscriptions(
        self,
        containing: str | None = None,
        language: str | None = None,
        state: str | None = None,
        subscriber: str | None = None,
    ) -> AsyncIterator[Subscription]:
        def list_page(after: str) -> Call[Page[Subscription]]:
            return calls.list_subscriptions(containing, language, state, subscriber, after)

        return iterate_pages(self._send, list_page, "")

    async def subscription(self, id: str) -> Subscription:
        return await self._send(calls.read_subscription(id))

    async def change(
        self, id: str, text: str | Unchanged = UNCHANGED, within: str | Unchanged | None = UNCHANGED
    ) -> Subscription:
        return await self._send(calls.change_subscription(id, text, within))

    async def pause(self, id: str) -> Subscription:
        return await self._send(calls.pause_subscription(id))

    async def resume(self, id: str) -> Subscription:
        return await self._send(calls.resume_subscription(id))

    async def unsubscribe(self, id: str) -> None:
        await self._send(calls.unsubscribe(id))

    def feeds(self, subscriber: str | None = None) -> AsyncIterator[Feed]:
        return iterate_pages(self._send, lambda after: calls.list_feeds(subscriber, after), "")

    async def feed(self, id: str | None = None, subscriber: str | None = None) -> Feed:
        return await self._send(calls.read_feed(id, subscriber))

    async def renew_feed(self, id: str | None = None, subscriber: str | None = None) -> Feed:
        return await self._send(calls.renew_feed(id, subscriber))

    async def check(self, text: str, language: str = "predicates") -> CheckResult:
        return await self._send(calls.check(text, language))

    async def preview(self, text: str, language: str = "predicates", last: int = 100) -> Preview:
        return await self._send(calls.preview(text, language, last))

    async def notifications(
        self,
        after: int | None = None,
        limit: int = 100,
        subscription: str | None = None,
        subscriber: str | None = None,
        wait: float = 0,
    ) -> NotificationPage:
        return await self._send(calls.read_notifications(after, limit, subscription, subscriber, wait))

    async def follow(
        self, after: int | None = None, subscription: str | None = None, subscriber: str | None = None
    ) -> AsyncIterator[ReceivedNotification]:
        start = (await self.position(subscriber)).acknowledged if after is None else after
        stream = NotificationStream(start, subscription, subscriber, self._retry)
        while True:
            with suppress(httpx.TransportError):
                async with aclosing(self._read_stream(stream)) as notifications:
                    async for notification in notifications:
                        yield notification
            await asyncio.sleep(stream.next_delay())

    async def _read_stream(self, stream: NotificationStream) -> AsyncGenerator[ReceivedNotification, None]:
        """Yield notifications until the connection ends."""
        response = await self._http.send(stream.build_request(self._http), stream=True)
        async with aclosing(response):
            if response.status_code != 200:
                await response.aread()
            if stream.accept(response):
                async for line in response.aiter_lines():
                    if (notification := stream.feed_line(line)) is not None:
                        yield notification

    async def position(self, subscriber: str | None = None) -> AckPosition:
        return await self._send(calls.read_position(subscriber))

    async def acknowledge(self, upto: int, subscriber: str | None = None) -> AckPosition:
        return await self._send(calls.acknowledge(upto, subscriber))

    async def _send(self, call: Call[T]) -> T:
        attempts = Attempts(call, self._retry)
        while True:
            try:
                response = await self._http.send(build_http_request(self._http, call))
                delay = attempts.retry_response(response)
                if delay is None:
                    return attempts.parse(response)
            except httpx.TransportError as error:
                delay = attempts.retry_failure(self.url, error)
            await asyncio.sleep(delay)

"""Both clients. Their methods are declared once, from the functions of `calls`; they differ in how calls are sent."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterable, Iterator
from contextlib import aclosing, closing, suppress
from functools import wraps
from typing import Any, Generic, ParamSpec, Self, TypeVar, overload

import httpx

from tidings.client import calls
from tidings.client.calls import Call, Pages
from tidings.client.records import PublishResult, ReceivedNotification, SubscribeResult
from tidings.client.request_body import Body, SubscriptionRequest, batch_lines, batch_subscriptions
from tidings.client.stream import NotificationStream
from tidings.client.transport import Attempts, RetryPolicy, build_http_request, check_url
from tidings.core.arguments import accepts, checks_arguments
from tidings.core.lifecycle import Closeable
from tidings.errors import DecodeProblem, InputError, TidingsError

P = ParamSpec("P")
T = TypeVar("T")


class Sender:
    """Sends calls over one connection pool, and returns their results."""

    def __init__(self, url: str, token: str, retry: RetryPolicy | None) -> None:
        self.url, self.retry = check_url(url), retry or RetryPolicy()
        headers = {"Authorization": f"Bearer {token}"}
        self.http = httpx.Client(base_url=self.url, headers=headers, trust_env=False)

    def send(self, call: Call[T]) -> T:
        """Send a call, with retries."""
        attempts = Attempts(call, self.retry)
        while True:
            try:
                response = self.http.send(build_http_request(self.http, call))
                delay = attempts.retry_response(response)
                if delay is None:
                    return attempts.parse(response)
            except httpx.TransportError as error:
                delay = attempts.retry_failure(self.url, error)
            time.sleep(delay)

    def iterate(self, pages: Pages[T]) -> Iterator[T]:
        """Yield the items of all pages."""
        after = pages.first
        while after is not None:
            page = self.send(pages.read(after))
            yield from page.items
            after = page.next


class AsyncSender:
    """Sends calls over one connection pool, asynchronously."""

    def __init__(self, url: str, token: str, retry: RetryPolicy | None) -> None:
        self.url, self.retry = check_url(url), retry or RetryPolicy()
        headers = {"Authorization": f"Bearer {token}"}
        self.http = httpx.AsyncClient(base_url=self.url, headers=headers, trust_env=False)

    async def send(self, call: Call[T]) -> T:
        """Send a call, with retries."""
        attempts = Attempts(call, self.retry)
        while True:
            try:
                response = await self.http.send(build_http_request(self.http, call))
                delay = attempts.retry_response(response)
                if delay is None:
                    return attempts.parse(response)
            except httpx.TransportError as error:
                delay = attempts.retry_failure(self.url, error)
            await asyncio.sleep(delay)

    async def iterate(self, pages: Pages[T]) -> AsyncIterator[T]:
        """Yield the items of all pages."""
        after = pages.first
        while after is not None:
            page = await self.send(pages.read(after))
            for item in page.items:
                yield item
            after = page.next


class Synchronous:
    """An object whose methods return results."""

    _sender: Sender


class Asynchronous:
    """An object whose methods return coroutines and asynchronous iterators."""

    _sender: AsyncSender


class Method(Generic[P, T]):
    """A method that sends a call. Its signature and documentation are those of the function that builds the call."""

    def __init__(self, build: Callable[P, Call[T]]) -> None:
        self._build = accepts()(build)

    @overload
    def __get__(self, instance: None, owner: type) -> Callable[P, Call[T]]: ...
    @overload
    def __get__(self, instance: Synchronous, owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, instance: Asynchronous, owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, instance: Synchronous | Asynchronous | None, owner: type) -> Any:
        if instance is None:
            return self._build
        send: Callable[[Any], Any] = instance._sender.send
        return wraps(self._build)(lambda *args, **named: send(self._build(*args, **named)))


class ListMethod(Generic[P, T]):
    """A method that yields the items of a list, page by page."""

    def __init__(self, build: Callable[P, Pages[T]]) -> None:
        self._build = accepts()(build)

    @overload
    def __get__(self, instance: None, owner: type) -> Callable[P, Pages[T]]: ...
    @overload
    def __get__(self, instance: Synchronous, owner: type) -> Callable[P, Iterator[T]]: ...
    @overload
    def __get__(self, instance: Asynchronous, owner: type) -> Callable[P, AsyncIterator[T]]: ...
    def __get__(self, instance: Synchronous | Asynchronous | None, owner: type) -> Any:
        if instance is None:
            return self._build
        iterate: Callable[[Any], Any] = instance._sender.iterate
        return wraps(self._build)(lambda *args, **named: iterate(self._build(*args, **named)))


class DestinationMethods:
    """Methods about destinations of notifications."""

    add = Method(calls.add_destination)
    list = ListMethod(calls.list_destinations)
    find = Method(calls.read_destination)
    change = Method(calls.change_destination)
    remove = Method(calls.remove_destination)
    pause = Method(calls.pause_destination)
    resume = Method(calls.resume_destination)
    rotate = Method(calls.rotate_secret)
    test = Method(calls.test_destination)
    dead_letters = ListMethod(calls.list_dead_letters)
    replay = Method(calls.replay_dead_letters)


class ClientMethods:
    """Methods that both clients have."""

    publish = Method(calls.publish)
    subscribe = Method(calls.subscribe)
    subscriptions = ListMethod(calls.list_subscriptions)
    subscription = Method(calls.read_subscription)
    change = Method(calls.change_subscription)
    pause = Method(calls.pause_subscription)
    resume = Method(calls.resume_subscription)
    unsubscribe = Method(calls.unsubscribe)
    feeds = ListMethod(calls.list_feeds)
    feed = Method(calls.read_feed)
    renew_feed = Method(calls.renew_feed)
    check = Method(calls.check)
    preview = Method(calls.preview)
    notifications = Method(calls.read_notifications)
    position = Method(calls.read_position)
    acknowledge = Method(calls.acknowledge)


class Destinations(DestinationMethods, Synchronous):
    """Destinations of notifications: `client.destinations.add("webhook", "https://...")`."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender


class AsyncDestinations(DestinationMethods, Asynchronous):
    """Destinations of notifications, asynchronously."""

    def __init__(self, sender: AsyncSender) -> None:
        self._sender = sender


@checks_arguments
class Client(ClientMethods, Synchronous, Closeable):
    """A connection to a service.

    with Client("http://127.0.0.1:8080", "tdg_...") as client:
        client.subscribe("price < 200")
        for notification in client.follow():
            client.acknowledge(notification.sequence)

    Calls are retried with backoff while the service is unreachable or overloaded. Errors are the exceptions that the
    service raised. An administrator passes `subscriber` to act for a subscriber.
    """

    def __init__(self, url: str, token: str, retry: RetryPolicy | None = None) -> None:
        self._sender = Sender(url, token, retry)
        self.url, self.destinations = self._sender.url, Destinations(self._sender)

    def close(self) -> None:
        self._sender.http.close()

    def publish_many(
        self, bodies: Iterable[Body], id_field: str | None = None, audience: str | None = None
    ) -> Iterator[PublishResult | TidingsError]:
        """Publish events and yield an outcome for each, in order: the result, or the error.

        With `id_field`, the field that holds the id of an event, batches of a thousand are sent. Without it events
        are sent one by one, each with a generated id, so that a retry never publishes twice.
        """
        if id_field is not None:
            for batch in batch_lines(bodies):
                if isinstance(batch, DecodeProblem):
                    yield batch
                else:
                    yield from self._sender.send(calls.publish_batch(batch, id_field, audience))
            return
        for body in bodies:
            try:
                yield self.publish(body, audience=audience)
            except InputError as problem:
                yield problem

    def subscribe_many(
        self, requests: Iterable[SubscriptionRequest], subscriber: str | None = None
    ) -> Iterator[SubscribeResult | TidingsError]:
        """Subscribe to many texts and yield an outcome for each, in order: the result, or the error.

        A request is a text, or a mapping with `text`, `language`, `id`, `within`, `subscriber` and `state`. Batches of
        a thousand are sent. A request without an id gets one, so that a retry never subscribes twice.
        """
        for batch in batch_subscriptions(requests, subscriber):
            if isinstance(batch, DecodeProblem):
                yield batch
            else:
                yield from self._sender.send(calls.subscribe_batch(batch))

    def follow(
        self, after: int | None = None, subscription: str | None = None, subscriber: str | None = None
    ) -> Iterator[ReceivedNotification]:
        """Yield notifications as they arrive, each once and in order, across reconnects. It never ends."""
        start = self.position(subscriber).acknowledged if after is None else after
        stream = NotificationStream(start, subscription, subscriber, self._sender.retry)
        while True:
            with suppress(httpx.TransportError):
                yield from self._read_stream(stream)
            time.sleep(stream.next_delay())

    def _read_stream(self, stream: NotificationStream) -> Iterator[ReceivedNotification]:
        """Yield notifications until the connection ends."""
        http = self._sender.http
        with closing(http.send(stream.build_request(http), stream=True)) as response:
            if response.status_code != 200:
                response.read()
            if stream.accept(response):
                yield from filter(None, map(stream.feed_line, response.iter_lines()))


@checks_arguments
class AsyncClient(ClientMethods, Asynchronous):
    """A connection to a service, used asynchronously. Methods behave as those of `Client`.

    async with AsyncClient("http://127.0.0.1:8080", "tdg_...") as client:
        async for notification in client.follow():
            await client.acknowledge(notification.sequence)
    """

    def __init__(self, url: str, token: str, retry: RetryPolicy | None = None) -> None:
        self._sender = AsyncSender(url, token, retry)
        self.url, self.destinations = self._sender.url, AsyncDestinations(self._sender)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self._sender.http.aclose()

    async def publish_many(
        self, bodies: Iterable[Body], id_field: str | None = None, audience: str | None = None
    ) -> AsyncIterator[PublishResult | TidingsError]:
        """Publish events and yield an outcome for each; see `Client.publish_many`."""
        if id_field is not None:
            for batch in batch_lines(bodies):
                if isinstance(batch, DecodeProblem):
                    yield batch
                    continue
                for outcome in await self._sender.send(calls.publish_batch(batch, id_field, audience)):
                    yield outcome
            return
        for body in bodies:
            try:
                yield await self.publish(body, audience=audience)
            except InputError as problem:
                yield problem

    async def subscribe_many(
        self, requests: Iterable[SubscriptionRequest], subscriber: str | None = None
    ) -> AsyncIterator[SubscribeResult | TidingsError]:
        """Subscribe to many texts and yield an outcome for each; see `Client.subscribe_many`."""
        for batch in batch_subscriptions(requests, subscriber):
            if isinstance(batch, DecodeProblem):
                yield batch
                continue
            for outcome in await self._sender.send(calls.subscribe_batch(batch)):
                yield outcome

    async def follow(
        self, after: int | None = None, subscription: str | None = None, subscriber: str | None = None
    ) -> AsyncIterator[ReceivedNotification]:
        """Yield notifications as they arrive, each once and in order, across reconnects. It never ends."""
        start = (await self.position(subscriber)).acknowledged if after is None else after
        stream = NotificationStream(start, subscription, subscriber, self._sender.retry)
        while True:
            with suppress(httpx.TransportError):
                async with aclosing(self._read_stream(stream)) as notifications:
                    async for notification in notifications:
                        yield notification
            await asyncio.sleep(stream.next_delay())

    async def _read_stream(self, stream: NotificationStream) -> AsyncGenerator[ReceivedNotification, None]:
        """Yield notifications until the connection ends."""
        http = self._sender.http
        response = await http.send(stream.build_request(http), stream=True)
        async with aclosing(response):
            if response.status_code != 200:
                await response.aread()
            if stream.accept(response):
                async for line in response.aiter_lines():
                    if (notification := stream.feed_line(line)) is not None:
                        yield notification

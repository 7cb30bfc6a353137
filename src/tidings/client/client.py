"""Synchronous client: each method returns when the service has answered."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from typing import Any, Protocol, TypeVar

import httpx

from tidings.client import calls
from tidings.client.calls import UNCHANGED, Call, Unchanged
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
from tidings.core.closeable import Closeable
from tidings.errors import DecodeProblem, InputError, TidingsError

T = TypeVar("T")


class SendCall(Protocol):
    """A function that sends a call and returns the parsed response."""

    def __call__(self, call: Call[T]) -> T: ...


def iterate_pages(send: SendCall, list_page: Callable[[Any], Call[Page[T]]], after: Any) -> Iterator[T]:
    """Yield the items of all pages after a cursor."""
    while after is not None:
        page = send(list_page(after))
        yield from page.items
        after = page.next


@checks_arguments
class Destinations:
    """Destinations of notifications: `client.destinations.add("webhook", "https://...")`."""

    def __init__(self, send: SendCall) -> None:
        self._send = send

    def add(
        self,
        kind: str,
        target: str,
        subscription: str | None = None,
        name: str = "",
        subscriber: str | None = None,
    ) -> Destination:
        """Add a webhook, apprise or kafka destination for one subscription, or for all of them.

        The response is the only one that contains a webhook's secret. If it is lost, the call is not repeated; use
        `list` to see whether the destination exists.
        """
        return self._send(calls.add_destination(kind, target, subscription, name, subscriber))

    def list(self, subscriber: str | None = None) -> Iterator[Destination]:
        """Yield all destinations, by id."""
        return iterate_pages(self._send, lambda after: calls.list_destinations(subscriber, after), "")

    def find(self, id: str) -> Destination:
        """Return a destination with its health."""
        return self._send(calls.read_destination(id))

    def change(self, id: str, target: str | None = None, name: str | None = None) -> Destination:
        """Change the target or the name."""
        return self._send(calls.change_destination(id, target, name))

    def remove(self, id: str) -> None:
        """Remove a destination and its dead letters."""
        return self._send(calls.remove_destination(id))

    def pause(self, id: str) -> Destination:
        """Stop deliveries until the destination is resumed. Nothing is lost."""
        return self._send(calls.act_on_destination(id, "pause"))

    def resume(self, id: str) -> Destination:
        """Continue deliveries, also after the service disabled the destination."""
        return self._send(calls.act_on_destination(id, "resume"))

    def rotate(self, id: str) -> Destination:
        """Create a new secret, which only this response contains. For a while the old one signs as well."""
        return self._send(calls.act_on_destination(id, "rotate"))

    def test(self, id: str) -> DestinationTest:
        """Send a sample now and return the outcome."""
        return self._send(calls.test_destination(id))

    def dead_letters(self, id: str) -> Iterator[DeadLetter]:
        """Yield what could not be delivered, oldest first."""
        return iterate_pages(self._send, lambda after: calls.list_dead_letters(id, after), 0)

    def replay(self, id: str, number: int | None = None) -> int:
        """Deliver one dead letter again, or all of them. Return how many."""
        return self._send(calls.replay_dead_letters(id, number))


@checks_arguments
class Client(Closeable):
    """A connection to a service.

    with Client("http://127.0.0.1:8080", "tdg_...") as client:
        client.subscribe("price < 200")
        for notification in client.follow():
            client.acknowledge(notification.sequence)

    Calls are retried with backoff while the service is unreachable or overloaded. Errors are the exceptions that the
    service raised. An administrator passes `subscriber` to act for a subscriber.
    """

    def __init__(self, url: str, token: str, retry: RetryPolicy | None = None) -> None:
        self.url, self._retry = check_url(url), retry or RetryPolicy()
        headers = {"Authorization": f"Bearer {token}"}
        self._http = httpx.Client(base_url=self.url, headers=headers, trust_env=False)
        self.destinations = Destinations(self._send)

    def publish(
        self,
        body: Body,
        media_type: str = JSON,
        id: str | None = None,
        base: str | None = None,
        audience: str | None = None,
    ) -> PublishResult:
        """Publish a body; it is durable on return. Values are encoded as JSON, bytes and text are sent unchanged.

        Publishing the same id and body again returns the first publication; another body with the same id is an
        error. The id of a CloudEvent is used if there is one; otherwise the client generates one, so that a retry
        never publishes twice. `base` resolves relative IRIs of a graph. With `audience`, a label, only subscribers
        who were granted it see the publication.
        """
        return self._send(calls.publish(body, media_type, id, base, audience))

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
                    yield from self._send(calls.publish_batch(batch, id_field, audience))
            return
        for body in bodies:
            try:
                yield self.publish(body, audience=audience)
            except InputError as problem:
                yield problem

    def subscribe(
        self,
        text: str,
        language: str = "predicates",
        within: str | None = None,
        id: str | None = None,
        subscriber: str | None = None,
    ) -> Subscription:
        """Subscribe, from the next batch of the stream on. `within`, such as "10 minutes", batches notifications."""
        return self._send(calls.subscribe(text, language, within, id, subscriber))

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
                yield from self._send(calls.subscribe_batch(batch))

    def subscriptions(
        self,
        containing: str | None = None,
        language: str | None = None,
        state: str | None = None,
        subscriber: str | None = None,
    ) -> Iterator[Subscription]:
        """Yield subscriptions by id; `containing` is searched in texts and ids."""

        def list_page(after: str) -> Call[Page[Subscription]]:
            return calls.list_subscriptions(containing, language, state, subscriber, after)

        return iterate_pages(self._send, list_page, "")

    def subscription(self, id: str) -> Subscription:
        """Return a subscription with its state and health."""
        return self._send(calls.read_subscription(id))

    def change(
        self, id: str, text: str | Unchanged = UNCHANGED, within: str | Unchanged | None = UNCHANGED
    ) -> Subscription:
        """Change the text or the delay of a subscription. `within=None` notifies immediately."""
        return self._send(calls.change_subscription(id, text, within))

    def pause(self, id: str) -> Subscription:
        """Stop matching a subscription until it is resumed."""
        return self._send(calls.pause_subscription(id))

    def resume(self, id: str) -> Subscription:
        """Continue to match a subscription."""
        return self._send(calls.resume_subscription(id))

    def unsubscribe(self, id: str) -> None:
        """Delete a subscription. Its notifications stay."""
        self._send(calls.unsubscribe(id))

    def feeds(self, subscriber: str | None = None) -> Iterator[Feed]:
        """Yield the feed address of each subscription."""
        return iterate_pages(self._send, lambda after: calls.list_feeds(subscriber, after), "")

    def feed(self, id: str | None = None, subscriber: str | None = None) -> Feed:
        """Return the feed address of a subscription, or of the list of all feeds (OPML); create it if needed."""
        return self._send(calls.read_feed(id, subscriber))

    def renew_feed(self, id: str | None = None, subscriber: str | None = None) -> Feed:
        """Give the feed of a subscription, or the list of all feeds, a new address. The old one stops working."""
        return self._send(calls.renew_feed(id, subscriber))

    def check(self, text: str, language: str = "predicates") -> CheckResult:
        """Compile a text without subscribing; raise the error with its place if it is invalid."""
        return self._send(calls.check(text, language))

    def preview(self, text: str, language: str = "predicates", last: int = 100) -> Preview:
        """Return which of the latest publications a text would have matched, without subscribing."""
        return self._send(calls.preview(text, language, last))

    def notifications(
        self,
        after: int | None = None,
        limit: int = 100,
        subscription: str | None = None,
        subscriber: str | None = None,
        wait: float = 0,
    ) -> NotificationPage:
        """Return a page of notifications after a cursor, by default after the acknowledged ones.

        If there are none, wait up to `wait` seconds for the first.
        """
        return self._send(calls.read_notifications(after, limit, subscription, subscriber, wait))

    def follow(
        self, after: int | None = None, subscription: str | None = None, subscriber: str | None = None
    ) -> Iterator[ReceivedNotification]:
        """Yield notifications as they arrive, each once and in order, across reconnects. It never ends."""
        start = self.position(subscriber).acknowledged if after is None else after
        stream = NotificationStream(start, subscription, subscriber, self._retry)
        while True:
            with suppress(httpx.TransportError):
                yield from self._read_stream(stream)
            time.sleep(stream.next_delay())

    def _read_stream(self, stream: NotificationStream) -> Iterator[ReceivedNotification]:
        """Yield notifications until the connection ends."""
        with closing(self._http.send(stream.build_request(self._http), stream=True)) as response:
            if response.status_code != 200:
                response.read()
            if stream.accept(response):
                yield from filter(None, map(stream.feed_line, response.iter_lines()))

    def position(self, subscriber: str | None = None) -> AckPosition:
        """Return up to which sequence number everything is acknowledged, and the latest number."""
        return self._send(calls.read_position(subscriber))

    def acknowledge(self, upto: int, subscriber: str | None = None) -> AckPosition:
        """Acknowledge everything up to a sequence number; durable on return."""
        return self._send(calls.acknowledge(upto, subscriber))

    def close(self) -> None:
        self._http.close()

    def _send(self, call: Call[T]) -> T:
        attempts = Attempts(call, self._retry)
        while True:
            try:
                response = self._http.send(build_http_request(self._http, call))
                delay = attempts.retry_response(response)
                if delay is None:
                    return attempts.parse(response)
            except httpx.TransportError as error:
                delay = attempts.retry_failure(self.url, error)
            time.sleep(delay)

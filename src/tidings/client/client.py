"""The client for programs that wait for each answer."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from typing import TypeVar

import httpx

from tidings.client import calls, feeds, publications
from tidings.client import subscriptions as subscribed
from tidings.client.calls import Call
from tidings.client.destinations import Destinations
from tidings.client.feeds import Feed
from tidings.client.notifications import AckPosition, NotificationPage, ReceivedNotification
from tidings.client.publications import JSON, Body, PublishResult
from tidings.client.responses import check_url
from tidings.client.retry import Attempts, RetryPolicy, build_http_request
from tidings.client.stream import NotificationStream
from tidings.client.subscriptions import (
    UNCHANGED,
    CheckResult,
    Preview,
    SubscribeResult,
    Subscription,
    SubscriptionRequest,
    Unchanged,
)
from tidings.core.arguments import checks_arguments
from tidings.core.closeable import Closeable
from tidings.errors import DecodeProblem, InputError, TidingsError

T = TypeVar("T")


@checks_arguments
class Client(Closeable):
    """A service at an address, asked with a token.

    with Client("http://127.0.0.1:8080", "tdg_...") as client:
        client.subscribe("price < 200")
        for told in client.follow():
            client.acknowledge(told.sequence)

    What fails because the service is away or busy is tried again, with growing pauses; what is refused is the error
    that was raised there. An administrator names with `subscriber` whose subscriptions and notifications are meant.
    """

    def __init__(self, url: str, token: str, patience: RetryPolicy | None = None) -> None:
        self.url, self._patience = check_url(url), patience or RetryPolicy()
        headers = {"Authorization": f"Bearer {token}"}
        self._http = httpx.Client(base_url=self.url, headers=headers, trust_env=False)
        self.destinations = Destinations(self._ask)

    def publish(
        self,
        body: Body,
        media_type: str = JSON,
        id: str | None = None,
        base: str | None = None,
        audience: str | None = None,
    ) -> PublishResult:
        """Publish something, durable on return. Values are written as JSON; what is bytes or text is sent as it is.

        The same id with the same body again is the same publication, and with another body an error. A CloudEvent
        has an id; without one it is made: so it can be sent again when an answer is lost, and is published once. `base`
        is what relative IRIs of a graph are relative to, `audience` a label: only those who were granted it are told.
        """
        return self._ask(publications.publish(body, media_type, id, base, audience))

    def publish_many(
        self, bodies: Iterable[Body], id_field: str | None = None, audience: str | None = None
    ) -> Iterator[PublishResult | TidingsError]:
        """Publish events, an outcome for each in the order given: its place, or the error that refuses it.

        With `id_field`, the field that has each event's id, a thousand travel together. Without ids they travel one by
        one, each with an id made here: what is sent twice must not be published twice.
        """
        if id_field is not None:
            for lines in publications.batch_lines(bodies):
                if isinstance(lines, DecodeProblem):
                    yield lines
                else:
                    yield from self._ask(publications.publish_lines(lines, id_field, audience))
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
        """Ask to be told; `within` is a delay that is accepted, `10 minutes` say. It counts from the next batch on."""
        return self._ask(subscribed.subscribe(text, language, within, id, subscriber))

    def subscribe_many(
        self, wanted: Iterable[SubscriptionRequest], subscriber: str | None = None
    ) -> Iterator[SubscribeResult | TidingsError]:
        """Ask for many: texts, or mappings as the lines of a file of subscriptions have them (`text`, `language`, `id`,
        `within`, `subscriber`, `state`). An outcome for each in the order given: its id, or the error that refuses it.

        A thousand travel together. One without an id gets one here: what is sent twice is one subscription.
        """
        for lines in subscribed.batch_subscriptions(wanted, subscriber):
            if isinstance(lines, DecodeProblem):
                yield lines
            else:
                yield from self._ask(subscribed.subscribe_lines(lines))

    def subscriptions(
        self,
        containing: str | None = None,
        language: str | None = None,
        state: str | None = None,
        subscriber: str | None = None,
    ) -> Iterator[Subscription]:
        """Subscriptions by id, page by page; `containing` is looked for in their texts and ids."""
        after: str | None = ""
        while after is not None:
            page = self._ask(subscribed.page(containing, language, state, subscriber, after))
            yield from page.subscriptions
            after = page.next

    def subscription(self, id: str) -> Subscription:
        """A subscription with its state and its health."""
        return self._ask(subscribed.find(id))

    def change(
        self, id: str, text: str | Unchanged = UNCHANGED, within: str | Unchanged | None = UNCHANGED
    ) -> Subscription:
        """Give it another text or another delay; it keeps its id. `within=None` is at once."""
        return self._ask(subscribed.change(id, text, within))

    def pause(self, id: str) -> Subscription:
        """Match nothing for it until it is resumed."""
        return self._ask(subscribed.pause(id))

    def resume(self, id: str) -> Subscription:
        """Match for it again."""
        return self._ask(subscribed.resume(id))

    def unsubscribe(self, id: str) -> None:
        """Withdraw it; notifications that were made stay."""
        self._ask(subscribed.unsubscribe(id))

    def feeds(self, subscriber: str | None = None) -> Iterator[Feed]:
        """Where the feed of each subscription is, page by page."""
        after: str | None = ""
        while after is not None:
            page = self._ask(feeds.page(subscriber, after))
            yield from page.feeds
            after = page.next

    def feed(self, id: str | None = None, subscriber: str | None = None) -> Feed:
        """Where the feed of a subscription is, or the list of all feeds (OPML); an address is made if there is none."""
        return self._ask(feeds.find(id, subscriber))

    def renew_feed(self, id: str | None = None, subscriber: str | None = None) -> Feed:
        """A new address for the feed of a subscription, or for the list of all; the old one ends."""
        return self._ask(feeds.renew(id, subscriber))

    def check(self, text: str, language: str = "predicates") -> CheckResult:
        """What a text would be as a subscription, or the error with its place; nothing is kept."""
        return self._ask(subscribed.check(text, language))

    def preview(self, text: str, language: str = "predicates", last: int = 100) -> Preview:
        """Which of the last publications a text would have matched; nothing is kept."""
        return self._ask(subscribed.preview(text, language, last))

    def notifications(
        self,
        after: int | None = None,
        limit: int = 100,
        subscription: str | None = None,
        subscriber: str | None = None,
        wait: float = 0,
    ) -> NotificationPage:
        """A page of notifications after a cursor, or after what is acknowledged. `wait` is for the first: seconds."""
        return self._ask(calls.read_notifications(after, limit, subscription, subscriber, wait))

    def follow(
        self, after: int | None = None, subscription: str | None = None, subscriber: str | None = None
    ) -> Iterator[ReceivedNotification]:
        """Notifications as they come, each once and in order, whatever happens to the connection. It never ends."""
        start = self.standing(subscriber).acknowledged if after is None else after
        following = NotificationStream(start, subscription, subscriber, self._patience)
        while True:
            with suppress(httpx.TransportError):
                yield from self._streamed(following)
            time.sleep(following.pause())

    def _streamed(self, following: NotificationStream) -> Iterator[ReceivedNotification]:
        """What comes until the connection ends."""
        with closing(self._http.send(following.request(self._http), stream=True)) as response:
            if response.status_code != 200:
                response.read()
            if following.begun(response):
                yield from filter(None, map(following.take, response.iter_lines()))

    def standing(self, subscriber: str | None = None) -> AckPosition:
        """Up to which number everything is acknowledged, and the last one there is."""
        return self._ask(calls.read_position(subscriber))

    def acknowledge(self, upto: int, subscriber: str | None = None) -> AckPosition:
        """Everything up to this number is dealt with; durable on return."""
        return self._ask(calls.acknowledge(upto, subscriber))

    def close(self) -> None:
        self._http.close()

    def _ask(self, call: Call[T]) -> T:
        attempts = Attempts(call, self._patience)
        while True:
            try:
                response = self._http.send(build_http_request(self._http, call))
                pause = attempts.refused(response)
                if pause is None:
                    return attempts.outcome(response)
            except httpx.TransportError as error:
                pause = attempts.failed(self.url, error)
            time.sleep(pause)

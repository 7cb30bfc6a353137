"""The client for programs that do other things while they wait."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import aclosing, suppress
from typing import Self, TypeVar

import httpx

from tidings.client import calls, feeds, publications
from tidings.client import subscriptions as subscribed
from tidings.client.calls import Call
from tidings.client.destinations import AsyncDestinations
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
from tidings.errors import DecodeProblem, InputError, TidingsError

T = TypeVar("T")


@checks_arguments
class AsyncClient:
    """A service at an address, asked with a token. It has what `Client` has, to be awaited.

    async with AsyncClient("http://127.0.0.1:8080", "tdg_...") as client:
        async for told in client.follow():
            await client.acknowledge(told.sequence)
    """

    def __init__(self, url: str, token: str, patience: RetryPolicy | None = None) -> None:
        self.url, self._patience = check_url(url), patience or RetryPolicy()
        headers = {"Authorization": f"Bearer {token}"}
        self._http = httpx.AsyncClient(base_url=self.url, headers=headers, trust_env=False)
        self.destinations = AsyncDestinations(self._ask)

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
        """Publish something, durable on return. Values are written as JSON; what is bytes or text is sent as it is.

        The same id with the same body again is the same publication, and with another body an error. A CloudEvent
        has an id; without one it is made: so it can be sent again when an answer is lost, and is published once. `base`
        is what relative IRIs of a graph are relative to, `audience` a label: only those who were granted it are told.
        """
        return await self._ask(publications.publish(body, media_type, id, base, audience))

    async def publish_many(
        self, bodies: Iterable[Body], id_field: str | None = None, audience: str | None = None
    ) -> AsyncIterator[PublishResult | TidingsError]:
        """Publish events, an outcome for each in the order given: its place, or the error that refuses it.

        With `id_field`, the field that has each event's id, a thousand travel together. Without ids they travel one by
        one, each with an id made here: what is sent twice must not be published twice.
        """
        if id_field is not None:
            for lines in publications.batch_lines(bodies):
                if isinstance(lines, DecodeProblem):
                    yield lines
                    continue
                for one in await self._ask(publications.publish_lines(lines, id_field, audience)):
                    yield one
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
        """Ask to be told; `within` is a delay that is accepted, `10 minutes` say. It counts from the next batch on."""
        return await self._ask(subscribed.subscribe(text, language, within, id, subscriber))

    async def subscribe_many(
        self, wanted: Iterable[SubscriptionRequest], subscriber: str | None = None
    ) -> AsyncIterator[SubscribeResult | TidingsError]:
        """Ask for many: texts, or mappings as the lines of a file of subscriptions have them (`text`, `language`, `id`,
        `within`, `subscriber`, `state`). An outcome for each in the order given: its id, or the error that refuses it.

        A thousand travel together. One without an id gets one here: what is sent twice is one subscription.
        """
        for lines in subscribed.batch_subscriptions(wanted, subscriber):
            if isinstance(lines, DecodeProblem):
                yield lines
                continue
            for one in await self._ask(subscribed.subscribe_lines(lines)):
                yield one

    async def subscriptions(
        self,
        containing: str | None = None,
        language: str | None = None,
        state: str | None = None,
        subscriber: str | None = None,
    ) -> AsyncIterator[Subscription]:
        """Subscriptions by id, page by page; `containing` is looked for in their texts and ids."""
        after: str | None = ""
        while after is not None:
            page = await self._ask(subscribed.page(containing, language, state, subscriber, after))
            for one in page.subscriptions:
                yield one
            after = page.next

    async def subscription(self, id: str) -> Subscription:
        """A subscription with its state and its health."""
        return await self._ask(subscribed.find(id))

    async def change(
        self, id: str, text: str | Unchanged = UNCHANGED, within: str | Unchanged | None = UNCHANGED
    ) -> Subscription:
        """Give it another text or another delay; it keeps its id. `within=None` is at once."""
        return await self._ask(subscribed.change(id, text, within))

    async def pause(self, id: str) -> Subscription:
        """Match nothing for it until it is resumed."""
        return await self._ask(subscribed.pause(id))

    async def resume(self, id: str) -> Subscription:
        """Match for it again."""
        return await self._ask(subscribed.resume(id))

    async def unsubscribe(self, id: str) -> None:
        """Withdraw it; notifications that were made stay."""
        await self._ask(subscribed.unsubscribe(id))

    async def feeds(self, subscriber: str | None = None) -> AsyncIterator[Feed]:
        """Where the feed of each subscription is, page by page."""
        after: str | None = ""
        while after is not None:
            page = await self._ask(feeds.page(subscriber, after))
            for one in page.feeds:
                yield one
            after = page.next

    async def feed(self, id: str | None = None, subscriber: str | None = None) -> Feed:
        """Where the feed of a subscription is, or the list of all feeds (OPML); an address is made if there is none."""
        return await self._ask(feeds.find(id, subscriber))

    async def renew_feed(self, id: str | None = None, subscriber: str | None = None) -> Feed:
        """A new address for the feed of a subscription, or for the list of all; the old one ends."""
        return await self._ask(feeds.renew(id, subscriber))

    async def check(self, text: str, language: str = "predicates") -> CheckResult:
        """What a text would be as a subscription, or the error with its place; nothing is kept."""
        return await self._ask(subscribed.check(text, language))

    async def preview(self, text: str, language: str = "predicates", last: int = 100) -> Preview:
        """Which of the last publications a text would have matched; nothing is kept."""
        return await self._ask(subscribed.preview(text, language, last))

    async def notifications(
        self,
        after: int | None = None,
        limit: int = 100,
        subscription: str | None = None,
        subscriber: str | None = None,
        wait: float = 0,
    ) -> NotificationPage:
        """A page of notifications after a cursor, or after what is acknowledged. `wait` is for the first: seconds."""
        return await self._ask(calls.read_notifications(after, limit, subscription, subscriber, wait))

    async def follow(
        self, after: int | None = None, subscription: str | None = None, subscriber: str | None = None
    ) -> AsyncIterator[ReceivedNotification]:
        """Notifications as they come, each once and in order, whatever happens to the connection. It never ends."""
        start = (await self.standing(subscriber)).acknowledged if after is None else after
        following = NotificationStream(start, subscription, subscriber, self._patience)
        while True:
            with suppress(httpx.TransportError):
                async with aclosing(self._streamed(following)) as streamed:
                    async for told in streamed:
                        yield told
            await asyncio.sleep(following.pause())

    async def _streamed(self, following: NotificationStream) -> AsyncGenerator[ReceivedNotification, None]:
        """What comes until the connection ends."""
        response = await self._http.send(following.request(self._http), stream=True)
        async with aclosing(response):
            if response.status_code != 200:
                await response.aread()
            if following.begun(response):
                async for line in response.aiter_lines():
                    if (told := following.take(line)) is not None:
                        yield told

    async def standing(self, subscriber: str | None = None) -> AckPosition:
        """Up to which number everything is acknowledged, and the last one there is."""
        return await self._ask(calls.read_position(subscriber))

    async def acknowledge(self, upto: int, subscriber: str | None = None) -> AckPosition:
        """Everything up to this number is dealt with; durable on return."""
        return await self._ask(calls.acknowledge(upto, subscriber))

    async def _ask(self, call: Call[T]) -> T:
        attempts = Attempts(call, self._patience)
        while True:
            try:
                response = await self._http.send(build_http_request(self._http, call))
                pause = attempts.refused(response)
                if pause is None:
                    return attempts.outcome(response)
            except httpx.TransportError as error:
                pause = attempts.failed(self.url, error)
            await asyncio.sleep(pause)

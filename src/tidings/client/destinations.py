"""Destinations, for both clients."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Iterator
from typing import Protocol, TypeVar

from tidings.client import destination_types
from tidings.client.calls import Call
from tidings.client.destination_types import DeadLetter, Destination, DestinationTest
from tidings.core.arguments import checks_arguments

T = TypeVar("T")


class SendCall(Protocol):
    """What sends a call and waits for its answer."""

    def __call__(self, call: Call[T]) -> T: ...


class SendCallAsync(Protocol):
    """The same, to be awaited."""

    def __call__(self, call: Call[T]) -> Awaitable[T]: ...


@checks_arguments
class Destinations:
    """Where a subscriber wants to be told: `client.destinations.add("webhook", "https://...")`."""

    def __init__(self, ask: SendCall) -> None:
        self._ask = ask

    def add(
        self,
        kind: str,
        target: str,
        subscription: str | None = None,
        name: str = "",
        subscriber: str | None = None,
    ) -> Destination:
        """Deliver to a target of a kind (webhook, apprise, kafka), of one subscription or of all. A webhook's secret is
        told here, and never again: so if the answer is lost, it is not tried again, and `list` shows what became of it.
        """
        return self._ask(destination_types.add(kind, target, subscription, name, subscriber))

    def list(self, subscriber: str | None = None) -> Iterator[Destination]:
        after: str | None = ""
        while after is not None:
            page = self._ask(destination_types.page(subscriber, after))
            yield from page.destinations
            after = page.next

    def find(self, id: str) -> Destination:
        return self._ask(destination_types.find(id))

    def change(self, id: str, target: str | None = None, name: str | None = None) -> Destination:
        return self._ask(destination_types.change(id, target, name))

    def remove(self, id: str) -> None:
        return self._ask(destination_types.remove(id))

    def pause(self, id: str) -> Destination:
        return self._ask(destination_types.apply_action(id, "pause"))

    def resume(self, id: str) -> Destination:
        return self._ask(destination_types.apply_action(id, "resume"))

    def rotate(self, id: str) -> Destination:
        """A new secret, which is told here; the one before signs, too, for a while."""
        return self._ask(destination_types.apply_action(id, "rotate"))

    def test(self, id: str) -> DestinationTest:
        """Send a sample now, and say what came back."""
        return self._ask(destination_types.test(id))

    def letters(self, id: str) -> Iterator[DeadLetter]:
        """What could not be delivered, oldest first."""
        after: int | None = 0
        while after is not None:
            page = self._ask(destination_types.list_dead_letters(id, after))
            yield from page.letters
            after = page.next

    def replay(self, id: str, number: int | None = None) -> int:
        """Try one dead letter again, or all of them; how many are."""
        return self._ask(destination_types.replay(id, number))


@checks_arguments
class AsyncDestinations:
    """The same, to be awaited."""

    def __init__(self, ask: SendCallAsync) -> None:
        self._ask = ask

    async def add(
        self,
        kind: str,
        target: str,
        subscription: str | None = None,
        name: str = "",
        subscriber: str | None = None,
    ) -> Destination:
        """As `Destinations.add`."""
        return await self._ask(destination_types.add(kind, target, subscription, name, subscriber))

    async def list(self, subscriber: str | None = None) -> AsyncIterator[Destination]:
        after: str | None = ""
        while after is not None:
            page = await self._ask(destination_types.page(subscriber, after))
            for one in page.destinations:
                yield one
            after = page.next

    async def find(self, id: str) -> Destination:
        return await self._ask(destination_types.find(id))

    async def change(self, id: str, target: str | None = None, name: str | None = None) -> Destination:
        return await self._ask(destination_types.change(id, target, name))

    async def remove(self, id: str) -> None:
        await self._ask(destination_types.remove(id))

    async def pause(self, id: str) -> Destination:
        return await self._ask(destination_types.apply_action(id, "pause"))

    async def resume(self, id: str) -> Destination:
        return await self._ask(destination_types.apply_action(id, "resume"))

    async def rotate(self, id: str) -> Destination:
        """A new secret, which is told here; the one before signs, too, for a while."""
        return await self._ask(destination_types.apply_action(id, "rotate"))

    async def test(self, id: str) -> DestinationTest:
        """Send a sample now, and say what came back."""
        return await self._ask(destination_types.test(id))

    async def letters(self, id: str) -> AsyncIterator[DeadLetter]:
        """What could not be delivered, oldest first."""
        after: int | None = 0
        while after is not None:
            page = await self._ask(destination_types.list_dead_letters(id, after))
            for one in page.letters:
                yield one
            after = page.next

    async def replay(self, id: str, number: int | None = None) -> int:
        """Try one dead letter again, or all of them; how many are."""
        return await self._ask(destination_types.replay(id, number))

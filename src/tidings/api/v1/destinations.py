"""Destinations of notifications: webhooks, Apprise services and Kafka topics.

    GET, POST           /v1/destinations
    GET, PATCH, DELETE  /v1/destinations/{id}
    POST                /v1/destinations/{id}/pause, resume, rotate, drop-old-secret, test
    GET                 /v1/destinations/{id}/letters             ?after=  &limit=
    POST                /v1/destinations/{id}/letters/replay
    POST                /v1/destinations/{id}/letters/{number}/replay

A secret is part of the response that creates it, and of no other. An administrator passes `subscriber`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from fastapi import APIRouter
from pydantic import Field

from tidings.api.authentication import SubscribeCaller, require_owner
from tidings.api.parameters import AfterId, AfterNumber, Id, Limit, Number, Subscriber, subscriber_of
from tidings.api.v1.route_classes import VersionedRoute, problem_descriptions
from tidings.api.v1.schemas import StrictModel, copy_fields
from tidings.api.write_limiter import WriteLimiter
from tidings.client.records import DeadLetter, DeliveryHealth, DestinationTest
from tidings.delivery.destinations import Destinations
from tidings.delivery.sql.destination_store import Destination, Health
from tidings.errors import NotFound
from tidings.service.authorization import Caller


class NewDestination(StrictModel):
    """A destination to create, for one subscription or for all of them."""

    kind: Literal["webhook", "apprise", "kafka"]
    target: str = Field(max_length=4_000)
    subscription: str | None = Field(default=None, max_length=500)
    name: str = Field(default="", max_length=200)


class Changes(StrictModel):
    """The members to change. Members that are left out stay unchanged."""

    target: str | None = Field(default=None, max_length=4_000)
    name: str | None = Field(default=None, max_length=200)


class DestinationView(StrictModel):
    """A destination without its secrets; the target omits credentials."""

    id: str
    subscriber: str
    subscription: str | None
    kind: str
    target: str
    name: str
    state: Literal["active", "paused", "disabled"]
    reason: str | None
    made: str
    old_secret_until: str | None
    health: DeliveryHealth
    dead_letters: int


class DestinationWithSecret(DestinationView):
    """A destination with the secret that was just created."""

    secret: str | None


class DestinationPage(StrictModel):
    """Destinations, ordered by id. The next page begins after `after`; null on the last page."""

    destinations: list[DestinationView]
    after: str | None


class DeadLetterPage(StrictModel):
    """Dead letters, oldest first. The next page begins after `after`; null on the last page."""

    letters: list[DeadLetter]
    after: int | None


class ReplayResult(StrictModel):
    """Number of dead letters that are delivered again."""

    replayed: int


class DestinationEndpoints:
    """Creates, lists, changes, tests and removes destinations, and replays dead letters."""

    def __init__(self, destinations: Destinations) -> None:
        self._destinations, self._store = destinations, destinations.store
        self._limiter = WriteLimiter(label="requests to other servers")

    async def add(
        self, caller: SubscribeCaller, body: NewDestination, subscriber: Subscriber = None
    ) -> DestinationWithSecret:
        """Create a destination. The response contains the secret of a webhook."""
        owner = subscriber_of(caller, subscriber)
        fields = body.kind, body.target, body.subscription, body.name
        return await self._limiter.run(lambda: self._with_secret(self._destinations.add(owner, *fields)))

    def page(
        self,
        caller: SubscribeCaller,
        subscriber: Subscriber = None,
        after: AfterId = "",
        limit: Limit = 100,
    ) -> DestinationPage:
        """List the destinations of a subscriber."""
        destinations = self._store.destinations.list(subscriber_of(caller, subscriber), after, limit)
        healths = self._store.destinations.health_of([destination.id for destination in destinations])
        views = [self._build_view(each, healths.get(each.id, Health())) for each in destinations]
        return DestinationPage(
            destinations=views, after=destinations[-1].id if len(destinations) == limit else None
        )

    def read(self, caller: SubscribeCaller, id: Id) -> DestinationView:
        """Read a destination with its health."""
        return self._view(self._find_own(caller, id))

    async def change(self, caller: SubscribeCaller, id: Id, body: Changes) -> DestinationView:
        """Change the target or the name. Pending retries are sent at once."""

        def work() -> DestinationView:
            self._find_own(caller, id)
            return self._view(self._destinations.change(id, body.target, body.name))

        return await self._limiter.run(work)

    def remove(self, caller: SubscribeCaller, id: Id) -> None:
        """Remove a destination and its dead letters."""
        self._find_own(caller, id)
        self._store.destinations.remove(id)

    def pause(self, caller: SubscribeCaller, id: Id) -> DestinationView:
        """Stop deliveries until the destination is resumed. Nothing is lost."""
        self._find_own(caller, id)
        self._store.destinations.pause(id)
        return self._view(self._destinations.find(id))

    def resume(self, caller: SubscribeCaller, id: Id) -> DestinationView:
        """Continue deliveries where they stopped, also after the service disabled the destination."""
        self._find_own(caller, id)
        self._store.destinations.resume(id)
        return self._view(self._destinations.find(id))

    def rotate(self, caller: SubscribeCaller, id: Id) -> DestinationWithSecret:
        """Create a new secret, which only this response contains. For a while the old one signs as well."""
        self._find_own(caller, id)
        return self._with_secret(self._destinations.rotate(id))

    def drop_old_secret(self, caller: SubscribeCaller, id: Id) -> DestinationView:
        """Sign with the new secret only, from now on."""
        self._find_own(caller, id)
        self._store.destinations.drop_old_secret(id)
        return self._view(self._destinations.find(id))

    async def test(self, caller: SubscribeCaller, id: Id) -> DestinationTest:
        """Send a sample now and return the outcome."""
        result = await self._limiter.run(lambda: self._destinations.test(self._find_own(caller, id)))
        return copy_fields(DestinationTest, result)

    def letters(
        self,
        caller: SubscribeCaller,
        id: Id,
        after: AfterNumber = 0,
        limit: Limit = 100,
    ) -> DeadLetterPage:
        """List the dead letters of a destination, oldest first."""
        self._find_own(caller, id)
        dead_letters = self._store.dead_deliveries.list(id, after, limit)
        last = dead_letters[-1].number if len(dead_letters) == limit else None
        return DeadLetterPage(
            letters=[copy_fields(DeadLetter, letter) for letter in dead_letters], after=last
        )

    def replay_all(self, caller: SubscribeCaller, id: Id) -> ReplayResult:
        """Deliver all dead letters of a destination again."""
        self._find_own(caller, id)
        return ReplayResult(replayed=self._store.dead_deliveries.replay(id))

    def replay(self, caller: SubscribeCaller, id: Id, number: Number) -> ReplayResult:
        """Deliver one dead letter again."""
        self._find_own(caller, id)
        letters = self._store.dead_deliveries.list(id, number - 1, 1)
        if not letters or letters[0].number != number:
            raise NotFound("there is no such dead letter", received=str(number))
        return ReplayResult(replayed=self._store.dead_deliveries.replay(id, number))

    def _find_own(self, caller: Caller, id: str) -> Destination:
        """Return a destination of the caller's; those of others do not exist for them."""
        destination = self._store.destinations.find(id) if id.isprintable() else None
        if destination is None:
            raise NotFound("there is no such destination")
        require_owner(caller, destination.subscriber, "destination")
        return destination

    def _view(self, destination: Destination) -> DestinationView:
        health = self._store.destinations.health_of([destination.id]).get(destination.id, Health())
        return self._build_view(destination, health)

    def _with_secret(self, destination: Destination) -> DestinationWithSecret:
        return DestinationWithSecret(**self._view(destination).model_dump(), secret=destination.secret)

    def _build_view(self, destination: Destination, health: Health) -> DestinationView:
        return DestinationView(
            id=destination.id,
            subscriber=destination.subscriber,
            subscription=destination.subscription,
            kind=destination.kind,
            target=self._destinations.mask_target(destination),
            name=destination.name,
            state=destination.state,  # type: ignore[arg-type]
            reason=destination.reason,
            made=destination.made,
            old_secret_until=destination.old_until,
            health=copy_fields(DeliveryHealth, health),
            dead_letters=self._store.dead_deliveries.count(destination.id),
        )


def router_for(destinations: Destinations) -> APIRouter:
    endpoints = DestinationEndpoints(destinations)
    router = APIRouter(prefix="/v1/destinations", tags=["destinations"], route_class=VersionedRoute)
    router.add_api_route("", endpoints.page)
    router.add_api_route(
        "", endpoints.add, methods=["POST"], status_code=201, responses=problem_descriptions(404, 409)
    )
    router.add_api_route("/{id}", endpoints.read)
    router.add_api_route("/{id}", endpoints.change, methods=["PATCH"], responses=problem_descriptions(409))
    router.add_api_route("/{id}", endpoints.remove, methods=["DELETE"], status_code=204)
    posts: dict[str, Callable[..., Any]] = {
        "pause": endpoints.pause,
        "resume": endpoints.resume,
        "rotate": endpoints.rotate,
    }
    posts |= {"drop-old-secret": endpoints.drop_old_secret, "test": endpoints.test}
    posts |= {"letters/replay": endpoints.replay_all, "letters/{number}/replay": endpoints.replay}
    for path, work in posts.items():
        router.add_api_route(f"/{{id}}/{path}", work, methods=["POST"])
    router.add_api_route("/{id}/letters", endpoints.letters)
    return router

"""Destinations over HTTP: where a subscriber wants to be told.

    GET, POST           /v1/destinations
    GET, PATCH, DELETE  /v1/destinations/{id}
    POST                /v1/destinations/{id}/pause, resume, rotate, drop-old-secret, test
    GET                 /v1/destinations/{id}/letters             ?after=  &limit=
    POST                /v1/destinations/{id}/letters/replay
    POST                /v1/destinations/{id}/letters/{number}/replay

A secret is told when it is made, and never again. An administrator says with `subscriber` whose destinations are meant.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, ConfigDict, Field

from tidings.api.authentication import SubscribeCaller, require_owner
from tidings.api.middleware.write_limiter import WriteLimiter
from tidings.api.v1.notifications import subscriber_of
from tidings.api.v1.route_classes import VersionedRoute, problem_descriptions
from tidings.core.storable import LARGEST_INTEGER
from tidings.delivery.destinations import Destinations, SampleResult
from tidings.delivery.sql.dead_deliveries import DeadDelivery
from tidings.delivery.sql.destination_store import Destination, Health
from tidings.errors import Absent
from tidings.service.access import Caller

# What the API takes and answers about destinations, as types: the OpenAPI document is made of them.


class DestinationRequest(BaseModel):
    model_config = ConfigDict(extra="forbid")


class NewDestination(DestinationRequest):
    """Where to deliver what: to a target of a kind, of one subscription or of all."""

    kind: Literal["webhook", "apprise", "kafka"]
    target: str = Field(max_length=4_000)
    subscription: str | None = Field(default=None, max_length=500)
    name: str = Field(default="", max_length=200)


class Changes(DestinationRequest):
    """What is left out stays as it is."""

    target: str | None = Field(default=None, max_length=4_000)
    name: str | None = Field(default=None, max_length=200)


class ShownHealth(BaseModel):
    """How deliveries go."""

    delivered: int
    last_success: str | None
    consecutive_failures: int
    last_failure: str | None
    last_error: str | None


class ShownDestination(BaseModel):
    """A destination without its secrets: of the target, what may be shown."""

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
    health: ShownHealth
    dead_letters: int


class DestinationWithSecret(ShownDestination):
    """The same when a secret was made: it is not told again."""

    secret: str | None


class DestinationPage(BaseModel):
    """Destinations by id; the next page begins after `after`, if there is one."""

    destinations: list[ShownDestination]
    after: str | None


class ShownLetter(BaseModel):
    """The entries `first` to `last` of a subscription that were not taken; `due` is when they are tried again."""

    number: int
    subscription: str
    first: int
    last: int
    digest: bool
    message: str
    problem: str
    attempts: int
    time: str
    due: str | None


class LetterPage(BaseModel):
    letters: list[ShownLetter]
    after: int | None


class ReplayResult(BaseModel):
    """How many are tried again now."""

    replayed: int


class TestResult(BaseModel):
    """What came back for a sample."""

    taken: bool
    seconds: float
    status: int | None
    problem: str | None


Id = Annotated[str, Path(max_length=500)]
Number = Annotated[int, Path(ge=1, le=LARGEST_INTEGER)]
Subscriber = Annotated[
    str | None, Query(max_length=500, description="Whose destinations: an administrator names them.")
]
Limit = Annotated[int, Query(ge=1, le=1_000)]


class DestinationEndpoints:
    """Answers subscribers about their destinations."""

    def __init__(self, destinations: Destinations) -> None:
        self._all, self._store = destinations, destinations.store
        self._outside = WriteLimiter(what="requests to look at an address")

    async def add(
        self, caller: SubscribeCaller, given: NewDestination, subscriber: Subscriber = None
    ) -> DestinationWithSecret:
        """Make a destination. A webhook has a secret, which is told here."""
        who = subscriber_of(caller, subscriber)
        wanted = given.kind, given.target, given.subscription, given.name
        return await self._outside.run(lambda: self._with_secret(self._all.add(who, *wanted)))

    def page(
        self,
        caller: SubscribeCaller,
        subscriber: Subscriber = None,
        after: Annotated[str, Query(max_length=500)] = "",
        limit: Limit = 100,
    ) -> DestinationPage:
        """A subscriber's destinations."""
        found = self._store.destinations.list(subscriber_of(caller, subscriber), after, limit)
        healths = self._store.destinations.health_of([one.id for one in found])
        shown = [self._shown(one, healths.get(one.id, Health())) for one in found]
        return DestinationPage(destinations=shown, after=found[-1].id if len(found) == limit else None)

    def read(self, caller: SubscribeCaller, id: Id) -> ShownDestination:
        """A destination, with how it does."""
        return self._one(self._mine(caller, id))

    async def change(self, caller: SubscribeCaller, id: Id, given: Changes) -> ShownDestination:
        """Change the target or the name. What waits to be tried again is tried now."""

        def work() -> ShownDestination:
            self._mine(caller, id)
            return self._one(self._all.change(id, given.target, given.name))

        return await self._outside.run(work)

    def remove(self, caller: SubscribeCaller, id: Id) -> None:
        """Forget a destination and its dead letters."""
        self._mine(caller, id)
        self._store.destinations.remove(id)

    def pause(self, caller: SubscribeCaller, id: Id) -> ShownDestination:
        """Deliver nothing until it is resumed; nothing is lost meanwhile."""
        self._mine(caller, id)
        self._store.destinations.pause(id)
        return self._one(self._all.find(id))

    def resume(self, caller: SubscribeCaller, id: Id) -> ShownDestination:
        """Go on where it was, also after it was disabled."""
        self._mine(caller, id)
        self._store.destinations.resume(id)
        return self._one(self._all.find(id))

    def rotate(self, caller: SubscribeCaller, id: Id) -> DestinationWithSecret:
        """A new secret, which is told here. The one before signs, too, for a while."""
        self._mine(caller, id)
        return self._with_secret(self._all.rotate(id))

    def drop_old_secret(self, caller: SubscribeCaller, id: Id) -> ShownDestination:
        """Sign with the new secret only, from now on."""
        self._mine(caller, id)
        self._store.destinations.drop_old_secret(id)
        return self._one(self._all.find(id))

    async def test(self, caller: SubscribeCaller, id: Id) -> TestResult:
        """Send a sample now, and say what came back."""
        tested: SampleResult = await self._outside.run(lambda: self._all.test(self._mine(caller, id)))
        return TestResult(
            taken=tested.taken, seconds=tested.seconds, status=tested.status, problem=tested.problem
        )

    def letters(
        self,
        caller: SubscribeCaller,
        id: Id,
        after: Annotated[int, Query(ge=0, le=LARGEST_INTEGER)] = 0,
        limit: Limit = 100,
    ) -> LetterPage:
        """The dead letters of a destination, oldest first."""
        self._mine(caller, id)
        found = self._store.dead_deliveries.list(id, after, limit)
        last = found[-1].number if len(found) == limit else None
        return LetterPage(letters=[_letter(one) for one in found], after=last)

    def replay_all(self, caller: SubscribeCaller, id: Id) -> ReplayResult:
        """Try all dead letters of a destination again."""
        self._mine(caller, id)
        return ReplayResult(replayed=self._store.dead_deliveries.replay(id))

    def replay(self, caller: SubscribeCaller, id: Id, number: Number) -> ReplayResult:
        """Try one dead letter again."""
        self._mine(caller, id)
        found = self._store.dead_deliveries.list(id, number - 1, 1)
        if not found or found[0].number != number:
            raise Absent("there is no such dead letter", received=str(number))
        return ReplayResult(replayed=self._store.dead_deliveries.replay(id, number))

    def _mine(self, caller: Caller, id: str) -> Destination:
        """What is somebody else's is not there."""
        found = self._store.destinations.find(id) if id.isprintable() else None
        if found is None:
            raise Absent("there is no such destination")
        require_owner(caller, found.subscriber, "destination")
        return found

    def _one(self, one: Destination) -> ShownDestination:
        return self._shown(one, self._store.destinations.health_of([one.id]).get(one.id, Health()))

    def _with_secret(self, one: Destination) -> DestinationWithSecret:
        return DestinationWithSecret(**self._one(one).model_dump(), secret=one.secret)

    def _shown(self, one: Destination, health: Health) -> ShownDestination:
        return ShownDestination(
            id=one.id,
            subscriber=one.subscriber,
            subscription=one.subscription,
            kind=one.kind,
            target=self._all.shown(one),
            name=one.name,
            state=one.state,  # type: ignore[arg-type]
            reason=one.reason,
            made=one.made,
            old_secret_until=one.old_until,
            health=ShownHealth(**{name: getattr(health, name) for name in ShownHealth.model_fields}),
            dead_letters=self._store.dead_deliveries.count(one.id),
        )


def _letter(one: DeadDelivery) -> ShownLetter:
    return ShownLetter(**{name: getattr(one, name) for name in ShownLetter.model_fields})


def router_for(destinations: Destinations) -> APIRouter:
    """The endpoints."""
    serving = DestinationEndpoints(destinations)
    router = APIRouter(prefix="/v1/destinations", tags=["destinations"], route_class=VersionedRoute)
    router.add_api_route("", serving.page)
    router.add_api_route(
        "", serving.add, methods=["POST"], status_code=201, responses=problem_descriptions(404, 409)
    )
    router.add_api_route("/{id}", serving.read)
    router.add_api_route("/{id}", serving.change, methods=["PATCH"], responses=problem_descriptions(409))
    router.add_api_route("/{id}", serving.remove, methods=["DELETE"], status_code=204)
    posts: dict[str, Callable[..., Any]] = {
        "pause": serving.pause,
        "resume": serving.resume,
        "rotate": serving.rotate,
    }
    posts |= {"drop-old-secret": serving.drop_old_secret, "test": serving.test}
    posts |= {"letters/replay": serving.replay_all, "letters/{number}/replay": serving.replay}
    for path, work in posts.items():
        router.add_api_route(f"/{{id}}/{path}", work, methods=["POST"])
    router.add_api_route("/{id}/letters", serving.letters)
    return router

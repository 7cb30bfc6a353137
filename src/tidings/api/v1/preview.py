"""A subscription before it is one: what it would be, and what it would have matched.

POST   /v1/check       {"language", "text"}
POST   /v1/preview     {"language", "text", "last", "subscriber"}
"""

from __future__ import annotations

from functools import partial

from fastapi import APIRouter
from fastapi.concurrency import run_in_threadpool

from tidings.api.authentication import SubscribeCaller
from tidings.api.middleware.write_limiter import WriteLimiter
from tidings.api.v1 import schemas
from tidings.api.v1.limits import Limits
from tidings.api.v1.notifications import subscriber_of
from tidings.api.v1.publications import MAX_PREVIEW_BYTES, build_publication
from tidings.api.v1.route_classes import VersionedRoute
from tidings.api.v1.schemas import Reason
from tidings.errors import OverLimit
from tidings.reasons import in_words
from tidings.service.access import Caller
from tidings.service.preview import PreviewBounds, PreviewMatch, preview_subscription
from tidings.service.tidings import Tidings

DEFAULT_LAST = 100
"""How many publications are looked at if nobody says how many."""
AT_ONCE, WAITING = 2, 20
"""How many previews are made at a time, and how many wait for their turn: each takes a processor for itself."""


class PreviewEndpoints:
    """Looks at texts as somebody types them."""

    def __init__(self, tidings: Tidings, limits: Limits) -> None:
        self._tidings, self._limits = tidings, limits
        self._subscribing = tidings.subscribing(limits.of_subscriptions)
        self._turns = WriteLimiter(AT_ONCE, WAITING, "previews")

    async def check(self, caller: SubscribeCaller, asked: schemas.SubscriptionText) -> schemas.CheckResult:
        """What a text would be as a subscription, or what is wrong with it and where. Nothing is kept."""
        found = await run_in_threadpool(self._subscribing.check, asked.language, asked.text)
        return schemas.CheckResult(
            language=asked.language,
            predicates=found.predicates,
            reached_through=found.reached_through,
            warnings=schemas.warnings_of(found.warnings),
        )

    async def preview(self, caller: SubscribeCaller, asked: schemas.PreviewRequest) -> schemas.Preview:
        """Which of the last publications a text would have matched, newest first, and why. Nothing is kept."""
        last = asked.last or min(DEFAULT_LAST, self._limits.preview)
        if last > self._limits.preview:
            problem = OverLimit("too many publications", accepted=f"{self._limits.preview:,}")
            problem.pointer = "/last"
            raise problem
        return await self._turns.run(partial(self._previewed, caller, asked, last))

    def _previewed(self, caller: Caller, asked: schemas.PreviewRequest, last: int) -> schemas.Preview:
        limits, schema = self._limits, self._tidings.checked_against()
        bounds = PreviewBounds(last, limits.preview_bytes, limits.preview_seconds)
        store, tables = self._tidings.store, self._tidings.preview_tables
        sees_all = caller.is_administrator and asked.subscriber is None
        granted = None if sees_all else store.audiences.of(subscriber_of(caller, asked.subscriber))
        found = preview_subscription(
            store, tables, self._subscribing, schema, asked.language, asked.text, bounds, granted
        )
        return schemas.Preview(
            looked_at=found.looked_at,
            complete=found.complete,
            matches=[_match(one) for one in found.matches],
            skipped=found.skipped,
            notes=found.notes,
            warnings=schemas.warnings_of(found.warnings),
        )


def _match(one: PreviewMatch) -> schemas.PreviewMatch:
    because = [Reason(predicate=each.predicate, value=each.value, at=each.at) for each in one.because]
    words = in_words(one.because, one.bindings)
    return schemas.PreviewMatch(
        publication=build_publication(one.entry, MAX_PREVIEW_BYTES),
        because=because,
        bindings=one.bindings,
        words=words,
    )


def router_for(tidings: Tidings, limits: Limits) -> APIRouter:
    """The endpoints."""
    found = PreviewEndpoints(tidings, limits)
    router = APIRouter(prefix="/v1", tags=["subscriptions"], route_class=VersionedRoute)
    router.add_api_route("/check", found.check, methods=["POST"])
    router.add_api_route("/preview", found.preview, methods=["POST"])
    return router

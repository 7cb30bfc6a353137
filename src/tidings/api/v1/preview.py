"""Check and preview of a subscription text: whether it compiles, and what it would have matched.

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
from tidings.notification_text import list_reasons
from tidings.service.authorization import Caller
from tidings.service.preview import PreviewBounds, PreviewMatch, preview_subscription
from tidings.service.tidings import Tidings

DEFAULT_LAST = 100
"""Publications that a preview examines by default."""
AT_ONCE, WAITING = 2, 20
"""Previews that run at the same time, and that may wait: each occupies one processor."""


class PreviewEndpoints:
    """Checks and previews texts without storing anything."""

    def __init__(self, tidings: Tidings, limits: Limits) -> None:
        self._tidings, self._limits = tidings, limits
        self._subscribing = tidings.subscribing(limits.of_subscriptions)
        self._limiter = WriteLimiter(AT_ONCE, WAITING, "previews")

    async def check(self, caller: SubscribeCaller, asked: schemas.SubscriptionText) -> schemas.CheckResult:
        """Compile a text without subscribing. Errors name the place that is wrong."""
        result = await run_in_threadpool(self._subscribing.check, asked.language, asked.text)
        return schemas.CheckResult(
            language=asked.language,
            predicates=result.predicates,
            reached_through=result.reached_through,
            warnings=schemas.build_warnings(result.warnings),
        )

    async def preview(self, caller: SubscribeCaller, asked: schemas.PreviewRequest) -> schemas.Preview:
        """Find which of the latest publications a text would have matched, newest first, and why."""
        last = asked.last or min(DEFAULT_LAST, self._limits.preview)
        if last > self._limits.preview:
            problem = OverLimit("too many publications", accepted=f"{self._limits.preview:,}")
            problem.pointer = "/last"
            raise problem
        return await self._limiter.run(partial(self._run_preview, caller, asked, last))

    def _run_preview(self, caller: Caller, asked: schemas.PreviewRequest, last: int) -> schemas.Preview:
        limits, schema = self._limits, self._tidings.checked_against()
        bounds = PreviewBounds(last, limits.preview_bytes, limits.preview_seconds)
        store, tables = self._tidings.store, self._tidings.preview_tables
        sees_all = caller.is_administrator and asked.subscriber is None
        granted = None if sees_all else store.audiences.of(subscriber_of(caller, asked.subscriber))
        preview = preview_subscription(
            store, tables, self._subscribing, schema, asked.language, asked.text, bounds, granted
        )
        return schemas.Preview(
            looked_at=preview.looked_at,
            complete=preview.complete,
            matches=[_build_match(match) for match in preview.matches],
            skipped=preview.skipped,
            notes=preview.notes,
            warnings=schemas.build_warnings(preview.warnings),
        )


def _build_match(match: PreviewMatch) -> schemas.PreviewMatch:
    return schemas.PreviewMatch(
        publication=build_publication(match.entry, MAX_PREVIEW_BYTES),
        because=[Reason(predicate=why.predicate, value=why.value, at=why.at) for why in match.because],
        bindings=match.bindings,
        words=list_reasons(match.because, match.bindings),
    )


def router_for(tidings: Tidings, limits: Limits) -> APIRouter:
    endpoints = PreviewEndpoints(tidings, limits)
    router = APIRouter(prefix="/v1", tags=["subscriptions"], route_class=VersionedRoute)
    router.add_api_route("/check", endpoints.check, methods=["POST"])
    router.add_api_route("/preview", endpoints.preview, methods=["POST"])
    return router

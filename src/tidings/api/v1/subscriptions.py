"""Subscriptions in all languages, and checks and previews of their texts.

    POST    /v1/subscriptions               {"language", "text", "within", "id", "subscriber", "state"}, or JSON lines
    GET     /v1/subscriptions               ?q=  &language=  &state=  &subscriber=  &after=  &limit=
    GET     /v1/subscriptions/{id}          PUT, PATCH and DELETE the same
    POST    /v1/subscriptions/{id}/pause
    POST    /v1/subscriptions/{id}/resume
    POST    /v1/check                       {"language", "text"}: whether it compiles
    POST    /v1/preview                     {"language", "text", "last", "subscriber"}: its recent matches

Subscriptions of other subscribers are answered with 404, as if they did not exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Query, Response
from fastapi.concurrency import run_in_threadpool

from tidings.api.authentication import SubscribeCaller
from tidings.api.limits import Limits
from tidings.api.parameters import AfterId, Limit, subscriber_of
from tidings.api.routes import join_routers
from tidings.api.v1 import schemas
from tidings.api.v1.bulk import BulkSubscribe, LinesRoute
from tidings.api.v1.openapi import TEXT_SCHEMA
from tidings.api.v1.publications import MAX_PREVIEW_BYTES, build_publication
from tidings.api.v1.route_classes import ActionRoute, VersionedRoute, problem_descriptions
from tidings.api.write_limiter import WriteLimiter
from tidings.client.records import Health
from tidings.core import durations
from tidings.errors import LimitExceeded, NotFound, pointing
from tidings.ingest.submission import JSON_LINES_TYPES
from tidings.model import Subscription
from tidings.notification_text import list_reasons
from tidings.service.authorization import Caller
from tidings.service.preview import PreviewBounds, PreviewMatch, preview_subscription
from tidings.service.subscriptions import (
    AcceptedSubscription,
    SubscriptionHealth,
    build_wanted,
    parse_delay,
    read_health,
)
from tidings.service.tidings import Tidings
from tidings.store.subscriptions.view import PAUSED, RULES, SubscriptionFilter, SubscriptionStatus

Q = Annotated[
    str | None, Query(max_length=500, description="Only subscriptions whose text or id contains it.")
]
Language = Annotated[str | None, Query(max_length=100, description="Only subscriptions in this language.")]
State = Annotated[schemas.State | None, Query(description="Only active, or only paused subscriptions.")]
SubscriberFilter = Annotated[
    str | None, Query(max_length=500, description="Only subscriptions of this subscriber.")
]

DEFAULT_LAST = 100
"""Publications that a preview examines by default."""
PREVIEW_THREADS, PREVIEW_QUEUE = 2, 20
"""Previews that run at the same time, and that may wait: each occupies one processor."""


class SubscriptionEndpoints:
    """Creates, lists, changes, pauses and removes subscriptions."""

    def __init__(self, tidings: Tidings, limits: Limits) -> None:
        self._store = tidings.store
        self._subscribing = tidings.subscribing(limits.of_subscriptions)

    def create(
        self, caller: SubscribeCaller, body: schemas.NewSubscription, response: Response
    ) -> schemas.Subscription:
        """Subscribe. The subscription is matched from the stream's next batch on.

        With JSON lines as the body, each line is a subscription, and the response has an outcome for each.
        """
        with pointing("/subscriber"):
            subscriber = caller.resolve_subscriber(body.subscriber)
        subscription = build_wanted(subscriber, body.text, body.language, body.id, body.within)
        existing = self._store.subscription_view.find(subscription.id) if subscription.id else None
        accepted = self._subscribing.subscribe(subscription, paused=body.state == PAUSED)
        response.headers["Location"] = f"/v1/subscriptions/{quote(accepted.id, safe='')}"
        response.status_code = 200 if existing else 201
        has_no_history = not subscription.id and accepted.language != RULES and body.state != PAUSED
        return _build_new(accepted) if has_no_history else self._read_accepted(caller, accepted)

    def page(
        self,
        caller: SubscribeCaller,
        q: Q = None,
        language: Language = None,
        state: State = None,
        subscriber: SubscriberFilter = None,
        after: AfterId = "",
        limit: Limit = 100,
    ) -> schemas.SubscriptionPage:
        """List subscriptions with their health, ordered by id. Administrators see those of all subscribers."""
        is_all = caller.is_administrator and subscriber is None
        whose = None if is_all else caller.resolve_subscriber(subscriber)
        statuses = self._store.subscription_view.page(
            SubscriptionFilter(after, whose, language, state, q), limit + 1
        )
        page = statuses[:limit]
        following = page[-1].subscription.id if len(statuses) > limit else None
        return schemas.SubscriptionPage(subscriptions=self._with_health(page), next=following)

    def find(self, caller: SubscribeCaller, id: str) -> schemas.Subscription:
        """Read a subscription with its health."""
        return self._with_health([self._subscribing.find(id, _owner_filter(caller))])[0]

    def replace(self, caller: SubscribeCaller, id: str, body: schemas.Replacement) -> schemas.Subscription:
        """Replace the text and the delay. The stream's next batch matches the new text only."""
        changed = self._subscribing.change(id, body.text, parse_delay(body.within), _owner_filter(caller))
        return self._read_accepted(caller, changed)

    def change(self, caller: SubscribeCaller, id: str, body: schemas.Change) -> schemas.Subscription:
        """Change the text or the delay. Members that are left out stay unchanged."""
        current = self._subscribing.find(id, _owner_filter(caller))
        is_named = "within" in body.model_fields_set
        within = parse_delay(body.within) if is_named else current.subscription.within
        return self._read_accepted(
            caller, self._subscribing.change(id, body.text, within, _owner_filter(caller))
        )

    def pause(self, caller: SubscribeCaller, id: str) -> schemas.Subscription:
        """Stop matching a subscription until it is resumed."""
        return self._with_health([self._subscribing.pause(id, _owner_filter(caller))])[0]

    def resume(self, caller: SubscribeCaller, id: str) -> schemas.Subscription:
        """Continue to match a subscription.

        Publications of the meantime are not matched. A rule notifies about everything that became different.
        """
        return self._with_health([self._subscribing.resume(id, _owner_filter(caller))])[0]

    def remove(self, caller: SubscribeCaller, id: str) -> Response:
        """Delete a subscription. Its notifications stay."""
        self._subscribing.find(id, _owner_filter(caller))
        if not self._subscribing.remove([id], _owner_filter(caller)):
            raise NotFound("there is no such subscription", received=repr(id)[:200])
        return Response(status_code=204)

    def _read_accepted(self, caller: Caller, accepted: AcceptedSubscription) -> schemas.Subscription:
        stored = self._with_health([self._subscribing.find(accepted.id, _owner_filter(caller))])[0]
        return stored.model_copy(update=_text_facts(accepted))

    def _with_health(self, statuses: Sequence[SubscriptionStatus]) -> list[schemas.Subscription]:
        healths = read_health(self._store, [status.subscription for status in statuses])
        return [_build_subscription(status, healths[status.subscription.id]) for status in statuses]


def _owner_filter(caller: Caller) -> str | None:
    """Return the subscriber whose subscriptions a caller sees; `None` for an administrator, who sees all."""
    return None if caller.is_administrator else caller.resolve_subscriber(None)


def _build_subscription(status: SubscriptionStatus, health: SubscriptionHealth) -> schemas.Subscription:
    subscription = status.subscription
    return schemas.Subscription(
        id=subscription.id,
        subscriber=subscription.subscriber,
        language=subscription.language,
        text=subscription.text,
        within=None if subscription.within is None else durations.show(subscription.within),
        state="paused" if status.paused else "active",
        paused=status.paused,
        reason=status.reason,
        health=schemas.copy_fields(Health, health),
    )


def _build_new(accepted: AcceptedSubscription) -> schemas.Subscription:
    """Return a subscription with a new id: it has no history, so the store does not have to be read."""
    subscription = Subscription(
        accepted.id, accepted.subscriber, accepted.language, accepted.text, accepted.within
    )
    built = _build_subscription(SubscriptionStatus(subscription), SubscriptionHealth())
    return built.model_copy(update=_text_facts(accepted))


def _text_facts(accepted: AcceptedSubscription) -> dict[str, Any]:
    """Return the members that are known because the text has just been compiled."""
    return {
        "predicates": accepted.predicates,
        "reached_through": accepted.reached_through,
        "warnings": schemas.build_warnings(accepted.warnings),
    }


class PreviewEndpoints:
    """Checks and previews texts without storing anything."""

    def __init__(self, tidings: Tidings, limits: Limits) -> None:
        self._tidings, self._limits = tidings, limits
        self._subscribing = tidings.subscribing(limits.of_subscriptions)
        self._limiter = WriteLimiter(PREVIEW_THREADS, PREVIEW_QUEUE, "previews")

    async def check(self, caller: SubscribeCaller, body: schemas.SubscriptionText) -> schemas.CheckResult:
        """Compile a text without subscribing. Errors name the place that is wrong."""
        result = await run_in_threadpool(self._subscribing.check, body.language, body.text)
        return schemas.CheckResult(
            language=body.language,
            predicates=result.predicates,
            reached_through=result.reached_through,
            warnings=schemas.build_warnings(result.warnings),
        )

    async def preview(self, caller: SubscribeCaller, body: schemas.PreviewRequest) -> schemas.Preview:
        """Find which of the latest publications a text would have matched, newest first, and why."""
        last = body.last or min(DEFAULT_LAST, self._limits.preview)
        if last > self._limits.preview:
            problem = LimitExceeded("too many publications", accepted=f"{self._limits.preview:,}")
            problem.pointer = "/last"
            raise problem
        return await self._limiter.run(partial(self._run_preview, caller, body, last))

    def _run_preview(self, caller: Caller, body: schemas.PreviewRequest, last: int) -> schemas.Preview:
        limits, schema = self._limits, self._tidings.checked_against()
        bounds = PreviewBounds(last, limits.preview_bytes, limits.preview_seconds)
        store, tables = self._tidings.store, self._tidings.preview_tables
        sees_all = caller.is_administrator and body.subscriber is None
        granted = None if sees_all else store.audiences.of(subscriber_of(caller, body.subscriber))
        preview = preview_subscription(
            store, tables, self._subscribing, schema, body.language, body.text, bounds, granted
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
        because=[
            schemas.Reason(predicate=why.predicate, value=why.value, at=why.at) for why in match.because
        ],
        bindings=match.bindings,
        words=list_reasons(match.because, match.bindings),
    )


def router_for(tidings: Tidings, limits: Limits) -> APIRouter:
    endpoints = SubscriptionEndpoints(tidings, limits)
    router = APIRouter(prefix="/v1/subscriptions", tags=["subscriptions"], route_class=VersionedRoute)
    add, item = router.add_api_route, "/{id:path}"
    model = schemas.Subscription | schemas.SubscribeOutcomes
    responses: dict[int | str, dict[str, Any]] = {
        200: {"model": model, "description": "Already subscribed before"},
        207: {"model": schemas.SubscribeOutcomes, "description": "Some lines of a bulk request were refused"},
    }
    lines = {
        "schema": TEXT_SCHEMA,
        "example": '{"text": "price < 200"}\n{"text": "price < 100", "id": "cheap"}\n',
    }
    content = {"requestBody": {"content": dict.fromkeys(sorted(JSON_LINES_TYPES), lines)}}
    bulk = BulkSubscribe(tidings, limits)
    add("", bulk.create, methods=["POST"], route_class_override=LinesRoute, include_in_schema=False)
    add(
        "",
        endpoints.create,
        methods=["POST"],
        status_code=201,
        response_model=model,
        responses=responses | problem_descriptions(409),
        openapi_extra=content,
    )
    add("", endpoints.page, methods=["GET"])
    add_action = partial(add, methods=["POST"], route_class_override=ActionRoute)
    add_action(f"{item}/pause", endpoints.pause, responses=problem_descriptions(409))
    add_action(f"{item}/resume", endpoints.resume, responses=problem_descriptions(409, 422))
    add(item, endpoints.find, methods=["GET"])
    add(item, endpoints.replace, methods=["PUT"], responses=problem_descriptions(409))
    add(item, endpoints.change, methods=["PATCH"], responses=problem_descriptions(409))
    add(item, endpoints.remove, methods=["DELETE"], status_code=204)
    previews = APIRouter(prefix="/v1", tags=["subscriptions"], route_class=VersionedRoute)
    preview_endpoints = PreviewEndpoints(tidings, limits)
    previews.add_api_route("/check", preview_endpoints.check, methods=["POST"])
    previews.add_api_route("/preview", preview_endpoints.preview, methods=["POST"])
    join_routers(router, previews)
    return router

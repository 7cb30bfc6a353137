"""Subscriptions over HTTP, of all languages.

    POST    /v1/subscriptions               {"language", "text", "within", "id", "subscriber", "state"}, or a line each
    GET     /v1/subscriptions               ?q=  &language=  &state=  &subscriber=  &after=  &limit=
    GET     /v1/subscriptions/{id}          PUT, PATCH and DELETE the same
    POST    /v1/subscriptions/{id}/pause
    POST    /v1/subscriptions/{id}/resume

Somebody else's are answered as if they were not there.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Query, Response

from tidings.api.authentication import SubscribeCaller
from tidings.api.v1 import schemas
from tidings.api.v1.bulk_subscribe import BulkSubscribe, LinesRoute
from tidings.api.v1.limits import Limits
from tidings.api.v1.openapi import TEXT_SCHEMA
from tidings.api.v1.route_classes import ActionRoute, VersionedRoute, problem_descriptions
from tidings.core import durations
from tidings.errors import Absent, pointing
from tidings.model import Subscription
from tidings.service.access import Caller
from tidings.service.submission import JSON_LINES_TYPES
from tidings.service.subscriptions import (
    AcceptedSubscription,
    SubscriptionHealth,
    build_wanted,
    parse_delay,
    read_health,
)
from tidings.service.tidings import Tidings
from tidings.store.subscriptions.view import PAUSED, RULES, SubscriptionFilter, SubscriptionStatus

Q = Annotated[str | None, Query(max_length=500, description="Only those with this in their text or id.")]
Language = Annotated[str | None, Query(max_length=100, description="Only those in this language.")]
State = Annotated[schemas.State | None, Query(description="Only active or paused ones.")]
Whose = Annotated[str | None, Query(max_length=500, description="Only this subscriber's.")]
After = Annotated[
    str, Query(max_length=500, description="Only those after this id: `next` of the page before.")
]
Limit = Annotated[int, Query(ge=1, le=1_000)]


class SubscriptionEndpoints:
    """Takes subscriptions, shows, changes, pauses and removes them."""

    def __init__(self, tidings: Tidings, limits: Limits) -> None:
        self._store = tidings.store
        self._subscribing = tidings.subscribing(limits.of_subscriptions)

    def create(
        self, caller: SubscribeCaller, asked: schemas.NewSubscription, response: Response
    ) -> schemas.Subscription:
        """Take a subscription, or refuse it with the reason. It counts from the stream's next batch on.

        As lines of JSON, many are taken, each for itself, and the answer has an outcome for each.
        """
        with pointing("/subscriber"):
            subscriber = caller.acting_as(asked.subscriber)
        wanted = build_wanted(subscriber, asked.text, asked.language, asked.id, asked.within)
        known = self._store.subscription_view.find(wanted.id) if wanted.id else None
        taken = self._subscribing.subscribe(wanted, paused=asked.state == PAUSED)
        response.headers["Location"] = f"/v1/subscriptions/{quote(taken.id, safe='')}"
        response.status_code = 200 if known else 201
        is_unheard_of = not wanted.id and taken.language != RULES and asked.state != PAUSED
        return _new(taken) if is_unheard_of else self._told(caller, taken)

    def page(
        self,
        caller: SubscribeCaller,
        q: Q = None,
        language: Language = None,
        state: State = None,
        subscriber: Whose = None,
        after: After = "",
        limit: Limit = 100,
    ) -> schemas.SubscriptionPage:
        """Subscriptions with their health, in the order of their ids: one's own, or those an administrator chooses."""
        is_all = caller.is_administrator and subscriber is None
        whose = None if is_all else caller.acting_as(subscriber)
        found = self._store.subscription_view.page(
            SubscriptionFilter(after, whose, language, state, q), limit + 1
        )
        page = found[:limit]
        following = page[-1].subscription.id if len(found) > limit else None
        return schemas.SubscriptionPage(subscriptions=self._shown(page), next=following)

    def find(self, caller: SubscribeCaller, id: str) -> schemas.Subscription:
        """A subscription with its health."""
        return self._shown([self._subscribing.find(id, _own(caller))])[0]

    def replace(self, caller: SubscribeCaller, id: str, asked: schemas.Replacement) -> schemas.Subscription:
        """Give it another text and delay. It keeps its id; the stream's next batch knows the new text only."""
        changed = self._subscribing.change(id, asked.text, parse_delay(asked.within), _own(caller))
        return self._told(caller, changed)

    def change(self, caller: SubscribeCaller, id: str, asked: schemas.Change) -> schemas.Subscription:
        """Give it another text or delay: what is not named stays."""
        kept = self._subscribing.find(id, _own(caller))
        is_named = "within" in asked.model_fields_set
        within = parse_delay(asked.within) if is_named else kept.subscription.within
        return self._told(caller, self._subscribing.change(id, asked.text, within, _own(caller)))

    def pause(self, caller: SubscribeCaller, id: str) -> schemas.Subscription:
        """Match nothing for it until it is resumed."""
        return self._shown([self._subscribing.pause(id, _own(caller))])[0]

    def resume(self, caller: SubscribeCaller, id: str) -> schemas.Subscription:
        """Match for it again. What was published meanwhile is not told of; a rule tells what became different."""
        return self._shown([self._subscribing.resume(id, _own(caller))])[0]

    def remove(self, caller: SubscribeCaller, id: str) -> Response:
        """Withdraw it. Notifications that were made stay."""
        self._subscribing.find(id, _own(caller))
        if not self._subscribing.remove([id], _own(caller)):
            raise Absent("there is no such subscription", received=repr(id)[:200])
        return Response(status_code=204)

    def _told(self, caller: Caller, taken: AcceptedSubscription) -> schemas.Subscription:
        shown = self._shown([self._subscribing.find(taken.id, _own(caller))])[0]
        return shown.model_copy(update=_text_facts(taken))

    def _shown(self, kept: Sequence[SubscriptionStatus]) -> list[schemas.Subscription]:
        healths = read_health(self._store, [one.subscription for one in kept])
        return [_form(one, healths[one.subscription.id]) for one in kept]


def _own(caller: Caller) -> str | None:
    """Whose subscriptions a caller sees; an administrator sees everybody's."""
    return None if caller.is_administrator else caller.acting_as(None)


def _form(kept: SubscriptionStatus, health: SubscriptionHealth) -> schemas.Subscription:
    one = kept.subscription
    return schemas.Subscription(
        id=one.id,
        subscriber=one.subscriber,
        language=one.language,
        text=one.text,
        within=None if one.within is None else durations.show(one.within),
        state="paused" if kept.paused else "active",
        paused=kept.paused,
        reason=kept.reason,
        health=schemas.Health(**{name: getattr(health, name) for name in schemas.Health.model_fields}),
    )


def _new(taken: AcceptedSubscription) -> schemas.Subscription:
    """One under an id that nobody had before: nothing can have come of it, and the store does not have to be asked."""
    one = Subscription(taken.id, taken.subscriber, taken.language, taken.text, taken.within)
    return _form(SubscriptionStatus(one), SubscriptionHealth()).model_copy(update=_text_facts(taken))


def _text_facts(taken: AcceptedSubscription) -> dict[str, Any]:
    """What is known of a text because it has just been compiled."""
    warnings = schemas.warnings_of(taken.warnings)
    return {"predicates": taken.predicates, "reached_through": taken.reached_through, "warnings": warnings}


def router_for(tidings: Tidings, limits: Limits) -> APIRouter:
    """The endpoints."""
    found = SubscriptionEndpoints(tidings, limits)
    router = APIRouter(prefix="/v1/subscriptions", tags=["subscriptions"], route_class=VersionedRoute)
    add, one = router.add_api_route, "/{id:path}"
    made = schemas.Subscription | schemas.SubscribeOutcomes
    told: dict[int | str, dict[str, Any]] = {
        200: {"model": made, "description": "It was there already"},
        207: {"model": schemas.SubscribeOutcomes, "description": "Some of many were refused"},
    }
    lines = {
        "schema": TEXT_SCHEMA,
        "example": '{"text": "price < 200"}\n{"text": "price < 100", "id": "cheap"}\n',
    }
    also = {"requestBody": {"content": dict.fromkeys(sorted(JSON_LINES_TYPES), lines)}}
    by_line = BulkSubscribe(tidings, limits)
    add("", by_line.create, methods=["POST"], route_class_override=LinesRoute, include_in_schema=False)
    add(
        "",
        found.create,
        methods=["POST"],
        status_code=201,
        response_model=made,
        responses=told | problem_descriptions(409),
        openapi_extra=also,
    )
    add("", found.page, methods=["GET"])
    pausing = partial(add, methods=["POST"], route_class_override=ActionRoute)
    pausing(f"{one}/pause", found.pause, responses=problem_descriptions(409))
    pausing(f"{one}/resume", found.resume, responses=problem_descriptions(409, 422))
    add(one, found.find, methods=["GET"])
    add(one, found.replace, methods=["PUT"], responses=problem_descriptions(409))
    add(one, found.change, methods=["PATCH"], responses=problem_descriptions(409))
    add(one, found.remove, methods=["DELETE"], status_code=204)
    return router

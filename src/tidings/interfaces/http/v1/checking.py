"""A subscription before it is one: what it would be, and what it would have matched.

POST   /v1/check       {"language", "text"}
POST   /v1/preview     {"language", "text", "last", "subscriber"}
"""

from __future__ import annotations

from functools import partial

from fastapi import APIRouter
from fastapi.concurrency import run_in_threadpool

from tidings.errors import OverLimit
from tidings.interfaces.http.access import Subscribing
from tidings.interfaces.http.v1 import forms
from tidings.interfaces.http.v1.answering import Versioned
from tidings.interfaces.http.v1.limits import Limits
from tidings.interfaces.http.v1.notifications import subscriber_of
from tidings.interfaces.http.v1.publications import BRIEF, shown
from tidings.interfaces.http.v1.shapes import Reason
from tidings.interfaces.http.writing import Writers
from tidings.reasons import in_words
from tidings.service import Tidings
from tidings.service.access import Caller
from tidings.service.previewing import Bounds, Previewed, preview

LAST = 100
"""How many publications are looked at if nobody says how many."""
AT_ONCE, WAITING = 2, 20
"""How many previews are made at a time, and how many wait for their turn: each takes a processor for itself."""


class Checking:
    """Looks at texts as somebody types them."""

    def __init__(self, tidings: Tidings, limits: Limits) -> None:
        self._tidings, self._limits = tidings, limits
        self._subscribing = tidings.subscribing(limits.of_subscriptions)
        self._turns = Writers(AT_ONCE, WAITING, "previews")

    async def check(self, caller: Subscribing, asked: forms.Asked) -> forms.Checked:
        """What a text would be as a subscription, or what is wrong with it and where. Nothing is kept."""
        found = await run_in_threadpool(self._subscribing.check, asked.language, asked.text)
        return forms.Checked(
            language=asked.language,
            predicates=found.predicates,
            reached_through=found.reached_through,
            warnings=forms.warnings_of(found.warnings),
        )

    async def preview(self, caller: Subscribing, asked: forms.PreviewAsked) -> forms.Preview:
        """Which of the last publications a text would have matched, newest first, and why. Nothing is kept."""
        last = asked.last or min(LAST, self._limits.preview)
        if last > self._limits.preview:
            problem = OverLimit("too many publications", accepted=f"{self._limits.preview:,}")
            problem.pointer = "/last"
            raise problem
        return await self._turns.run(partial(self._previewed, caller, asked, last))

    def _previewed(self, caller: Caller, asked: forms.PreviewAsked, last: int) -> forms.Preview:
        limits, schema = self._limits, self._tidings.checked_against()
        bounds = Bounds(last, limits.preview_bytes, limits.preview_seconds)
        store, tables = self._tidings.store, self._tidings.preview_tables
        sees_all = caller.is_administrator and asked.subscriber is None
        granted = None if sees_all else store.audiences.of(subscriber_of(caller, asked.subscriber))
        found = preview(store, tables, self._subscribing, schema, asked.language, asked.text, bounds, granted)
        return forms.Preview(
            looked_at=found.looked_at,
            complete=found.complete,
            matches=[_match(one) for one in found.matches],
            skipped=found.skipped,
            notes=found.notes,
            warnings=forms.warnings_of(found.warnings),
        )


def _match(one: Previewed) -> forms.PreviewMatch:
    because = [Reason(predicate=each.predicate, value=each.value, at=each.at) for each in one.because]
    words = in_words(one.because, one.bindings)
    return forms.PreviewMatch(
        publication=shown(one.entry, BRIEF), because=because, bindings=one.bindings, words=words
    )


def router_for(tidings: Tidings, limits: Limits) -> APIRouter:
    """The endpoints."""
    found = Checking(tidings, limits)
    router = APIRouter(prefix="/v1", tags=["subscriptions"], route_class=Versioned)
    router.add_api_route("/check", found.check, methods=["POST"])
    router.add_api_route("/preview", found.preview, methods=["POST"])
    return router

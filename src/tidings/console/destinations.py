"""Destination pages: add, test, pause, remove; health, dead letters and quiet hours."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool

from tidings.api.authentication import require_owner
from tidings.api.middleware.write_limiter import WriteLimiter
from tidings.api.v1.notifications import subscriber_of
from tidings.console.pages import HOME, console_router, format_query, redirect_to
from tidings.console.session import (
    NameParameter,
    NumberParameter,
    SubscriberParameter,
    SubscribeVisitor,
    Visitor,
    read_form,
    read_number,
    render_page,
)
from tidings.delivery import quiet_hours
from tidings.delivery.destinations import Destinations, SampleResult
from tidings.delivery.sql.destination_store import Destination, Health
from tidings.errors import Absent, InputError

HERE = "destinations"
AT = f"{HOME}/{HERE}"
PAGE = 50

DONE = {
    "paused": "Paused. New notifications are delivered when it is resumed.",
    "resumed": "Resumed. Pending notifications are delivered now.",
    "deleted": "Deleted.",
    "replayed": "The dead letters are delivered again.",
    "quiet": "Quiet hours saved.",
}
"""Confirmations, by the parameter `done` of the page that follows an action."""

KINDS = {
    "webhook": "https://example.org/hook",
    "apprise": "mail and chat: mailto://..., slack://...",
    "kafka": "a topic: kafka://broker:9092/tidings",
}
"""Kinds of destinations, each with an example of a target."""


def router_for(destinations: Destinations) -> APIRouter:
    """Return the pages of destinations."""
    router = console_router(HERE)
    pages = DestinationPages(destinations)
    router.add_api_route("", pages.all, methods=["GET"])
    router.add_api_route("", pages.add, methods=["POST"])
    router.add_api_route("/quiet-hours", pages.quiet, methods=["POST"])
    router.add_api_route("/{id}", pages.one, methods=["GET"])
    for act in (pages.test, pages.pause, pages.resume, pages.rotate, pages.replay, pages.delete):
        router.add_api_route(f"/{{id}}/{act.__name__}", act, methods=["POST"])
    return router


class DestinationPages:
    """What is answered. Somebody else's destination is answered as if it were not there."""

    def __init__(self, destinations: Destinations) -> None:
        self._destinations, self._store = destinations, destinations.store
        self._outside = WriteLimiter(what="requests to look at an address")

    def all(
        self,
        visitor: SubscribeVisitor,
        subscriber: SubscriberParameter = "",
        after: NameParameter = "",
        done: NameParameter = "",
    ) -> Response:
        return self._all(visitor, subscriber, after, {"done": DONE.get(done)})

    def _all(
        self, visitor: Visitor, subscriber: str, after: str = "", more: dict[str, Any] | None = None
    ) -> Response:
        whose = visitor.only(subscriber)
        found = self._store.destinations.list(whose, after, PAGE + 1)
        healths = self._store.destinations.health_of([each.id for each in found[:PAGE]])
        hours = self._store.preferences.quiet(whose) if whose is not None else None
        values = {
            "found": [(each, self._shown(each), healths.get(each.id, Health())) for each in found[:PAGE]],
            "more": found[PAGE - 1].id if len(found) > PAGE else None,
            "is_first": not after,
            "whose": whose,
            "hours": hours
            and {
                "start": quiet_hours.format_quiet_hours(hours.from_minute),
                "end": quiet_hours.format_quiet_hours(hours.to_minute),
                "zone": hours.zone,
            },
            "kinds": KINDS,
            "given": {},
            "problem": None,
            "done": None,
        }
        status = 422 if more and more.get("problem") else 200
        return render_page("destinations.html", visitor, HERE, values | (more or {}), status)

    def one(
        self, visitor: SubscribeVisitor, id: str, after: NumberParameter = 0, done: NameParameter = ""
    ) -> Response:
        return self._one(visitor, self._own(visitor, id), after, {"done": DONE.get(done)})

    def _one(
        self, visitor: Visitor, one: Destination, after: int = 0, more: dict[str, Any] | None = None
    ) -> Response:
        letters = self._store.dead_deliveries.list(one.id, after, PAGE + 1)
        values = {
            "one": one,
            "shown": self._shown(one),
            "health": self._store.destinations.health_of([one.id]).get(one.id, Health()),
            "letters": letters[:PAGE],
            "count": self._store.dead_deliveries.count(one.id),
            "more": letters[PAGE - 1].number if len(letters) > PAGE else None,
            "tested": None,
            "secret": None,
            "done": None,
        }
        return render_page("destination.html", visitor, HERE, values | (more or {}))

    async def add(self, request: Request, visitor: SubscribeVisitor) -> Response:
        given = await read_form(request, visitor)
        return await self._outside.run(lambda: self._add(visitor, given))

    def _add(self, visitor: Visitor, given: dict[str, str]) -> Response:
        whose = given.get("subscriber", "").strip()
        try:
            made = self._destinations.add(
                subscriber_of(visitor.caller, whose or None),
                given.get("kind", ""),
                given.get("target", "").strip(),
                given.get("subscription", "").strip() or None,
                given.get("name", "").strip(),
            )
        except InputError as problem:
            return self._all(visitor, whose, more={"given": given, "problem": problem})
        return self._one(
            visitor, made, more={"secret": made.secret, "done": "Added. Send a sample to test it."}
        )

    async def quiet(self, request: Request, visitor: SubscribeVisitor) -> Response:
        given = await read_form(request, visitor)
        return await run_in_threadpool(self._quiet, visitor, given)

    def _quiet(self, visitor: Visitor, given: dict[str, str]) -> Response:
        whose = subscriber_of(visitor.caller, given.get("subscriber") or None)
        start, end, zone = (given.get(name, "").strip() for name in ("start", "end", "zone"))
        try:
            hours = quiet_hours.parse_quiet_hours(whose, start, end, zone) if start or end or zone else None
        except InputError as problem:
            said = {"start": start, "end": end, "zone": zone}
            return self._all(visitor, given.get("subscriber", ""), more={"hours": said, "problem": problem})
        self._store.preferences.set_quiet(whose, hours)
        self._store.delivery_cursors.rouse(whose)
        return redirect_to(f"{AT}{format_query({'done': 'quiet', 'subscriber': given.get('subscriber')})}")

    async def test(self, id: str, request: Request, visitor: SubscribeVisitor) -> Response:
        """Send a sample now, and show the outcome."""
        await read_form(request, visitor)

        def work() -> Response:
            one = self._own(visitor, id)
            tested: SampleResult = self._destinations.test(one)
            return self._one(visitor, one, more={"tested": tested})

        return await self._outside.run(work)

    async def rotate(self, id: str, request: Request, visitor: SubscribeVisitor) -> Response:
        """Show a new secret, only once. For a while the old one signs as well."""
        await read_form(request, visitor)

        def work() -> Response:
            made = self._destinations.rotate(self._own(visitor, id).id)
            return self._one(visitor, made, more={"secret": made.secret})

        return await run_in_threadpool(work)

    async def pause(self, id: str, request: Request, visitor: SubscribeVisitor) -> Response:
        await read_form(request, visitor)
        await run_in_threadpool(lambda: self._store.destinations.pause(self._own(visitor, id).id))
        return redirect_to(f"{AT}/{id}?done=paused")

    async def resume(self, id: str, request: Request, visitor: SubscribeVisitor) -> Response:
        await read_form(request, visitor)
        await run_in_threadpool(lambda: self._store.destinations.resume(self._own(visitor, id).id))
        return redirect_to(f"{AT}/{id}?done=resumed")

    async def replay(self, id: str, request: Request, visitor: SubscribeVisitor) -> Response:
        """Deliver one dead letter again, or all of them."""
        given = await read_form(request, visitor)
        number = read_number(given, "number")
        await run_in_threadpool(lambda: self._store.dead_deliveries.replay(self._own(visitor, id).id, number))
        return redirect_to(f"{AT}/{id}?done=replayed")

    async def delete(self, id: str, request: Request, visitor: SubscribeVisitor) -> Response:
        await read_form(request, visitor)
        await run_in_threadpool(lambda: self._store.destinations.remove(self._own(visitor, id).id))
        return redirect_to(f"{AT}?done=deleted")

    def _own(self, visitor: Visitor, id: str) -> Destination:
        """Return a destination of the visitor's. Those of others get the same error as missing ones."""
        found = self._store.destinations.find(id) if id.isprintable() else None
        if found is None:
            raise Absent("there is no such destination")
        require_owner(visitor.caller, found.subscriber, "destination")
        return found

    def _shown(self, one: Destination) -> str:
        return self._destinations.shown(one)

"""Destination pages: add, test, pause, remove; health, dead letters and quiet hours."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response

from tidings.api.authentication import require_owner
from tidings.api.parameters import subscriber_of
from tidings.api.write_limiter import WriteLimiter
from tidings.console.pages import HOME, console_router, format_query, redirect_to
from tidings.console.session import (
    Form,
    NameParameter,
    NumberParameter,
    SubscriberParameter,
    SubscribeVisitor,
    Visitor,
    read_number,
    render_page,
)
from tidings.delivery import quiet_hours
from tidings.delivery.destinations import Destinations
from tidings.delivery.sql.destination_store import Destination, Health
from tidings.errors import InputError, NotFound

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
    router.add_api_route("/{id}", pages.show, methods=["GET"])
    for act in (pages.test, pages.pause, pages.resume, pages.rotate, pages.replay, pages.delete):
        router.add_api_route(f"/{{id}}/{act.__name__}", act, methods=["POST"])
    return router


class DestinationPages:
    """Pages about destinations. Those of other subscribers get the same error as missing ones."""

    def __init__(self, destinations: Destinations) -> None:
        self._destinations, self._store = destinations, destinations.store
        self._limiter = WriteLimiter(label="requests to other servers")

    def all(
        self,
        visitor: SubscribeVisitor,
        subscriber: SubscriberParameter = "",
        after: NameParameter = "",
        done: NameParameter = "",
    ) -> Response:
        return self._render_list(visitor, subscriber, after, {"done": DONE.get(done)})

    def _render_list(
        self, visitor: Visitor, subscriber: str, after: str = "", extra: dict[str, Any] | None = None
    ) -> Response:
        whose = visitor.select_owner(subscriber)
        destinations = self._store.destinations.list(whose, after, PAGE + 1)
        healths = self._store.destinations.health_of([destination.id for destination in destinations[:PAGE]])
        hours = self._store.preferences.read_quiet_hours(whose) if whose is not None else None
        values = {
            "listed": [
                (
                    destination,
                    self._destinations.mask_target(destination),
                    healths.get(destination.id, Health()),
                )
                for destination in destinations[:PAGE]
            ],
            "more": destinations[PAGE - 1].id if len(destinations) > PAGE else None,
            "is_first": not after,
            "whose": whose,
            "hours": hours
            and {
                "start": quiet_hours.format_quiet_hours(hours.from_minute),
                "end": quiet_hours.format_quiet_hours(hours.to_minute),
                "zone": hours.zone,
            },
            "kinds": KINDS,
            "form": {},
            "problem": None,
            "done": None,
        }
        status = 422 if extra and extra.get("problem") else 200
        return render_page("destinations.html", visitor, HERE, values | (extra or {}), status)

    def show(
        self, visitor: SubscribeVisitor, id: str, after: NumberParameter = 0, done: NameParameter = ""
    ) -> Response:
        return self._render_destination(visitor, self._find_own(visitor, id), after, {"done": DONE.get(done)})

    def _render_destination(
        self, visitor: Visitor, destination: Destination, after: int = 0, extra: dict[str, Any] | None = None
    ) -> Response:
        id = destination.id
        letters = self._store.dead_deliveries.list(id, after, PAGE + 1)
        values = {
            "destination": destination,
            "shown": self._destinations.mask_target(destination),
            "health": self._store.destinations.health_of([id]).get(id, Health()),
            "letters": letters[:PAGE],
            "count": self._store.dead_deliveries.count(id),
            "more": letters[PAGE - 1].number if len(letters) > PAGE else None,
            "tested": None,
            "secret": None,
            "done": None,
        }
        return render_page("destination.html", visitor, HERE, values | (extra or {}))

    async def add(self, visitor: SubscribeVisitor, form: Form) -> Response:
        return await self._limiter.run(lambda: self._add(visitor, form))

    def _add(self, visitor: Visitor, form: dict[str, str]) -> Response:
        whose = form.get("subscriber", "").strip()
        try:
            destination = self._destinations.add(
                subscriber_of(visitor.caller, whose or None),
                form.get("kind", ""),
                form.get("target", "").strip(),
                form.get("subscription", "").strip() or None,
                form.get("name", "").strip(),
            )
        except InputError as problem:
            return self._render_list(visitor, whose, extra={"form": form, "problem": problem})
        notes = {"secret": destination.secret, "done": "Added. Send a sample to test it."}
        return self._render_destination(visitor, destination, extra=notes)

    def quiet(self, visitor: SubscribeVisitor, form: Form) -> Response:
        whose = subscriber_of(visitor.caller, form.get("subscriber") or None)
        start, end, zone = (form.get(name, "").strip() for name in ("start", "end", "zone"))
        try:
            hours = quiet_hours.parse_quiet_hours(whose, start, end, zone) if start or end or zone else None
        except InputError as problem:
            fields = {"start": start, "end": end, "zone": zone}
            return self._render_list(
                visitor, form.get("subscriber", ""), extra={"hours": fields, "problem": problem}
            )
        self._store.preferences.set_quiet(whose, hours)
        self._store.delivery_cursors.wake_subscriber(whose)
        return redirect_to(f"{AT}{format_query({'done': 'quiet', 'subscriber': form.get('subscriber')})}")

    async def test(self, id: str, visitor: SubscribeVisitor, form: Form) -> Response:
        """Send a sample now, and show the outcome."""

        def work() -> Response:
            destination = self._find_own(visitor, id)
            return self._render_destination(
                visitor, destination, extra={"tested": self._destinations.test(destination)}
            )

        return await self._limiter.run(work)

    def rotate(self, id: str, visitor: SubscribeVisitor, form: Form) -> Response:
        """Show a new secret, only once. For a while the old one signs as well."""
        destination = self._destinations.rotate(self._find_own(visitor, id).id)
        return self._render_destination(visitor, destination, extra={"secret": destination.secret})

    def pause(self, id: str, visitor: SubscribeVisitor, form: Form) -> Response:
        self._store.destinations.pause(self._find_own(visitor, id).id)
        return redirect_to(f"{AT}/{id}?done=paused")

    def resume(self, id: str, visitor: SubscribeVisitor, form: Form) -> Response:
        self._store.destinations.resume(self._find_own(visitor, id).id)
        return redirect_to(f"{AT}/{id}?done=resumed")

    def replay(self, id: str, visitor: SubscribeVisitor, form: Form) -> Response:
        """Deliver one dead letter again, or all of them."""
        self._store.dead_deliveries.replay(self._find_own(visitor, id).id, read_number(form, "number"))
        return redirect_to(f"{AT}/{id}?done=replayed")

    def delete(self, id: str, visitor: SubscribeVisitor, form: Form) -> Response:
        self._store.destinations.remove(self._find_own(visitor, id).id)
        return redirect_to(f"{AT}?done=deleted")

    def _find_own(self, visitor: Visitor, id: str) -> Destination:
        """Return a destination of the visitor's. Those of others get the same error as missing ones."""
        destination = self._store.destinations.find(id) if id.isprintable() else None
        if destination is None:
            raise NotFound("there is no such destination")
        require_owner(visitor.caller, destination.subscriber, "destination")
        return destination

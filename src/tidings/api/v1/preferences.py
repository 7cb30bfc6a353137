"""Preferences of a subscriber: quiet hours, in which nothing is delivered.

    GET, PUT    /v1/preferences     {"quiet_hours": {"from": "22:00", "to": "07:00", "zone": "Europe/Berlin"}}

`null` means no quiet hours.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from tidings.api.authentication import SubscribeCaller
from tidings.api.v1.notifications import subscriber_of
from tidings.api.v1.route_classes import VersionedRoute
from tidings.delivery.quiet_hours import format_quiet_hours, parse_quiet_hours
from tidings.delivery.sql.destination_store import QuietHours
from tidings.store.store import Store

Subscriber = Annotated[
    str | None, Query(max_length=500, description="The subscriber; only administrators may name another one.")
]


class Hours(BaseModel):
    """A daily period in a time zone. It spans midnight if it ends before it begins."""

    model_config = ConfigDict(extra="forbid")
    start: str = Field(alias="from", max_length=10)
    end: str = Field(alias="to", max_length=10)
    zone: str = Field(max_length=100)


class Preferences(BaseModel):
    """Preferences of a subscriber."""

    model_config = ConfigDict(extra="forbid")
    quiet_hours: Hours | None


def router_for(store: Store) -> APIRouter:
    router = APIRouter(prefix="/v1/preferences", tags=["preferences"], route_class=VersionedRoute)

    @router.get("")
    def read(caller: SubscribeCaller, subscriber: Subscriber = None) -> Preferences:
        """Read the preferences of a subscriber."""
        return _build_preferences(store.preferences.quiet(subscriber_of(caller, subscriber)))

    @router.put("")
    def change(caller: SubscribeCaller, given: Preferences, subscriber: Subscriber = None) -> Preferences:
        """Change the preferences. Notifications that wait for the end of quiet hours are rescheduled at once."""
        who, hours = subscriber_of(caller, subscriber), given.quiet_hours
        wanted = parse_quiet_hours(who, hours.start, hours.end, hours.zone) if hours else None
        store.preferences.set_quiet(who, wanted)
        store.delivery_cursors.rouse(who)
        return _build_preferences(wanted)

    return router


def _build_preferences(hours: QuietHours | None) -> Preferences:
    if hours is None:
        return Preferences(quiet_hours=None)
    times = {"from": format_quiet_hours(hours.from_minute), "to": format_quiet_hours(hours.to_minute)}
    return Preferences(quiet_hours=Hours.model_validate(times | {"zone": hours.zone}))

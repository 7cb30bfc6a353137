"""How a subscriber wants to be told, over HTTP: quiet hours.

    GET, PUT    /v1/preferences     {"quiet_hours": {"from": "22:00", "to": "07:00", "zone": "Europe/Berlin"}}

Without quiet hours (`null`) there are none.
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
    str | None, Query(max_length=500, description="Whose preferences: an administrator names them.")
]


class Hours(BaseModel):
    """From a time of the day to another, in a time zone; over midnight if it ends before it begins."""

    model_config = ConfigDict(extra="forbid")
    start: str = Field(alias="from", max_length=10)
    end: str = Field(alias="to", max_length=10)
    zone: str = Field(max_length=100)


class Preferences(BaseModel):
    """What a subscriber has said."""

    model_config = ConfigDict(extra="forbid")
    quiet_hours: Hours | None


def router_for(store: Store) -> APIRouter:
    """The endpoints."""
    router = APIRouter(prefix="/v1/preferences", tags=["preferences"], route_class=VersionedRoute)

    @router.get("")
    def read(caller: SubscribeCaller, subscriber: Subscriber = None) -> Preferences:
        """What a subscriber has said: quiet hours, or none."""
        return _shown(store.preferences.quiet(subscriber_of(caller, subscriber)))

    @router.put("")
    def change(caller: SubscribeCaller, given: Preferences, subscriber: Subscriber = None) -> Preferences:
        """What waits for the end of quiet hours is looked at again at once."""
        who, hours = subscriber_of(caller, subscriber), given.quiet_hours
        wanted = parse_quiet_hours(who, hours.start, hours.end, hours.zone) if hours else None
        store.preferences.set_quiet(who, wanted)
        store.delivery_cursors.rouse(who)
        return _shown(wanted)

    return router


def _shown(hours: QuietHours | None) -> Preferences:
    if hours is None:
        return Preferences(quiet_hours=None)
    times = {"from": format_quiet_hours(hours.from_minute), "to": format_quiet_hours(hours.to_minute)}
    return Preferences(quiet_hours=Hours.model_validate(times | {"zone": hours.zone}))

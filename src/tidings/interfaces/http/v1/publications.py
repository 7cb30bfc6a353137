"""Publications over HTTP: one or many of any kind, durable when they are answered.

POST   /v1/publications         ?id=  &id_field=  &base=      Idempotency-Key, ce-id
GET    /v1/publications         ?before=  &limit=             the last ones, newest first
GET    /v1/publications/{id}
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse

from tidings.cloud_events import LARGEST, carried
from tidings.errors import Absent
from tidings.interfaces.http.access import Publishing
from tidings.interfaces.http.v1 import answering, forms
from tidings.interfaces.http.v1.answering import Versioned
from tidings.interfaces.http.v1.body_schemas import content_of
from tidings.interfaces.http.v1.direct import Direct
from tidings.interfaces.http.v1.limits import Limits
from tidings.interfaces.http.v1.taking import Taking
from tidings.service import Tidings
from tidings.service.access import Caller
from tidings.service.offering import ACCEPTED
from tidings.storable import LARGEST_INTEGER
from tidings.store import Entry, Store
from tidings.store.audiences import sees

Before = Annotated[
    int | None, Query(ge=1, le=LARGEST_INTEGER, description="Only what came before this position.")
]
Limit = Annotated[int, Query(ge=1, le=1_000)]

BRIEF = 16_000
"""Bytes of a body that is shown where there are many."""


class Publications:
    """Shows publications that were taken."""

    def __init__(self, tidings: Tidings) -> None:
        self._tidings = tidings

    def last(self, caller: Publishing, before: Before = None, limit: Limit = 100) -> forms.PublicationPage:
        """The last publications, newest first. What is large comes without its body; what carries a label that the
        caller was not granted is left out.
        """
        found = self._tidings.store.journal.latest(before, limit, BRIEF)
        following = found[-1].publication.position if found else None
        is_end = following is None or following <= 1
        listed = [shown(one) for one in visible(self._tidings.store, caller, found)]
        return forms.PublicationPage(publications=listed, next=None if is_end else following)

    def find(self, caller: Publishing, id: str) -> forms.Published:
        """A publication."""
        found = self._tidings.store.journal.entry(id, LARGEST)
        if found is None or not visible(self._tidings.store, caller, [found]):
            raise Absent("there is no such publication", received=repr(id)[:200])
        return shown(found)


def visible(store: Store, caller: Caller, found: Sequence[Entry]) -> list[Entry]:
    """Those that a caller may see: an administrator all of them, others what carries no label that was not granted."""
    if caller.is_administrator or all(one.publication.audience is None for one in found):
        return list(found)
    granted = store.audiences.of(caller.subscriber) if caller.subscriber else frozenset[str]()
    return [one for one in found if sees(granted, one.publication.audience)]


def router_for(tidings: Tidings, limits: Limits) -> APIRouter:
    """The endpoints."""
    found, taking = Publications(tidings), Taking(tidings, limits)
    router = APIRouter(prefix="/v1/publications", tags=["publications"], route_class=Versioned)
    add = router.add_api_route
    taken: dict[int | str, dict[str, Any]] = {
        200: {
            "model": forms.Taken | forms.TakenParts | forms.Outcomes,
            "description": "It was there already",
        },
        201: {"model": forms.Taken | forms.TakenParts | forms.Outcomes, "description": "It is durable"},
        207: {"model": forms.Outcomes, "description": "Some of many were refused"},
    }
    body = {"required": True, "content": content_of(ACCEPTED)}
    add(
        "",
        taking.publish,
        methods=["POST"],
        route_class_override=Direct,
        responses=taken | answering.wrong(409),
        openapi_extra={"requestBody": body},
        response_class=JSONResponse,
    )
    add("", found.last, methods=["GET"])
    add("/{id:path}", found.find, methods=["GET"])
    return router


def shown(entry: Entry, largest: int = LARGEST) -> forms.Published:
    """A publication as others see it; one that is too large without its body."""
    one = entry.publication
    known = carried(one, largest) or {} if len(one.body) == entry.size else {}
    return forms.Published(
        id=one.id,
        position=one.position or 0,
        time=entry.time,
        media_type=one.media_type,
        size=entry.size,
        audience=one.audience,
        body=known.get("body"),
        body_base64=known.get("body_base64"),
    )

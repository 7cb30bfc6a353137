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

from tidings.api.authentication import PublishCaller
from tidings.api.v1 import route_classes, schemas
from tidings.api.v1.ingest import IngestEndpoint
from tidings.api.v1.limits import Limits
from tidings.api.v1.openapi import request_content
from tidings.api.v1.route_classes import FastRoute, VersionedRoute
from tidings.cloud_events import LARGEST, carried
from tidings.core.storable import LARGEST_INTEGER
from tidings.errors import Absent
from tidings.service.access import Caller
from tidings.service.submission import ACCEPTED_MEDIA_TYPES
from tidings.service.tidings import Tidings
from tidings.store.audiences import is_visible
from tidings.store.journal import JournalEntry
from tidings.store.store import Store

Before = Annotated[
    int | None, Query(ge=1, le=LARGEST_INTEGER, description="Only what came before this position.")
]
Limit = Annotated[int, Query(ge=1, le=1_000)]

MAX_PREVIEW_BYTES = 16_000
"""Bytes of a body that is shown where there are many."""


class PublicationEndpoints:
    """Shows publications that were taken."""

    def __init__(self, tidings: Tidings) -> None:
        self._tidings = tidings

    def last(
        self, caller: PublishCaller, before: Before = None, limit: Limit = 100
    ) -> schemas.PublicationPage:
        """The last publications, newest first. What is large comes without its body; what carries a label that the
        caller was not granted is left out.
        """
        found = self._tidings.store.journal.latest(before, limit, MAX_PREVIEW_BYTES)
        following = found[-1].publication.position if found else None
        is_end = following is None or following <= 1
        listed = [build_publication(one) for one in filter_visible(self._tidings.store, caller, found)]
        return schemas.PublicationPage(publications=listed, next=None if is_end else following)

    def find(self, caller: PublishCaller, id: str) -> schemas.PublicationView:
        """A publication."""
        found = self._tidings.store.journal.entry(id, LARGEST)
        if found is None or not filter_visible(self._tidings.store, caller, [found]):
            raise Absent("there is no such publication", received=repr(id)[:200])
        return build_publication(found)


def filter_visible(store: Store, caller: Caller, found: Sequence[JournalEntry]) -> list[JournalEntry]:
    """Those that a caller may see: an administrator all of them, others what carries no label that was not granted."""
    if caller.is_administrator or all(one.publication.audience is None for one in found):
        return list(found)
    granted = store.audiences.of(caller.subscriber) if caller.subscriber else frozenset[str]()
    return [one for one in found if is_visible(granted, one.publication.audience)]


def router_for(tidings: Tidings, limits: Limits) -> APIRouter:
    """The endpoints."""
    found, taking = PublicationEndpoints(tidings), IngestEndpoint(tidings, limits)
    router = APIRouter(prefix="/v1/publications", tags=["publications"], route_class=VersionedRoute)
    add = router.add_api_route
    taken: dict[int | str, dict[str, Any]] = {
        200: {
            "model": schemas.PublishResult | schemas.PublishResults | schemas.Outcomes,
            "description": "It was there already",
        },
        201: {
            "model": schemas.PublishResult | schemas.PublishResults | schemas.Outcomes,
            "description": "It is durable",
        },
        207: {"model": schemas.Outcomes, "description": "Some of many were refused"},
    }
    body = {"required": True, "content": request_content(ACCEPTED_MEDIA_TYPES)}
    add(
        "",
        taking.publish,
        methods=["POST"],
        route_class_override=FastRoute,
        responses=taken | route_classes.problem_descriptions(409),
        openapi_extra={"requestBody": body},
        response_class=JSONResponse,
    )
    add("", found.last, methods=["GET"])
    add("/{id:path}", found.find, methods=["GET"])
    return router


def build_publication(entry: JournalEntry, largest: int = LARGEST) -> schemas.PublicationView:
    """A publication as others see it; one that is too large without its body."""
    one = entry.publication
    known = carried(one, largest) or {} if len(one.body) == entry.size else {}
    return schemas.PublicationView(
        id=one.id,
        position=one.position or 0,
        time=entry.time,
        media_type=one.media_type,
        size=entry.size,
        audience=one.audience,
        body=known.get("body"),
        body_base64=known.get("body_base64"),
    )

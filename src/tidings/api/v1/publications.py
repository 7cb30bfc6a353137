"""Publications: publish one or many of any kind, list the latest, read one.

POST   /v1/publications         ?id=  &id_field=  &base=      Idempotency-Key, ce-id
GET    /v1/publications         ?before=  &limit=             newest first
GET    /v1/publications/{id}
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse

from tidings.api.authentication import PublishCaller
from tidings.api.limits import Limits
from tidings.api.parameters import Limit
from tidings.api.v1 import route_classes, schemas
from tidings.api.v1.ingest import IngestEndpoint
from tidings.api.v1.openapi import request_content
from tidings.api.v1.route_classes import FastRoute, VersionedRoute
from tidings.cloud_events import LARGEST, carried
from tidings.core.arguments import LARGEST_INTEGER
from tidings.errors import NotFound
from tidings.ingest.submission import accepted_media_types
from tidings.service.authorization import Caller
from tidings.service.tidings import Tidings
from tidings.store.audiences import is_visible
from tidings.store.journal import JournalEntry
from tidings.store.store import Store

Before = Annotated[
    int | None, Query(ge=1, le=LARGEST_INTEGER, description="Only publications before this position.")
]

MAX_PREVIEW_BYTES = 16_000
"""Largest body that is included in a list."""


class PublicationEndpoints:
    """Reads publications from the journal."""

    def __init__(self, tidings: Tidings) -> None:
        self._tidings = tidings

    def last(
        self, caller: PublishCaller, before: Before = None, limit: Limit = 100
    ) -> schemas.PublicationPage:
        """List the latest publications, newest first.

        Large bodies are left out, and so are publications with an audience label that the caller was not granted.
        """
        entries = self._tidings.store.journal.latest(before, limit, MAX_PREVIEW_BYTES)
        following = entries[-1].publication.position if entries else None
        is_end = following is None or following <= 1
        visible = filter_visible(self._tidings.store, caller, entries)
        publications = [build_publication(entry) for entry in visible]
        return schemas.PublicationPage(publications=publications, next=None if is_end else following)

    def find(self, caller: PublishCaller, id: str) -> schemas.PublicationView:
        """Read a publication."""
        entry = self._tidings.store.journal.entry(id, LARGEST)
        if entry is None or not filter_visible(self._tidings.store, caller, [entry]):
            raise NotFound("there is no such publication", received=repr(id)[:200])
        return build_publication(entry)


def filter_visible(store: Store, caller: Caller, entries: Sequence[JournalEntry]) -> list[JournalEntry]:
    """Return the entries that a caller may see: public ones, those of granted labels; administrators see all."""
    if caller.is_administrator or all(entry.publication.audience is None for entry in entries):
        return list(entries)
    granted = store.audiences.of(caller.subscriber) if caller.subscriber else frozenset[str]()
    return [entry for entry in entries if is_visible(granted, entry.publication.audience)]


def router_for(tidings: Tidings, limits: Limits) -> APIRouter:
    endpoints, ingest = PublicationEndpoints(tidings), IngestEndpoint(tidings, limits)
    router = APIRouter(prefix="/v1/publications", tags=["publications"], route_class=VersionedRoute)
    add = router.add_api_route
    model = schemas.PublishResult | schemas.PublishResults | schemas.Outcomes
    responses: dict[int | str, dict[str, Any]] = {
        200: {"model": model, "description": "Already published before"},
        201: {"model": model, "description": "Published and durable"},
        207: {"model": schemas.Outcomes, "description": "Some publications of a bulk request were refused"},
    }
    body = {"required": True, "content": request_content(accepted_media_types())}
    add(
        "",
        ingest.publish,
        methods=["POST"],
        route_class_override=FastRoute,
        responses=responses | route_classes.problem_descriptions(409),
        openapi_extra={"requestBody": body},
        response_class=JSONResponse,
    )
    add("", endpoints.last, methods=["GET"])
    add("/{id:path}", endpoints.find, methods=["GET"])
    return router


def build_publication(entry: JournalEntry, largest: int = LARGEST) -> schemas.PublicationView:
    """Return a publication as the API shows it, without its body if that is too large."""
    publication = entry.publication
    is_whole = len(publication.body) == entry.size
    content = (carried(publication, largest) or {}) if is_whole else {}
    return schemas.PublicationView(
        id=publication.id,
        position=publication.position or 0,
        time=entry.time,
        media_type=publication.media_type,
        size=entry.size,
        audience=publication.audience,
        body=content.get("body"),
        body_base64=content.get("body_base64"),
    )

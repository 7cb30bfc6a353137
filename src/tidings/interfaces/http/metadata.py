"""A provider over HTTP: where it is, its schema and its documents. Everything below `/metadata`.

    GET     /metadata/status
    GET     /metadata/schema            PUT the same
    GET     /metadata/documents         PUT and DELETE with ?uri=

What repositories and other providers ask for is in modules of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse

from tidings.errors import Absent, InputError
from tidings.interfaces.http import metadata_backbone, metadata_repositories
from tidings.interfaces.http.answers import Answering, Refused, body_of
from tidings.interfaces.http.trust import Trust
from tidings.interfaces.http.waiting import News
from tidings.provider import Provider
from tidings.publications.rdf_media_types import SYNTAXES
from tidings.store import Store
from tidings.store.metadata import Registered

LARGEST = 17_000_000
"""Bytes of a document; limits of graphs say more."""

Uri = Annotated[str, Query(min_length=1, max_length=500)]


@dataclass(frozen=True, slots=True)
class Api:
    """The endpoints of a provider, and what those that wait, wait for: whoever serves them ends it."""

    router: APIRouter
    news: News


def api_for(store: Store, trust: Trust) -> Api:
    """The endpoints of the provider of a store."""
    provider = Provider(store)
    news = News(lambda: (store.metadata.position(), store.metadata.log.head()))
    endpoints = Endpoints(store, provider, news)

    def trusted(request: Request) -> None:
        if not trust.holds(request):
            hint = "Authorization: Bearer TOKEN, where TOKEN is what TIDINGS_RPC_TOKEN says at the server"
            raise Refused(401, InputError("metadata needs the token of the service", hint=hint))

    router = APIRouter(
        prefix="/metadata", tags=["metadata"], route_class=Answering, dependencies=[Depends(trusted)]
    )
    add = router.add_api_route
    add("/status", endpoints.status, methods=["GET"])
    add("/schema", endpoints.schema, methods=["GET"])
    add("/schema", endpoints.load_schema, methods=["PUT"])
    add("/documents", endpoints.documents, methods=["GET"])
    add("/documents", endpoints.register, methods=["PUT"])
    add("/documents", endpoints.remove, methods=["DELETE"])
    metadata_repositories.add_to(router, store, provider, news)
    metadata_backbone.add_to(router, store, provider, news)
    return Api(router, news)


class Endpoints:
    """What a provider answers."""

    def __init__(self, store: Store, provider: Provider, news: News) -> None:
        self._store, self._provider, self._news = store, provider, news

    def status(self) -> dict[str, Any]:
        """Where this provider is."""
        found = asdict(self._store.backbone.status())
        return {**found, "lag": found["head"] - found["position"]}

    def schema(self) -> Response:
        """The schema, as it was loaded."""
        file = self._store.metadata.schema()
        if file is None:
            raise Absent("there is no schema for metadata yet", hint="PUT /metadata/schema")
        return Response(file.body, media_type=file.media_type, headers={"ETag": f'"{file.version}"'})

    async def load_schema(self, request: Request) -> Response:
        """Load a schema that has what the one before had, and more."""
        media_type = _media_type(request)
        body = await body_of(request, LARGEST)
        done = await run_in_threadpool(self._provider.load_schema, body, media_type)
        self._news.nudge()
        return JSONResponse({"position": self._provider.position, "classes": sorted(done.classes)})

    def documents(self) -> list[dict[str, Any]]:
        """All documents, with how many resources each has."""
        return [{"uri": uri, "resources": count} for uri, count in self._provider.documents()]

    async def register(self, uri: Uri, request: Request) -> Response:
        """Register a document, or a new version of it."""
        media_type = _media_type(request)
        body = await body_of(request, LARGEST)
        done = await run_in_threadpool(self._provider.register, uri, body, media_type)
        self._news.nudge()
        return JSONResponse(_registered(uri, done))

    async def remove(self, uri: Uri) -> Response:
        """Remove a document with all its resources."""
        done = await run_in_threadpool(self._provider.remove, uri)
        self._news.nudge()
        return JSONResponse(_registered(uri, done))


def _media_type(request: Request) -> str:
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given not in SYNTAXES:
        problem = InputError(
            "no syntax of graphs",
            where="Content-Type",
            received=given or "nothing",
            accepted=", ".join(SYNTAXES),
        )
        raise Refused(415, problem)
    return given


def _registered(uri: str, done: Registered) -> dict[str, Any]:
    change, outcome = done.changes[uri], done.outcome
    counts = {name: len(getattr(change, name)) for name in ("new", "changed", "deleted", "unchanged")}
    moves = [
        *_moves("entered", outcome.entered),
        *_moves("changed", outcome.changed),
        *_moves("left", outcome.left),
    ]
    return {"uri": uri, "position": done.position, "changes": counts, "moves": moves}


def _moves(kind: str, pairs: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"rule": rule, "uri": uri, "kind": kind} for rule, uri in sorted(pairs)]

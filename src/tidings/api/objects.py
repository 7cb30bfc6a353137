"""Watches of objects in the source databases.

GET     /objects                       the names of the sources
GET     /objects/{source}/watches      ?as=Student:1 for one subscriber's
POST    /objects/{source}/watches      {"as": "Student:1", "watches": "Course:ProgrammingBasics"}
DELETE  /objects/{source}/watches      ?as=Student:1&watches=Course:1
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse

from tidings.api.authentication import TrustPolicy, require_trust
from tidings.api.parameters import media_type_of
from tidings.api.problem_details import HttpError
from tidings.api.request_body import read_body
from tidings.api.routes import ProblemRoute
from tidings.errors import InputError, NotFound
from tidings.kinds import JSON
from tidings.objects.readers.model_loader import read_model
from tidings.objects.sources import SourceRegistry, open_source
from tidings.objects.watches import WatchDescription, WatchRegistry
from tidings.store.store import Store

MAX_WATCH_BYTES = 10_000
ACCEPTED = '{"as": "Student:1", "watches": "Course:ProgrammingBasics"}'

SubscriberName = Annotated[str, Query(alias="as", min_length=1, max_length=1_000)]
SubscriberFilter = Annotated[str | None, Query(alias="as", min_length=1, max_length=1_000)]
ObjectName = Annotated[str, Query(alias="watches", min_length=1, max_length=1_000)]


class ObjectEndpoints:
    """Lists, adds and removes watches. A model is read once per process, a database is opened for each request."""

    def __init__(self, store: Store) -> None:
        self._sources = SourceRegistry(store)
        self._read = cache(read_model)

    def sources(self) -> list[str]:
        """List the names of the sources. The addresses of databases and models are not disclosed."""
        return [source.name for source in self._sources.list_sources()]

    def watches(self, source: str, subscriber: SubscriberFilter = None) -> list[dict[str, Any]]:
        """List all watches, or those of a subscriber."""
        with self._open(source) as watches:
            return [watch.record() for watch in watches.list_watches(subscriber)]

    async def watch(self, source: str, request: Request) -> Response:
        """Add a watch: 201 if it is new, 200 if it existed before."""
        _require_json(request)
        subscriber, watched = _parse_watch(await read_body(request, MAX_WATCH_BYTES))
        watch, is_new = await run_in_threadpool(self._watch, source, subscriber, watched)
        return JSONResponse(watch.record(), 201 if is_new else 200)

    def _watch(self, source: str, subscriber: str, watched: str) -> tuple[WatchDescription, bool]:
        with self._open(source) as watches:
            return watches.add(subscriber, watched)

    def unwatch(self, source: str, subscriber: SubscriberName, watched: ObjectName) -> dict[str, Any]:
        """Remove a watch."""
        with self._open(source) as watches:
            watch, existed = watches.remove(subscriber, watched)
        if not existed:
            raise NotFound("there is no such watch", received=f"{subscriber} watches {watched}")
        return watch.record()

    @contextmanager
    def _open(self, source: str) -> Iterator[WatchRegistry]:
        with open_source(self._sources.select(source), self._read) as database:
            yield WatchRegistry(database)


def router_for(store: Store, trust: TrustPolicy) -> APIRouter:
    dependencies = [Depends(require_trust(trust, "watching"))]
    router = APIRouter(
        prefix="/objects", tags=["objects"], route_class=ProblemRoute, dependencies=dependencies
    )
    endpoints, path = ObjectEndpoints(store), "/{source}/watches"
    router.add_api_route("", endpoints.sources, methods=["GET"])
    router.add_api_route(path, endpoints.watches, methods=["GET"])
    router.add_api_route(path, endpoints.watch, methods=["POST"])
    router.add_api_route(path, endpoints.unwatch, methods=["DELETE"])
    return router


def _require_json(request: Request) -> None:
    """Refuse other media types: a page of another site can make a browser send those anywhere, but not JSON."""
    media_type = media_type_of(request)
    if media_type != JSON:
        received = media_type or "nothing"
        problem = InputError("not JSON", where="Content-Type", received=received, accepted=JSON)
        raise HttpError(415, problem)


def _parse_watch(body: bytes) -> tuple[str, str]:
    try:
        watch = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise HttpError(400, InputError("not JSON", received=str(error), accepted=ACCEPTED)) from error
    subscriber, watched = (watch.get(name) if isinstance(watch, dict) else None for name in ("as", "watches"))
    if not isinstance(subscriber, str) or not isinstance(watched, str) or len(watch) != 2:
        received = repr(watch)[:200]
        raise HttpError(400, InputError("not a watch", received=received, accepted=ACCEPTED))
    return subscriber, watched

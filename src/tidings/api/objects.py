"""Who watches which objects, over HTTP, in the databases that were added.

GET     /objects                       their names
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
from tidings.api.http_error import HttpError
from tidings.api.request_body import read_body
from tidings.api.routes import ProblemRoute
from tidings.errors import Absent, InputError
from tidings.objects.readers.model_loader import read_model
from tidings.objects.sources import SourceRegistry, open_source
from tidings.objects.watches import WatchDescription, WatchRegistry
from tidings.store.store import Store

MAX_WATCH_BYTES = 10_000
"""Bytes of what says who watches what."""
ACCEPTED = '{"as": "Student:1", "watches": "Course:ProgrammingBasics"}'

SubscriberParameter = Annotated[str, Query(alias="as", min_length=1, max_length=1_000)]
OptionalSubscriberParameter = Annotated[str | None, Query(alias="as", min_length=1, max_length=1_000)]
WatchesParameter = Annotated[str, Query(alias="watches", min_length=1, max_length=1_000)]


def router_for(store: Store, trust: TrustPolicy) -> APIRouter:
    """The endpoints of the databases that a store knows."""
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


class ObjectEndpoints:
    """What is answered. A model is read once while the service runs, a database is opened for each request."""

    def __init__(self, store: Store) -> None:
        self._sources = SourceRegistry(store)
        self._read = cache(read_model)

    def sources(self) -> list[str]:
        """Where a database is, and that of its model, stays here."""
        return [each.name for each in self._sources.list_sources()]

    def watches(self, source: str, who: OptionalSubscriberParameter = None) -> list[dict[str, Any]]:
        """All watches, or those of a subscriber."""
        with self._opened(source) as watches:
            return [each.record() for each in watches.list_watches(who)]

    async def watch(self, source: str, request: Request) -> Response:
        """201 if it is new, 200 if it was there already."""
        _refuse_other_types(request)
        who, what = _parse_watch(await read_body(request, MAX_WATCH_BYTES))
        watched, is_new = await run_in_threadpool(self._watch, source, who, what)
        return JSONResponse(watched.record(), 201 if is_new else 200)

    def _watch(self, source: str, who: str, what: str) -> tuple[WatchDescription, bool]:
        with self._opened(source) as watches:
            return watches.add(who, what)

    def unwatch(self, source: str, who: SubscriberParameter, what: WatchesParameter) -> dict[str, Any]:
        """What is not watched cannot be undone."""
        with self._opened(source) as watches:
            watched, was = watches.remove(who, what)
        if not was:
            raise Absent("there is no such watch", received=f"{who} watches {what}")
        return watched.record()

    @contextmanager
    def _opened(self, source: str) -> Iterator[WatchRegistry]:
        with open_source(self._sources.select(source), self._read) as found:
            yield WatchRegistry(found)


def _refuse_other_types(request: Request) -> None:
    """A page of somebody else's can have a browser send other types anywhere, and JSON only where it is allowed to."""
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given != "application/json":
        problem = InputError(
            "this is no JSON",
            where="Content-Type",
            received=given or "nothing",
            accepted="application/json",
        )
        raise HttpError(415, problem)


def _parse_watch(body: bytes) -> tuple[str, str]:
    try:
        given = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise HttpError(400, InputError("this is no JSON", received=str(error), accepted=ACCEPTED)) from error
    who, what = (given.get(name) if isinstance(given, dict) else None for name in ("as", "watches"))
    if not isinstance(who, str) or not isinstance(what, str) or len(given) != 2:
        received = repr(given)[:200]
        raise HttpError(400, InputError("who watches what?", received=received, accepted=ACCEPTED))
    return who, what

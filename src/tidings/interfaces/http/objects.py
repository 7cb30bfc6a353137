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

from tidings.errors import Absent, InputError
from tidings.interfaces.http.answers import Answering
from tidings.interfaces.http.bodies import body_of
from tidings.interfaces.http.refused import Refused
from tidings.interfaces.http.trust import Trust, only_for
from tidings.objects.model_files import read_model
from tidings.service.sources import Sources, opened
from tidings.service.watching import Watched, Watches
from tidings.store import Store

LARGEST = 10_000
"""Bytes of what says who watches what."""
ACCEPTED = '{"as": "Student:1", "watches": "Course:ProgrammingBasics"}'

Who = Annotated[str, Query(alias="as", min_length=1, max_length=1_000)]
Maybe = Annotated[str | None, Query(alias="as", min_length=1, max_length=1_000)]
What = Annotated[str, Query(alias="watches", min_length=1, max_length=1_000)]


def router_for(store: Store, trust: Trust) -> APIRouter:
    """The endpoints of the databases that a store knows."""
    dependencies = [Depends(only_for(trust, "watching"))]
    router = APIRouter(prefix="/objects", tags=["objects"], route_class=Answering, dependencies=dependencies)
    endpoints, path = Endpoints(store), "/{source}/watches"
    router.add_api_route("", endpoints.sources, methods=["GET"])
    router.add_api_route(path, endpoints.watches, methods=["GET"])
    router.add_api_route(path, endpoints.watch, methods=["POST"])
    router.add_api_route(path, endpoints.unwatch, methods=["DELETE"])
    return router


class Endpoints:
    """What is answered. A model is read once while the service runs, a database is opened for each request."""

    def __init__(self, store: Store) -> None:
        self._sources = Sources(store)
        self._read = cache(read_model)

    def sources(self) -> list[str]:
        """Where a database is, and that of its model, stays here."""
        return [each.name for each in self._sources.all()]

    def watches(self, source: str, who: Maybe = None) -> list[dict[str, Any]]:
        """All watches, or those of a subscriber."""
        with self._opened(source) as watches:
            return [each.record() for each in watches.of(who)]

    async def watch(self, source: str, request: Request) -> Response:
        """201 if it is new, 200 if it was there already."""
        _refuse_other_types(request)
        who, what = _asked(await body_of(request, LARGEST))
        watched, is_new = await run_in_threadpool(self._watch, source, who, what)
        return JSONResponse(watched.record(), 201 if is_new else 200)

    def _watch(self, source: str, who: str, what: str) -> tuple[Watched, bool]:
        with self._opened(source) as watches:
            return watches.add(who, what)

    def unwatch(self, source: str, who: Who, what: What) -> dict[str, Any]:
        """What is not watched cannot be undone."""
        with self._opened(source) as watches:
            watched, was = watches.remove(who, what)
        if not was:
            raise Absent("there is no such watch", received=f"{who} watches {what}")
        return watched.record()

    @contextmanager
    def _opened(self, source: str) -> Iterator[Watches]:
        with opened(self._sources.chosen(source), self._read) as found:
            yield Watches(found)


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
        raise Refused(415, problem)


def _asked(body: bytes) -> tuple[str, str]:
    try:
        given = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Refused(400, InputError("this is no JSON", received=str(error), accepted=ACCEPTED)) from error
    who, what = (given.get(name) if isinstance(given, dict) else None for name in ("as", "watches"))
    if not isinstance(who, str) or not isinstance(what, str) or len(given) != 2:
        received = repr(given)[:200]
        raise Refused(400, InputError("who watches what?", received=received, accepted=ACCEPTED))
    return who, what

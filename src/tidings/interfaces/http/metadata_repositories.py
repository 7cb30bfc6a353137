"""What repositories ask a provider: to take their rules, what has moved in the results, and everything at once.

PUT     /metadata/repositories/{id}/rules      {"name": "search ..."}: exactly these from now on
GET     /metadata/repositories/{id}/rules
GET     /metadata/repositories/{id}/changes?after=12&limit=1000&wait=20
GET     /metadata/repositories/{id}/state
DELETE  /metadata/repositories/{id}
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse

from tidings.errors import Absent, InputError
from tidings.interfaces.http.bodies import body_of
from tidings.interfaces.http.refused import Refused
from tidings.interfaces.http.waiting import News
from tidings.interfaces.http.writing import Writers
from tidings.metadata.change_sets import changes_to_json, state_to_json
from tidings.provider import Provider
from tidings.storable import LARGEST_INTEGER
from tidings.store import Store
from tidings.store.repositories import scope_of

LARGEST = 8_000_000
"""Bytes of all rules of a repository."""
MOST = 10_000
LONGEST_WAIT = 30

After = Annotated[int, Query(ge=0, le=LARGEST_INTEGER)]
Limit = Annotated[int, Query(ge=1, le=MOST)]
Wait = Annotated[float, Query(ge=0, le=LONGEST_WAIT)]


def add_to(router: APIRouter, store: Store, provider: Provider, news: News, writers: Writers) -> None:
    """Add the endpoints to those of a provider."""
    endpoints = Endpoints(store, provider, news, writers)
    add = router.add_api_route
    add("/repositories/{id}", endpoints.forget, methods=["DELETE"])
    add("/repositories/{id}/rules", endpoints.rules, methods=["GET"])
    add("/repositories/{id}/rules", endpoints.set_rules, methods=["PUT"])
    add("/repositories/{id}/changes", endpoints.changes, methods=["GET"])
    add("/repositories/{id}/state", endpoints.state, methods=["GET"])


class Endpoints:
    """What a provider answers to repositories."""

    def __init__(self, store: Store, provider: Provider, news: News, writers: Writers) -> None:
        self._repositories, self._provider = store.repositories, provider
        self._news, self._writers = news, writers

    def rules(self, id: str) -> dict[str, str]:
        """The rules of a repository."""
        return self._repositories.rules(id)

    async def set_rules(self, id: str, request: Request) -> Response:
        """Make these the rules of a repository: others that it had are removed."""
        texts = _rules(await body_of(request, LARGEST))
        answer = await self._writers.run(lambda: self._set_rules(id, texts))
        self._news.nudge()
        return JSONResponse(answer)

    def _set_rules(self, id: str, texts: dict[str, str]) -> dict[str, Any]:
        self._provider.set_rules(texts, id, scope_of(id))
        return asdict(self._repositories.standing(id))

    async def changes(self, id: str, after: After = 0, limit: Limit = 1_000, wait: Wait = 0) -> Response:
        """What moved after a number; if nothing did, it is waited for."""
        look = lambda: self._repositories.changes(id, after, limit)  # noqa: E731
        found = await self._news.found(look, lambda told: told.sequence > after, wait)
        if await run_in_threadpool(self._repositories.has_old, id, after):
            await self._writers.run(lambda: self._repositories.acknowledge(id, after))
        return JSONResponse(changes_to_json(found))

    def state(self, id: str) -> Response:
        """All members of all rules, and what belongs to them."""
        return JSONResponse(state_to_json(self._repositories.state(id)))

    async def forget(self, id: str) -> dict[str, Any]:
        """Forget a repository: its rules, and what it was told."""
        return await self._writers.run(lambda: self._forget(id))

    def _forget(self, id: str) -> dict[str, Any]:
        rules = self._repositories.rules(id)
        self._provider.set_rules({}, id, scope_of(id))
        told = self._repositories.forget(id)
        if not rules and not told:
            raise Absent("there is no such repository", received=id)
        return {"rules": len(rules), "notifications": told}


def _rules(body: bytes) -> dict[str, str]:
    try:
        given = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Refused(400, InputError("this is no JSON", received=str(error))) from error
    if not isinstance(given, dict) or not all(isinstance(text, str) for text in given.values()):
        accepted = '{"name": "search Class c register c where ...", ...}'
        raise Refused(400, InputError("these are no rules", received=repr(given)[:200], accepted=accepted))
    return given

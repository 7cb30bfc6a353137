"""What other providers ask for: the log, and everything at once for those who begin.

GET  /metadata/log?after=12&limit=500&wait=20
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from itertools import chain
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, StreamingResponse

from tidings.api.http_error import HttpError
from tidings.api.middleware.long_poll import LongPoll
from tidings.api.middleware.write_limiter import WriteLimiter
from tidings.api.request_body import read_body
from tidings.core.storable import LARGEST_INTEGER
from tidings.errors import Absent, InputError
from tidings.metadata.change_sets import changes_to_json, state_to_json
from tidings.metadata.log import page_to_json
from tidings.metadata.provider.provider import Provider
from tidings.metadata.sql.repository_feeds import repository_scope
from tidings.store.store import Store

# What repositories ask a provider: to take their rules, what has moved in the results, and everything at once.
#
# PUT /metadata/repositories/{id}/rules {"name": "search ..."}: exactly these from now on GET
# /metadata/repositories/{id}/rules GET /metadata/repositories/{id}/changes?after=12&limit=1000&wait=20 GET
# /metadata/repositories/{id}/state DELETE /metadata/repositories/{id}


MAX_RULES_BYTES = 8_000_000
"""Bytes of all rules of a repository."""
MAX_CHANGES = 10_000
LONGEST_WAIT = 30

After = Annotated[int, Query(ge=0, le=LARGEST_INTEGER)]
ChangesLimit = Annotated[int, Query(ge=1, le=MAX_CHANGES)]
Wait = Annotated[float, Query(ge=0, le=LONGEST_WAIT)]


def add_repository_routes(
    router: APIRouter, store: Store, provider: Provider, news: LongPoll, writers: WriteLimiter
) -> None:
    """Add the endpoints to those of a provider."""
    endpoints = RepositoryEndpoints(store, provider, news, writers)
    add = router.add_api_route
    add("/repositories/{id}", endpoints.forget, methods=["DELETE"])
    add("/repositories/{id}/rules", endpoints.rules, methods=["GET"])
    add("/repositories/{id}/rules", endpoints.set_rules, methods=["PUT"])
    add("/repositories/{id}/changes", endpoints.changes, methods=["GET"])
    add("/repositories/{id}/state", endpoints.state, methods=["GET"])


class RepositoryEndpoints:
    """What a provider answers to repositories."""

    def __init__(self, store: Store, provider: Provider, news: LongPoll, writers: WriteLimiter) -> None:
        self._repositories, self._provider = store.repositories, provider
        self._news, self._writers = news, writers

    def rules(self, id: str) -> dict[str, str]:
        """The rules of a repository."""
        return self._repositories.rules(id)

    async def set_rules(self, id: str, request: Request) -> Response:
        """Make these the rules of a repository: others that it had are removed."""
        texts = _rules(await read_body(request, MAX_RULES_BYTES))
        answer = await self._writers.run(lambda: self._set_rules(id, texts))
        self._news.nudge()
        return JSONResponse(answer)

    def _set_rules(self, id: str, texts: dict[str, str]) -> dict[str, Any]:
        self._provider.set_rules(texts, id, repository_scope(id))
        return asdict(self._repositories.standing(id))

    async def changes(
        self, id: str, after: After = 0, limit: ChangesLimit = 1_000, wait: Wait = 0
    ) -> Response:
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
        self._provider.set_rules({}, id, repository_scope(id))
        told = self._repositories.forget(id)
        if not rules and not told:
            raise Absent("there is no such repository", received=id)
        return {"rules": len(rules), "notifications": told}


def _rules(body: bytes) -> dict[str, str]:
    try:
        given = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise HttpError(400, InputError("this is no JSON", received=str(error))) from error
    if not isinstance(given, dict) or not all(isinstance(text, str) for text in given.values()):
        accepted = '{"name": "search Class c register c where ...", ...}'
        raise HttpError(400, InputError("these are no rules", received=repr(given)[:200], accepted=accepted))
    return given


MAX_LOG_ENTRIES = 1_000
JSON_LINES = "application/x-ndjson"
PIECE = 100_000
"""Bytes that are sent at a time."""

LogLimit = Annotated[int, Query(ge=1, le=MAX_LOG_ENTRIES)]


def add_log_routes(router: APIRouter, store: Store, provider: Provider, news: LongPoll) -> None:
    """Add the endpoints to those of a provider."""
    endpoints = LogEndpoints(store, provider, news)
    router.add_api_route("/log", endpoints.log, methods=["GET"])
    router.add_api_route("/snapshot", endpoints.snapshot, methods=["GET"])


class LogEndpoints:
    """What a provider answers to others."""

    def __init__(self, store: Store, provider: Provider, news: LongPoll) -> None:
        self._store, self._provider, self._news = store, provider, news

    async def log(self, after: After = 0, limit: LogLimit = 500, wait: Wait = 0) -> Response:
        """Entries of the log after a position; if there are none, they are waited for."""
        look = lambda: self._store.replication.page(after, limit)  # noqa: E731
        found = await self._news.found(look, lambda page: bool(page.entries), wait)
        return JSONResponse(page_to_json(found))

    def snapshot(self) -> Response:
        """Everything, as of one position. The first line is made before the answer begins: it may be refused."""
        lines = self._provider.snapshot()
        first = next(lines)
        return StreamingResponse(_pieces(chain([first], lines)), media_type=JSON_LINES)


def _pieces(records: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
    """Lines of JSON, many together: each piece is made in a thread of its own."""
    piece = bytearray()
    for record in records:
        piece += json.dumps(record, ensure_ascii=False).encode() + b"\n"
        if len(piece) >= PIECE:
            yield bytes(piece)
            piece.clear()
    yield bytes(piece)

"""Routes of a metadata provider for repositories and for other providers.

PUT     /metadata/repositories/{id}/rules       {"name": "search ..."}: exactly these from now on
GET     /metadata/repositories/{id}/rules
GET     /metadata/repositories/{id}/changes     ?after=12  &limit=1000  &wait=20
GET     /metadata/repositories/{id}/state       all results at once
DELETE  /metadata/repositories/{id}
GET     /metadata/log                           ?after=12  &limit=500  &wait=20
GET     /metadata/snapshot                      everything, for providers that begin to follow
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

from tidings.api.metadata.long_poll import LongPoll
from tidings.api.parameters import AfterNumber
from tidings.api.problem_details import HttpError
from tidings.api.request_body import read_body
from tidings.api.write_limiter import WriteLimiter
from tidings.errors import InputError, NotFound
from tidings.metadata.change_sets import changes_to_json, state_to_json
from tidings.metadata.log import page_to_json
from tidings.metadata.provider.provider import Provider
from tidings.metadata.sql.repository_feeds import repository_scope
from tidings.store.store import Store

MAX_RULES_BYTES = 8_000_000
"""Bytes of all rules of a repository."""
MAX_CHANGES = 10_000
MAX_LOG_ENTRIES = 1_000
LONGEST_WAIT = 30

JSON_LINES = "application/x-ndjson"
CHUNK = 100_000
"""Bytes of a snapshot that are sent at a time."""

ChangesLimit = Annotated[int, Query(ge=1, le=MAX_CHANGES)]
LogLimit = Annotated[int, Query(ge=1, le=MAX_LOG_ENTRIES)]
Wait = Annotated[float, Query(ge=0, le=LONGEST_WAIT)]


def add_repository_routes(
    router: APIRouter, store: Store, provider: Provider, news: LongPoll, writers: WriteLimiter
) -> None:
    """Add the routes for repositories to those of a provider."""
    endpoints = RepositoryEndpoints(store, provider, news, writers)
    add = router.add_api_route
    add("/repositories/{id}", endpoints.forget, methods=["DELETE"])
    add("/repositories/{id}/rules", endpoints.rules, methods=["GET"])
    add("/repositories/{id}/rules", endpoints.set_rules, methods=["PUT"])
    add("/repositories/{id}/changes", endpoints.changes, methods=["GET"])
    add("/repositories/{id}/state", endpoints.state, methods=["GET"])


class RepositoryEndpoints:
    """Rules of repositories, changes of their results, and their state."""

    def __init__(self, store: Store, provider: Provider, news: LongPoll, writers: WriteLimiter) -> None:
        self._repositories, self._provider = store.repositories, provider
        self._news, self._writers = news, writers

    def rules(self, id: str) -> dict[str, str]:
        """Read the rules of a repository."""
        return self._repositories.rules(id)

    async def set_rules(self, id: str, request: Request) -> Response:
        """Replace the rules of a repository."""
        texts = _parse_rules(await read_body(request, MAX_RULES_BYTES))
        answer = await self._writers.run(lambda: self._set_rules(id, texts))
        self._news.poll_soon()
        return JSONResponse(answer)

    def _set_rules(self, id: str, texts: dict[str, str]) -> dict[str, Any]:
        self._provider.set_rules(texts, id, repository_scope(id))
        return asdict(self._repositories.standing(id))

    async def changes(
        self, id: str, after: AfterNumber = 0, limit: ChangesLimit = 1_000, wait: Wait = 0
    ) -> Response:
        """Read the changes after a number, waiting for the first one. It acknowledges those before."""
        read = lambda: self._repositories.changes(id, after, limit)  # noqa: E731
        changes = await self._news.wait_for(read, lambda changes: changes.sequence > after, wait)
        if await run_in_threadpool(self._repositories.has_old, id, after):
            await self._writers.run(lambda: self._repositories.acknowledge(id, after))
        return JSONResponse(changes_to_json(changes))

    def state(self, id: str) -> Response:
        """Read all resources in the results of all rules, and those they need."""
        return JSONResponse(state_to_json(self._repositories.state(id)))

    async def forget(self, id: str) -> dict[str, Any]:
        """Delete a repository: its rules and its notifications."""
        return await self._writers.run(lambda: self._forget(id))

    def _forget(self, id: str) -> dict[str, Any]:
        rules = self._repositories.rules(id)
        self._provider.set_rules({}, id, repository_scope(id))
        notifications = self._repositories.forget(id)
        if not rules and not notifications:
            raise NotFound("there is no such repository", received=id)
        return {"rules": len(rules), "notifications": notifications}


def _parse_rules(body: bytes) -> dict[str, str]:
    try:
        rules = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise HttpError(400, InputError("not JSON", received=str(error))) from error
    if not isinstance(rules, dict) or not all(isinstance(text, str) for text in rules.values()):
        accepted = '{"name": "search Class c register c where ...", ...}'
        raise HttpError(400, InputError("not rules", received=repr(rules)[:200], accepted=accepted))
    return rules


def add_log_routes(router: APIRouter, store: Store, provider: Provider, news: LongPoll) -> None:
    """Add the log and the snapshot to the routes of a provider."""

    @router.get("/log")
    async def log(after: AfterNumber = 0, limit: LogLimit = 500, wait: Wait = 0) -> Response:
        """Read entries of the log after a position, waiting for the first one."""
        read = lambda: store.replication.page(after, limit)  # noqa: E731
        return JSONResponse(page_to_json(await news.wait_for(read, lambda page: bool(page.entries), wait)))

    @router.get("/snapshot")
    def snapshot() -> Response:
        """Read everything as of one position. The first line is built before the response begins: it may fail."""
        lines = provider.snapshot()
        first = next(lines)
        return StreamingResponse(_encode_lines(chain([first], lines)), media_type=JSON_LINES)


def _encode_lines(records: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
    """Yield JSON lines in chunks: each chunk is built in a thread."""
    chunk = bytearray()
    for record in records:
        chunk += json.dumps(record, ensure_ascii=False).encode() + b"\n"
        if len(chunk) >= CHUNK:
            yield bytes(chunk)
            chunk.clear()
    yield bytes(chunk)

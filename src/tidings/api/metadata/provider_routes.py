"""A provider over HTTP: where it is, its schema and its documents. Everything below `/metadata`.

    GET     /metadata/status
    GET     /metadata/schema            PUT the same
    GET     /metadata/documents         PUT and DELETE with ?uri=

At a provider that follows another one, registrations go there, and are answered when they are applied here. What
repositories and other providers ask for is in modules of its own.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse

from tidings.api import problem_details
from tidings.api.authentication import TrustPolicy, require_trust
from tidings.api.http_error import HttpError
from tidings.api.metadata import replication
from tidings.api.metadata.replication import LONGEST_WAIT
from tidings.api.middleware.long_poll import LongPoll
from tidings.api.middleware.write_limiter import WriteLimiter
from tidings.api.request_body import read_body
from tidings.api.routes import ProblemRoute
from tidings.errors import Absent, InputError
from tidings.graphs.rdf.media_types import SYNTAXES
from tidings.metadata.log import LogDraft, Operation
from tidings.metadata.provider.provider import Provider, registration_to_json, schema_to_json
from tidings.metadata.replication.log_follower import FollowWorker
from tidings.metadata.replication.log_protocol import ForwardedResponse
from tidings.metadata.replication.peer import HOPS_HEADER
from tidings.metadata.replication.routing import RegistrationRouter
from tidings.metadata.sql.transaction import DEAD_LETTER_SOURCE
from tidings.store.store import Store

LARGEST = 17_000_000
"""Bytes of a document; limits of graphs say more."""

MAX_HOPS = 5
BAD_REQUEST = 400

Uri = Annotated[str, Query(min_length=1, max_length=500)]


@dataclass(frozen=True, slots=True)
class ProviderApi:
    """The endpoints of a provider, and what those that wait, wait for: whoever serves them ends it."""

    router: APIRouter
    news: LongPoll


def build_provider_api(
    store: Store, trust: TrustPolicy, following: FollowWorker | None = None
) -> ProviderApi:
    """The endpoints of the provider of a store; `following` is what it follows a log with, if it does."""
    provider = following.provider if following else Provider(store)
    news = LongPoll(store.replication.mark)
    registering = RegistrationRouter(store, following.log if following else None)
    router = _router(trust, registering)
    writers = WriteLimiter()
    endpoints = ProviderEndpoints(store, provider, news, registering, following, writers)
    add = router.add_api_route
    add("/status", endpoints.status, methods=["GET"])
    add("/schema", endpoints.schema, methods=["GET"])
    add("/schema", endpoints.load_schema, methods=["PUT"])
    add("/documents", endpoints.documents, methods=["GET"])
    add("/documents", endpoints.register, methods=["PUT"])
    add("/documents", endpoints.remove, methods=["DELETE"])
    replication.add_repository_routes(router, store, provider, news, writers)
    replication.add_log_routes(router, store, provider, news)
    return ProviderApi(router, news)


def _router(trust: TrustPolicy, registering: RegistrationRouter) -> APIRouter:
    """A router for those who may."""

    @asynccontextmanager
    async def closing(_: object) -> AsyncIterator[None]:
        with registering:
            yield

    return APIRouter(
        prefix="/metadata",
        tags=["metadata"],
        route_class=ProblemRoute,
        dependencies=[Depends(require_trust(trust, "metadata"))],
        lifespan=closing,
    )


class ProviderEndpoints:
    """What a provider answers."""

    def __init__(
        self,
        store: Store,
        provider: Provider,
        news: LongPoll,
        registering: RegistrationRouter,
        following: FollowWorker | None,
        writers: WriteLimiter,
    ) -> None:
        self._store, self._provider, self._news = store, provider, news
        self._registering, self._following, self._writers = registering, following, writers

    def status(self) -> dict[str, Any]:
        """Where this provider is. The lag is what it has not applied yet of the log, as far as it knows."""
        found = self._store.replication.status()
        said, ahead, problem = asdict(found), found.head, None
        if self._following is not None:  # whom it tries to follow: providers look for circles by that
            said["leader"] = self._following.log.name
            ahead, problem = max(ahead, self._following.head or 0), self._following.problem
        return {**said, "lag": ahead - found.position, "problem": problem}

    def schema(self) -> Response:
        """The schema, as it was loaded."""
        file = self._store.metadata.schema()
        if file is None:
            raise Absent("there is no schema for metadata yet", hint="PUT /metadata/schema")
        return Response(file.body, media_type=file.media_type, headers={"ETag": f'"{file.version}"'})

    def documents(self) -> list[dict[str, Any]]:
        """All documents, with how many resources each has."""
        return [{"uri": uri, "resources": count} for uri, count in self._provider.documents()]

    async def load_schema(self, request: Request) -> Response:
        """Load a schema that has what the one before had, and more."""
        media_type = _media_type(request)
        return await self._take(
            LogDraft(Operation.SCHEMA, "", media_type, await read_body(request, LARGEST)), request
        )

    async def register(self, uri: Uri, request: Request) -> Response:
        """Register a document, or a new version of it."""
        media_type = _media_type(request)
        draft = LogDraft(Operation.REGISTER, uri, media_type, await read_body(request, LARGEST))
        return await self._take(draft, request)

    async def remove(self, uri: Uri, request: Request) -> Response:
        """Remove a document with all its resources."""
        return await self._take(LogDraft(Operation.REMOVE, uri), request)

    async def _take(self, draft: LogDraft, request: Request) -> Response:
        keeper = await run_in_threadpool(self._registering.keeper)
        if keeper is None:
            answer = await self._writers.run(lambda: self._registered(draft))
            self._news.nudge()
            return JSONResponse(answer)
        hops = _hops(request)
        return await self._applied(await self._writers.run(lambda: keeper.forward(draft, hops)))

    def _registered(self, draft: LogDraft) -> dict[str, Any]:
        provider = self._provider
        if draft.what is Operation.SCHEMA:
            return schema_to_json(provider.load_schema(draft.body, draft.media_type), provider.position)
        if draft.what is Operation.REMOVE:
            return registration_to_json(draft.uri, provider.remove(draft.uri))
        return registration_to_json(draft.uri, provider.register(draft.uri, draft.body, draft.media_type))

    async def _applied(self, done: ForwardedResponse) -> Response:
        """The answer of who keeps the log, when it holds here, too. If that takes too long, it says so."""
        if done.position is None:
            return _forward_response(done.answer, done.status)
        until, look = done.position, lambda: self._provider.position
        reached = await self._news.found(look, lambda position: position >= until, LONGEST_WAIT) >= until
        if reached and (problem := await run_in_threadpool(self._refusal, until)):
            return _forward_response(problem, 422)
        there = {
            name: value for name, value in done.answer.items() if name != "moves"
        }  # of other rules than here
        return JSONResponse({**there, "applied": reached}, 200 if reached else 202)

    def _refusal(self, position: int) -> dict[str, Any] | None:
        """Why an entry of the log could not be applied: another one came before it, since it was checked."""
        letter = self._store.dead_letters.at(DEAD_LETTER_SOURCE, position)
        return {**letter.facts, "message": letter.reason, "detail": letter.reason} if letter else None


def _forward_response(answer: Mapping[str, Any], status: int) -> Response:
    """An answer of who keeps the log, or of when an entry was applied; a refusal is a problem here, too."""
    kind = problem_details.MEDIA_TYPE if status >= BAD_REQUEST else None
    return JSONResponse(dict(answer), status, media_type=kind)


def _hops(request: Request) -> int:
    """How often a registration was handed on by providers."""
    given = request.headers.get(HOPS_HEADER, "0")
    if not (given.isascii() and given.isdecimal() and len(given) == 1 and int(given) < MAX_HOPS):
        hint = "do providers follow each other in a circle? tidings provider status URL..."
        raise HttpError(508, InputError("handed on too often", received=given[:10], hint=hint))
    return int(given)


def _media_type(request: Request) -> str:
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given not in SYNTAXES:
        problem = InputError(
            "no syntax of graphs",
            where="Content-Type",
            received=given or "nothing",
            accepted=", ".join(SYNTAXES),
        )
        raise HttpError(415, problem)
    return given

"""Routes of a metadata provider: status, schema, documents and browsing, all below `/metadata`.

    GET     /metadata/status
    GET     /metadata/schema            PUT the same
    GET     /metadata/documents         PUT and DELETE with ?uri=
    GET     /metadata/classes
    GET     /metadata/classes/{name}    ?after=  &limit=
    GET     /metadata/resource          ?uri=  &after=  &limit=

A provider that follows another one forwards registrations to it, and answers when they are applied locally. Routes for
repositories and for other providers are in `replication.py`; `console/metadata.py` renders browsing as pages.
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
from tidings.api.metadata import replication
from tidings.api.metadata.long_poll import LongPoll
from tidings.api.metadata.replication import LONGEST_WAIT
from tidings.api.parameters import media_type_of
from tidings.api.problem_details import HttpError
from tidings.api.request_body import read_body
from tidings.api.routes import ProblemRoute
from tidings.api.write_limiter import WriteLimiter
from tidings.errors import InputError, NotFound
from tidings.graphs.rdf.media_types import SYNTAXES
from tidings.metadata.log import LogDraft, Operation
from tidings.metadata.provider.log_applier import DEAD_LETTER_SOURCE
from tidings.metadata.provider.provider import Provider, registration_to_json, schema_to_json
from tidings.metadata.queries import browser as browsing
from tidings.metadata.queries.browser import MAX_PAGE_SIZE, PAGE_SIZE, Browser
from tidings.metadata.replication.log_follower import FollowWorker
from tidings.metadata.replication.peer import HOPS_HEADER, ForwardedResponse
from tidings.metadata.replication.routing import RegistrationRouter
from tidings.store.store import Store

MAX_DOCUMENT_BYTES = 17_000_000
"""Bytes of a document; the limits of graphs are stricter."""

MAX_HOPS = 5

Uri = Annotated[str, Query(min_length=1, max_length=500)]
After = Annotated[str, Query(max_length=1_100)]
Limit = Annotated[int, Query(ge=1, le=MAX_PAGE_SIZE)]


@dataclass(frozen=True, slots=True)
class ProviderApi:
    """The routes of a provider, and its long polls, which the application ends on shutdown."""

    router: APIRouter
    news: LongPoll


def build_provider_api(
    store: Store, trust: TrustPolicy, following: FollowWorker | None = None
) -> ProviderApi:
    """Return the routes of the provider of a store; `following` is its worker if it follows another provider."""
    provider = following.provider if following else Provider(store)
    news = LongPoll(store.replication.mark)
    registering = RegistrationRouter(store, following.log if following else None)
    router = _metadata_router(trust, registering)
    writers = WriteLimiter()
    endpoints = ProviderEndpoints(store, provider, news, registering, following, writers)
    add = router.add_api_route
    add("/status", endpoints.status, methods=["GET"])
    add("/schema", endpoints.schema, methods=["GET"])
    add("/schema", endpoints.load_schema, methods=["PUT"])
    add("/documents", endpoints.documents, methods=["GET"])
    add("/documents", endpoints.register, methods=["PUT"])
    add("/documents", endpoints.remove, methods=["DELETE"])
    add_browse_routes(router, store)
    replication.add_repository_routes(router, store, provider, news, writers)
    replication.add_log_routes(router, store, provider, news)
    return ProviderApi(router, news)


def _metadata_router(trust: TrustPolicy, registering: RegistrationRouter) -> APIRouter:
    @asynccontextmanager
    async def lifespan(_: object) -> AsyncIterator[None]:
        with registering:
            yield

    return APIRouter(
        prefix="/metadata",
        tags=["metadata"],
        route_class=ProblemRoute,
        dependencies=[Depends(require_trust(trust, "metadata"))],
        lifespan=lifespan,
    )


def add_browse_routes(router: APIRouter, store: Store) -> None:
    """Add metadata as JSON, for browsing: classes, their resources, and the references of a resource."""
    browser = Browser(store)

    @router.get("/classes")
    def classes() -> dict[str, Any]:
        return {"classes": [browsing.class_to_json(cls) for cls in browser.classes()]}

    @router.get("/classes/{name}")
    def instances(name: str, after: After = "", limit: Limit = PAGE_SIZE) -> dict[str, Any]:
        return browsing.instances_to_json(browser.instances(name, after, limit))

    @router.get("/resource")
    def resource(uri: Uri, after: After = "", limit: Limit = PAGE_SIZE) -> dict[str, Any]:
        return browsing.view_to_json(browser.resource(uri, after, limit))


class ProviderEndpoints:
    """Status, schema and documents of a provider."""

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
        """Report the position of this provider, and its lag: known entries of the log that it has not applied."""
        status = self._store.replication.status()
        members, head, problem = asdict(status), status.head, None
        if self._following is not None:  # the intended leader: providers use it to detect cycles
            members["leader"] = self._following.log.name
            head, problem = max(head, self._following.head or 0), self._following.problem
        return {**members, "lag": head - status.position, "problem": problem}

    def schema(self) -> Response:
        """Return the schema as it was loaded."""
        file = self._store.metadata.schema()
        if file is None:
            raise NotFound("there is no metadata schema yet", hint="PUT /metadata/schema")
        return Response(file.body, media_type=file.media_type, headers={"ETag": f'"{file.version}"'})

    def documents(self) -> list[dict[str, Any]]:
        """List all documents with their numbers of resources."""
        return [{"uri": uri, "resources": count} for uri, count in self._provider.documents()]

    async def load_schema(self, request: Request) -> Response:
        """Load a schema that extends the current one."""
        media_type = _require_graph_syntax(request)
        body = await read_body(request, MAX_DOCUMENT_BYTES)
        return await self._append(LogDraft(Operation.SCHEMA, "", media_type, body), request)

    async def register(self, uri: Uri, request: Request) -> Response:
        """Register a document, or a new version of it."""
        media_type = _require_graph_syntax(request)
        body = await read_body(request, MAX_DOCUMENT_BYTES)
        return await self._append(LogDraft(Operation.REGISTER, uri, media_type, body), request)

    async def remove(self, uri: Uri, request: Request) -> Response:
        """Remove a document with all its resources."""
        return await self._append(LogDraft(Operation.REMOVE, uri), request)

    async def _append(self, draft: LogDraft, request: Request) -> Response:
        """Append to the log, at the provider that keeps it."""
        keeper = await run_in_threadpool(self._registering.keeper)
        if keeper is None:
            answer = await self._writers.run(lambda: self._append_here(draft))
            self._news.poll_soon()
            return JSONResponse(answer)
        hops = _read_hops(request)
        return await self._wait_until_applied(await self._writers.run(lambda: keeper.forward(draft, hops)))

    def _append_here(self, draft: LogDraft) -> dict[str, Any]:
        provider = self._provider
        if draft.what is Operation.SCHEMA:
            return schema_to_json(provider.load_schema(draft.body, draft.media_type), provider.position)
        if draft.what is Operation.REMOVE:
            return registration_to_json(draft.uri, provider.remove(draft.uri))
        return registration_to_json(draft.uri, provider.register(draft.uri, draft.body, draft.media_type))

    async def _wait_until_applied(self, forwarded: ForwardedResponse) -> Response:
        """Return the keeper's response once the entry is applied here; 202 if that takes too long."""
        if forwarded.position is None:
            return _forward_response(forwarded.answer, forwarded.status)
        until, read = forwarded.position, lambda: self._provider.position
        position = await self._news.wait_for(read, lambda position: position >= until, LONGEST_WAIT)
        is_applied = position >= until
        if is_applied and (problem := await run_in_threadpool(self._find_refusal, until)):
            return _forward_response(problem, 422)
        members = dict(forwarded.answer)
        members.pop("moves", None)  # those of the keeper's rules, not of ours
        return JSONResponse({**members, "applied": is_applied}, 200 if is_applied else 202)

    def _find_refusal(self, position: int) -> dict[str, Any] | None:
        """Return why an entry of the log could not be applied: an entry after its check came before it."""
        letter = self._store.dead_letters.find_at(DEAD_LETTER_SOURCE, position)
        return {**letter.facts, "message": letter.reason, "detail": letter.reason} if letter else None


def _forward_response(answer: Mapping[str, Any], status: int) -> Response:
    """Return a response of the keeper; errors are Problem Details here as well."""
    media_type = problem_details.MEDIA_TYPE if status >= 400 else None
    return JSONResponse(dict(answer), status, media_type=media_type)


def _read_hops(request: Request) -> int:
    """Return how many providers have forwarded a registration."""
    hops = request.headers.get(HOPS_HEADER, "0")
    if not (hops.isascii() and hops.isdecimal() and len(hops) == 1 and int(hops) < MAX_HOPS):
        hint = "providers may follow each other in a cycle: run tidings provider status URL..."
        accepted = f"at most {MAX_HOPS - 1}"
        problem = InputError(
            "forwarded too often", where=HOPS_HEADER, received=hops[:10], accepted=accepted, hint=hint
        )
        raise HttpError(508, problem)
    return int(hops)


def _require_graph_syntax(request: Request) -> str:
    media_type = media_type_of(request)
    if media_type not in SYNTAXES:
        received, accepted = media_type or "nothing", ", ".join(SYNTAXES)
        problem = InputError("not an RDF syntax", where="Content-Type", received=received, accepted=accepted)
        raise HttpError(415, problem)
    return media_type

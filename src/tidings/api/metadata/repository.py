"""Application of a metadata repository. It answers from its own store, also while its provider is unreachable.

    GET         /status             position, contents, and whether it is disconnected
    GET         /query?query=search CycleProvider c ...
    POST        /query              the text as text/plain, or as the form field `query`
    GET         /sparql?query=SELECT ...
    POST        /sparql             the text as application/sparql-query, or as the form field `query`

`Accept` selects the format of results: JSON by default, CSV, and the formats of the SPARQL protocol.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import parse_qs

from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse

from tidings.api.authentication import TOKEN_VARIABLE, TrustPolicy, require_trust
from tidings.api.parameters import media_type_of
from tidings.api.problem_details import HttpError
from tidings.api.request_body import FORM, read_body
from tidings.api.routes import ProblemRoute, join_routers
from tidings.errors import InputError
from tidings.metadata.queries.answers import answer_to_csv, answer_to_json
from tidings.metadata.queries.engine import QueryEngine
from tidings.metadata.queries.sparql import GRAPH_FORMATS, RESULT_FORMATS
from tidings.metadata.queries.sparql_syntax import MAX_QUERY_LENGTH
from tidings.metadata.repository.repository import Repository
from tidings.metadata.repository.synchronization import Connected, CutOff, Followed, Refreshed, SyncEvent

MAX_QUERY_BYTES = 4 * MAX_QUERY_LENGTH
"""Bytes of the body of a query: a character may take four."""

JSON, CSV = "application/json", "text/csv"
HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Vary": "Accept"}

LEFT_OUT_HEADER = "Tidings-Left-Out"
"""The number of resources and references that are not in the graph because their URIs are not IRIs."""

_GRAPH_PARAMETERS = ("default-graph-uri", "named-graph-uri")


def query_router_for(queries: QueryEngine, trust: TrustPolicy) -> APIRouter:
    """Return the routes of queries."""
    dependencies = [Depends(require_trust(trust, "a query"))]
    router = APIRouter(tags=["queries"], route_class=ProblemRoute, dependencies=dependencies)

    @router.api_route("/query", methods=["GET", "POST"])
    async def query(request: Request) -> Response:
        text = await _read_query(request, "text/plain")
        media_type = _negotiate(request, (JSON, CSV))
        if media_type is None:
            raise _build_not_acceptable_error((JSON, CSV))
        answer = await run_in_threadpool(queries.ask, text)
        if media_type == CSV:
            content = answer_to_csv(answer, queries.schema()).encode()
            return Response(content, headers=HEADERS, media_type=CSV)
        return JSONResponse(answer_to_json(answer), headers=HEADERS)

    @router.api_route("/sparql", methods=["GET", "POST"])
    async def sparql(request: Request) -> Response:
        text = await _read_query(request, "application/sparql-query")
        results, graph = _negotiate(request, RESULT_FORMATS), _negotiate(request, GRAPH_FORMATS)
        if results is None and graph is None:
            raise _build_not_acceptable_error([*RESULT_FORMATS, *GRAPH_FORMATS])
        answer = await run_in_threadpool(queries.sparql, text, results, graph)
        left_out = {LEFT_OUT_HEADER: str(answer.left_out)} if answer.left_out else {}
        return Response(answer.body, headers=HEADERS | left_out, media_type=answer.media_type)

    return router


async def _read_query(request: Request, text_type: str) -> str:
    """Return the text of a query: a parameter, a form field, or the body itself."""
    fields = dict(request.query_params.multi_items())
    if any(name in fields for name in _GRAPH_PARAMETERS):
        problem = InputError(
            "a graph cannot be chosen: there is only one", where=", ".join(_GRAPH_PARAMETERS)
        )
        raise HttpError(400, problem)
    if request.method == "GET":
        return _require_text(fields.get("query"))
    body = await read_body(request, MAX_QUERY_BYTES)
    media_type = media_type_of(request)
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise HttpError(400, InputError("the body is not UTF-8", received=str(error))) from error
    if media_type == text_type:
        return _require_text(text)
    if media_type == FORM:
        return _require_text(next(iter(parse_qs(text).get("query", ())), None))
    accepted = f"{text_type} or {FORM}"
    problem = InputError("not the media type of a query", received=media_type, accepted=accepted)
    raise HttpError(415, problem)


def _require_text(text: str | None) -> str:
    if not text:
        raise HttpError(400, InputError("the query is missing", where="query", accepted="a text"))
    return text


def _negotiate(request: Request, available: Collection[str]) -> str | None:
    """Return the media type that the client prefers; `None` if `Accept` names only others."""
    ranges = [_parse_range(part) for part in request.headers.get("accept", "*/*").split(",")]
    for range, quality in sorted(ranges, key=lambda pair: -pair[1]):
        for media_type in available:
            main = media_type.partition("/")[0]
            if quality > 0 and range in (media_type, "*/*", f"{main}/*"):
                return media_type
            if quality > 0 and range == JSON and media_type.endswith("+json"):
                return media_type
    return None


def _parse_range(text: str) -> tuple[str, float]:
    range, *parameters = (part.strip() for part in text.split(";"))
    quality = next((parameter[2:] for parameter in parameters if parameter.startswith("q=")), "1")
    return range.lower(), float(quality) if quality.replace(".", "", 1).isdecimal() else 0.0


def _build_not_acceptable_error(available: Collection[str]) -> HttpError:
    return HttpError(
        406, InputError("not an available format", where="Accept", accepted=", ".join(available))
    )


@dataclass(slots=True)
class FollowState:
    """The provider that a repository follows now, according to its synchronization events."""

    link: str | None = None
    problem: str | None = None

    def record(self, event: SyncEvent) -> None:
        if isinstance(event, CutOff):
            self.link, self.problem = None, event.problem
        elif isinstance(event, Connected | Refreshed | Followed):
            self.link, self.problem = event.link, None


def create_repository_app(repository: Repository, following: FollowState) -> FastAPI:
    """Create the application of a repository."""
    trust = TrustPolicy(os.environ.get(TOKEN_VARIABLE))
    dependencies = [Depends(require_trust(trust, "a repository"))]
    router = APIRouter(route_class=ProblemRoute, dependencies=dependencies)

    @router.get("/status")
    def status() -> dict[str, Any]:
        return {**asdict(repository.status()), "following": following.link, "problem": following.problem}

    app = FastAPI(title="Tidings repository", docs_url=None, redoc_url=None)
    join_routers(app, router, query_router_for(QueryEngine.at_repository(repository.store), trust))
    return app

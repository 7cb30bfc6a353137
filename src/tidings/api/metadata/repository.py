"""A repository over HTTP, for whoever is near it.

    GET         /status             where it is, what it holds, and whether it is cut off
    GET, POST   /query, /sparql     queries

Answers come from the repository alone, also while its provider cannot be reached.
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
from tidings.api.http_error import HttpError
from tidings.api.request_body import read_body
from tidings.api.routes import ProblemRoute, join_routers
from tidings.errors import InputError
from tidings.metadata.queries.answers import answer_to_csv, answer_to_json
from tidings.metadata.queries.engine import QueryEngine
from tidings.metadata.queries.sparql import GRAPH_FORMATS, RESULT_FORMATS
from tidings.metadata.queries.sparql_syntax import MAX_QUERY_LENGTH
from tidings.metadata.repository.repository import Repository
from tidings.metadata.repository.synchronization import Connected, CutOff, Followed, Refreshed, SyncEvent

# Queries over HTTP: at a repository, and answered by it alone.
#
#     GET     /query?query=search CycleProvider c ...
#     POST    /query       the text as text/plain, or as a form's field `query`
#     GET     /sparql?query=SELECT ...
#     POST    /sparql      the text as application/sparql-query, or as a form's field `query`
#
# `Accept` says how the answer is written: JSON by default, CSV, and for SPARQL what its protocol has.


MAX_QUERY_BYTES = 4 * MAX_QUERY_LENGTH
"""Bytes of a query's body: each character may be four."""

FORM, JSON, CSV = "application/x-www-form-urlencoded", "application/json", "text/csv"
_GRAPHS_ASKED = ("default-graph-uri", "named-graph-uri")


def query_router_for(queries: QueryEngine, trust: TrustPolicy) -> APIRouter:
    """The endpoints of queries."""
    dependencies = [Depends(require_trust(trust, "a query"))]
    router = APIRouter(tags=["queries"], route_class=ProblemRoute, dependencies=dependencies)

    @router.api_route("/query", methods=["GET", "POST"])
    async def query(request: Request) -> Response:
        text = await _read_query(request, "text/plain")
        wanted = _preferred(request, (JSON, CSV))
        if wanted is None:
            raise _not_acceptable((JSON, CSV))
        answer = await run_in_threadpool(queries.ask, text)
        if wanted == CSV:
            return _plain(answer_to_csv(answer, queries.schema()).encode(), CSV)
        return JSONResponse(answer_to_json(answer), headers=_HEADERS)

    @router.api_route("/sparql", methods=["GET", "POST"])
    async def sparql(request: Request) -> Response:
        text = await _read_query(request, "application/sparql-query")
        results, graph = _preferred(request, RESULT_FORMATS), _preferred(request, GRAPH_FORMATS)
        if results is None and graph is None:
            raise _not_acceptable([*RESULT_FORMATS, *GRAPH_FORMATS])
        answer = await run_in_threadpool(queries.sparql, text, results, graph)
        return _plain(answer.body, answer.media_type, answer.left_out)

    return router


_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Vary": "Accept"}


LEFT_OUT_HEADER = "Tidings-Left-Out"
"""The header that says how many resources and references are not in the graph: their URIs are no IRIs."""


def _plain(body: bytes, media_type: str, left_out: int = 0) -> Response:
    more = {LEFT_OUT_HEADER: str(left_out)} if left_out else {}
    return Response(body, headers=_HEADERS | more, media_type=media_type)


async def _read_query(request: Request, raw: str) -> str:
    """The text of a query: a parameter, a field of a form, or the body itself."""
    fields = dict(request.query_params.multi_items())
    if any(name in fields for name in _GRAPHS_ASKED):
        raise HttpError(400, InputError("there is one graph", where=", ".join(_GRAPHS_ASKED)))
    if request.method == "GET":
        return _text(fields.get("query"))
    body = await read_body(request, MAX_QUERY_BYTES)
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    try:
        written = body.decode()
    except UnicodeDecodeError as error:
        raise HttpError(400, InputError("the body is not UTF-8", received=str(error))) from error
    if media_type == raw:
        return _text(written)
    if media_type == FORM:
        return _text(next(iter(parse_qs(written).get("query", ())), None))
    raise HttpError(
        415, InputError("no query has this type", received=media_type, accepted=f"{raw} or {FORM}")
    )


def _text(found: str | None) -> str:
    if not found:
        raise HttpError(400, InputError("there is no query", where="query", accepted="a text"))
    return found


def _preferred(request: Request, known: Collection[str]) -> str | None:
    """The first media type of those that somebody takes, by quality; None if `Accept` names only others."""
    ranges = [_range(each) for each in request.headers.get("accept", "*/*").split(",")]
    for kind, quality in sorted(ranges, key=lambda each: -each[1]):
        for media_type in known:
            main = media_type.partition("/")[0]
            if quality > 0 and kind in (media_type, "*/*", f"{main}/*"):
                return media_type
            if quality > 0 and kind == JSON and media_type.endswith("+json"):
                return media_type
    return None


def _range(written: str) -> tuple[str, float]:
    kind, *parameters = (part.strip() for part in written.split(";"))
    given = next((each[2:] for each in parameters if each.startswith("q=")), "1")
    return kind.lower(), float(given) if given.replace(".", "", 1).isdecimal() else 0.0


def _not_acceptable(known: Collection[str]) -> HttpError:
    return HttpError(406, InputError("no answer is written so", where="Accept", accepted=", ".join(known)))


@dataclass(slots=True)
class FollowState:
    """Whom the repository follows now, as far as its news have told."""

    link: str | None = None
    problem: str | None = None

    def hear(self, news: SyncEvent) -> None:
        if isinstance(news, CutOff):
            self.link, self.problem = None, news.problem
        elif isinstance(news, Connected | Refreshed | Followed):
            self.link, self.problem = news.link, None


def create_repository_app(repository: Repository, following: FollowState) -> FastAPI:
    """The application of a repository."""
    trust = TrustPolicy(os.environ.get(TOKEN_VARIABLE))
    dependencies = [Depends(require_trust(trust, "a repository"))]
    router = APIRouter(route_class=ProblemRoute, dependencies=dependencies)

    @router.get("/status")
    def status() -> dict[str, Any]:
        return {**asdict(repository.status()), "following": following.link, "problem": following.problem}

    app = FastAPI(title="Tidings repository", docs_url=None, redoc_url=None)
    join_routers(app, router, query_router_for(QueryEngine.at_repository(repository.store), trust))
    return app

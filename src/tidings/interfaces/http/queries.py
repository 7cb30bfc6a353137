"""Queries over HTTP: at a repository, and answered by it alone.

    GET     /query?query=search CycleProvider c ...
    POST    /query       the text as text/plain, or as a form's field `query`
    GET     /sparql?query=SELECT ...
    POST    /sparql      the text as application/sparql-query, or as a form's field `query`

`Accept` says how the answer is written: JSON by default, CSV, and for SPARQL what its protocol has.
"""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import parse_qs

from fastapi import APIRouter, Depends, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse

from tidings.errors import InputError
from tidings.interfaces.http.answers import Answering
from tidings.interfaces.http.bodies import body_of
from tidings.interfaces.http.refused import Refused
from tidings.interfaces.http.trust import Trust, only_for
from tidings.interfaces.query_answers import as_csv, whole
from tidings.metadata.sparql import GRAPHS, RESULTS
from tidings.metadata.sparql_text import LONGEST
from tidings.queries import Queries

LARGEST = 4 * LONGEST
"""Bytes of a query's body: each character may be four."""

FORM, JSON, CSV = "application/x-www-form-urlencoded", "application/json", "text/csv"
_GRAPHS_ASKED = ("default-graph-uri", "named-graph-uri")


def router_for(queries: Queries, trust: Trust) -> APIRouter:
    """The endpoints of queries."""
    dependencies = [Depends(only_for(trust, "a query"))]
    router = APIRouter(tags=["queries"], route_class=Answering, dependencies=dependencies)

    @router.api_route("/query", methods=["GET", "POST"])
    async def query(request: Request) -> Response:
        text = await _asked(request, "text/plain")
        wanted = _preferred(request, (JSON, CSV))
        if wanted is None:
            raise _not_acceptable((JSON, CSV))
        answer = await run_in_threadpool(queries.ask, text)
        if wanted == CSV:
            return _plain(as_csv(answer, queries.schema()).encode(), CSV)
        return JSONResponse(whole(answer), headers=_HEADERS)

    @router.api_route("/sparql", methods=["GET", "POST"])
    async def sparql(request: Request) -> Response:
        text = await _asked(request, "application/sparql-query")
        results, graph = _preferred(request, RESULTS), _preferred(request, GRAPHS)
        if results is None and graph is None:
            raise _not_acceptable([*RESULTS, *GRAPHS])
        answer = await run_in_threadpool(queries.sparql, text, results, graph)
        return _plain(answer.body, answer.media_type, answer.left_out)

    return router


_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Vary": "Accept"}


LEFT_OUT = "Tidings-Left-Out"
"""The header that says how many resources and references are not in the graph: their URIs are no IRIs."""


def _plain(body: bytes, media_type: str, left_out: int = 0) -> Response:
    more = {LEFT_OUT: str(left_out)} if left_out else {}
    return Response(body, headers=_HEADERS | more, media_type=media_type)


async def _asked(request: Request, raw: str) -> str:
    """The text of a query: a parameter, a field of a form, or the body itself."""
    fields = dict(request.query_params.multi_items())
    if any(name in fields for name in _GRAPHS_ASKED):
        raise Refused(400, InputError("there is one graph", where=", ".join(_GRAPHS_ASKED)))
    if request.method == "GET":
        return _text(fields.get("query"))
    body = await body_of(request, LARGEST)
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    try:
        written = body.decode()
    except UnicodeDecodeError as error:
        raise Refused(400, InputError("the body is not UTF-8", received=str(error))) from error
    if media_type == raw:
        return _text(written)
    if media_type == FORM:
        return _text(next(iter(parse_qs(written).get("query", ())), None))
    raise Refused(415, InputError("no query has this type", received=media_type, accepted=f"{raw} or {FORM}"))


def _text(found: str | None) -> str:
    if not found:
        raise Refused(400, InputError("there is no query", where="query", accepted="a text"))
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


def _not_acceptable(known: Collection[str]) -> Refused:
    return Refused(406, InputError("no answer is written so", where="Accept", accepted=", ".join(known)))

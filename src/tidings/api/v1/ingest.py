"""Ingest endpoint: publications are parsed, checked, and durable when they are answered.

Small events take the fast path. Everything they need is in memory; the group commit that makes them durable also checks
that their token is still valid and the schema unchanged. Everything else takes the slow path, step by step in threads.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any
from urllib.parse import quote, unquote_to_bytes

from fastapi import Depends, Header, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse
from starlette.datastructures import Headers

from tidings.api.authentication import get_authenticator, require_scope
from tidings.api.group_commit import Batcher
from tidings.api.limits import Limits
from tidings.api.problem_details import HttpError
from tidings.api.rate_limiter import CHARGED_PARTS, charge_requests
from tidings.api.request_body import hint_json_lines
from tidings.api.request_log import note_request_ids
from tidings.api.v1.bulk import SpooledResponse, bulk_status, problem_outcome, wants_lines
from tidings.api.write_limiter import run_write
from tidings.core import suggest
from tidings.errors import DecodeProblem, InputError, LimitExceeded
from tidings.graphs.rdf.media_types import JSON_LD, plain
from tidings.ingest.publisher import append, validate
from tidings.ingest.submission import (
    CLOUD_EVENT_BATCH,
    Submission,
    SubmissionItem,
    SubmissionLimits,
    UnknownMediaType,
    is_bulk,
    number_lines,
    parse_submission,
)
from tidings.kinds import JSON, find_kind
from tidings.model import Publication
from tidings.service.authorization import Caller, Scope
from tidings.service.reference_data import SchemaSnapshot
from tidings.service.tidings import Tidings
from tidings.store.journal import AppendBatch, AppendOutcome, AppendResult, add_trace

# CloudEvents in binary mode have their attributes in headers: `ce-subject: Euro%20%E2%82%AC`.
#
# CloudEvents HTTP binding 1.0.2, section 3.1.3.2: a value may be in double quotes; it is percent-decoded once, and must
# be UTF-8.


_NAME = re.compile(r"ce-([a-z0-9]{1,60})")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(r"\\(.)")


def read_header_attributes(headers: Headers) -> dict[str, str] | None:
    """Return the attributes in the headers; `None` if it is not a CloudEvent in binary mode."""
    if "ce-specversion" not in headers:
        return None
    attributes: dict[str, str] = {}
    for header, value in headers.items():
        if (name := _NAME.fullmatch(header)) is None:
            continue
        if name[1] in attributes:
            raise DecodeProblem("repeated attribute of a CloudEvent", where=header)
        attributes[name[1]] = _decode_value(header, value)
    return attributes


def _decode_value(header: str, value: str) -> str:
    """Decode a value. Headers are decoded as Latin-1, whatever their bytes are."""
    quoted = _QUOTED.fullmatch(value)
    plain = _ESCAPE.sub(r"\1", quoted[1]) if quoted else value
    try:
        return unquote_to_bytes(plain.encode("latin-1")).decode()
    except UnicodeDecodeError:
        accepted = "characters beyond ASCII as percent-encoded UTF-8"
        raise DecodeProblem(
            "the header is not UTF-8", where=header, received=ascii(value)[:80], accepted=accepted
        ) from None


Id = Annotated[
    str | None, Query(max_length=500, description="The id of the publication; generated if it is left out.")
]
IdField = Annotated[
    str | None,
    Query(max_length=500, description="The field that holds the id of each event."),
]
Base = Annotated[str | None, Query(max_length=2_000, description="The base of relative IRIs in a graph.")]
Audience = Annotated[
    str | None,
    Query(max_length=500, description="A label: only subscribers who were granted it see the publication."),
]
Key = Annotated[
    str | None, Header(max_length=502, description="An alternative to `id`, for clients that retry.")
]

SMALL = 4_000
"""Bytes of events that are parsed in the event loop: handing them to a thread would take about as long."""
UNSPECIFIED_TYPES = ("", "application/x-www-form-urlencoded", "application/octet-stream", "text/plain")
"""Media types that clients send by default."""
CONTENT_TYPE_HINT = "name the media type of the body; for an event Content-Type: application/json"
CURL_HINT = "curl -d '@...' sends the content of a file; --data-binary @page.ttl sends a file unchanged"
FEW, TOGETHER = 50, 200
"""Events of one request on the fast path, and requests in one transaction: others want to write, too."""


def _is_quick(media_type: str) -> bool:
    """Return whether publications are validated in microseconds, in this thread."""
    kind = find_kind(media_type)
    return media_type == CLOUD_EVENT_BATCH or (kind is not None and kind.is_quick)


def is_small(request: Request) -> bool:
    """Return whether the announced body is small."""
    announced = request.headers.get("content-length", "")
    return announced.isdecimal() and int(announced[:20]) <= SMALL


PresumedCaller = Annotated[Caller, Depends(require_scope(Scope.PUBLISH, is_small))]


class IngestEndpoint:
    """The endpoint that publishes."""

    def __init__(self, tidings: Tidings, limits: Limits) -> None:
        self._tidings = tidings
        self._body, self._limits = limits.body, SubmissionLimits(limits.bulk, limits.values, limits.refusals)
        self._batcher: Batcher[AppendBatch, list[AppendOutcome] | None] = Batcher(
            tidings.store.journal.append_batches, "publications", TOGETHER
        )

    async def publish(
        self,
        request: Request,
        caller: PresumedCaller,
        id: Id = None,
        id_field: IdField = None,
        base: Base = None,
        audience: Audience = None,
        idempotency_key: Key = None,
    ) -> Response:
        """Publish one or many, depending on `Content-Type`. Publications with a position are durable.

        Publishing the same id and body again returns the first publication; another body is refused.
        """
        async with request.app.state.uploads.read(request, self._body) as body:
            media_type = request.headers.get("content-type", "")
            named = _id(id, request.headers.getlist("idempotency-key"))
            attributes = read_header_attributes(request.headers)
            sent = Submission(body, media_type, named, id_field, base, audience, attributes, self._limits)
            return await self._publish_fast(sent, request, caller) or await self._publish_slow(sent, request)

    async def _publish_fast(self, sent: Submission, request: Request, caller: Caller) -> Response | None:
        """Publish small valid events on the fast path, without a thread before the commit.

        The commit checks the token and the schema. Return `None` if anything is wrong: the slow path reports it.
        """
        schema = self._tidings.schema_read
        if schema is None or len(sent.body) > SMALL or not _is_quick(plain(sent.media_type)):
            return None
        few = replace(sent.limits, items=min(sent.limits.items, FEW))
        try:
            with suggest.bounded_search(0):  # the slow path explains errors
                items = validate(parse_submission(replace(sent, limits=few)), schema.checked_against)
        except InputError:
            return None
        valid = [item for item in items if isinstance(item, Publication)]
        if not valid or len(valid) < len(items):
            return None
        return await self._append(sent, valid, request, caller, schema)

    async def _publish_slow(self, sent: Submission, request: Request) -> Response:
        """Publish on the slow path: authenticate, then parse and validate in a thread."""
        caller = await get_authenticator(request).allowed(request, Scope.PUBLISH)
        if plain(sent.media_type) == JSON_LD:
            charge_requests(request, sent.body.count(b"{") // CHARGED_PARTS)
        try:
            items, schema = await run_in_threadpool(self._validate, sent)
        except InputError as problem:
            raise _explain(problem, sent) from None
        if len(items) == 1 and not is_bulk(sent):
            if isinstance(items[0], InputError):
                raise items[0]
            answer = await self._append(sent, [items[0]], request, caller, schema)
            return answer or await self._publish_slow(sent, request)  # schema or token changed meanwhile
        rejected = sum(isinstance(item, InputError) for item in items)
        charged = min(sent.limits.rejections, rejected) + (len(items) - rejected) // CHARGED_PARTS
        charge_requests(request, charged)
        return await run_write(partial(self._append_many, sent, items, wants_lines(request)))

    def _validate(self, sent: Submission) -> tuple[list[SubmissionItem], SchemaSnapshot]:
        schema = self._tidings.schema_now()
        return validate(parse_submission(sent), schema.checked_against), schema

    async def _append(
        self,
        sent: Submission,
        publications: Sequence[Publication],
        request: Request,
        caller: Caller,
        schema: SchemaSnapshot,
    ) -> Response | None:
        """Append publications in a group commit; return `None` if the token or the schema has changed."""
        outcomes = await self._batcher.add(
            AppendBatch(add_trace(publications), caller.token.id, schema.version)
        )
        if outcomes is None:
            return None
        if is_bulk(sent):
            return _bulk_response(outcomes, number_lines(sent), wants_lines(request))
        [outcome] = outcomes
        if isinstance(outcome, InputError):
            raise outcome
        note_request_ids(request, publication=outcome.id)
        return _single_response(outcome)

    def _append_many(self, sent: Submission, items: Sequence[SubmissionItem], as_lines: bool) -> Response:
        """Append many publications, or the parts of one, and write the response, which may be long."""
        outcomes = append(self._tidings.store, sent, items)
        return _bulk_response(outcomes, number_lines(sent), as_lines) if is_bulk(sent) else _parts(outcomes)


def _explain(problem: InputError, sent: Submission) -> Exception:
    """Return the problem of a request with its status, and a hint about mistakes that HTTP clients make."""
    media_type = plain(sent.media_type)
    if isinstance(problem, LimitExceeded):
        return HttpError(413, problem)
    if isinstance(problem, UnknownMediaType):
        hint = hint_json_lines(sent.body) or CONTENT_TYPE_HINT if media_type in UNSPECIFIED_TYPES else None
        located = problem.with_where("Content-Type")
        return HttpError(415, located.with_hint(hint) if hint else located)
    if not isinstance(problem, DecodeProblem):
        return problem
    if (
        not sent.body.strip()
    ):  # Turtle often begins with an @: curl -d '@prefix ...' sends a file of that name
        return problem.with_hint(CURL_HINT)
    hint = hint_json_lines(sent.body) if media_type == JSON else None
    return problem.with_hint(hint) if hint else problem


def _id(id: str | None, keys: Sequence[str]) -> str | None:
    """Return the id in the query or the header; the standard puts the header's value in quotes."""
    named = {key[1:-1] if len(key) > 1 and key[0] == key[-1] == '"' else key for key in keys}
    if not all(key.isascii() for key in named):
        hint = "?id= takes any characters"
        raise InputError("the header is not ASCII", where="Idempotency-Key", accepted="ASCII", hint=hint)
    ids = named | ({id} if id is not None else set())
    if len(ids) > 1:
        received = " and ".join(sorted(ids))
        raise InputError("two ids for one publication", where="Idempotency-Key", received=received[:200])
    return next(iter(ids), None)


def _single_response(done: AppendResult) -> Response:
    place = {"Location": f"/v1/publications/{quote(done.id, safe='')}"}
    return JSONResponse(_appended_members(done), 201 if done.new else 200, place)


def _parts(done: Sequence[AppendOutcome]) -> Response:
    results = [outcome for outcome in done if isinstance(outcome, AppendResult)]
    is_new = any(result.new for result in results)
    members = [_appended_members(result) for result in results]
    return JSONResponse({"publications": members}, 201 if is_new else 200)


def _appended_members(done: AppendResult) -> dict[str, Any]:
    return {"id": done.id, "position": done.position, "new": done.new}


def _bulk_response(done: Sequence[AppendOutcome], lines: list[int] | None, as_lines: bool) -> Response:
    """Return an outcome for each publication, in order, as JSON or as lines."""
    named = "line" if lines else "number"
    numbers = lines or range(1, len(done) + 1)
    refused = sum(isinstance(outcome, InputError) for outcome in done)
    new = sum(isinstance(outcome, AppendResult) and outcome.new for outcome in done)
    answer = SpooledResponse(as_lines)
    for number, outcome in zip(numbers, done, strict=True):
        answer.add({named: number}, outcome, _outcome)
    counted = {"published": new, "known": len(done) - new - refused, "refused": refused}
    return answer.response(bulk_status(new, refused), counted, "outcomes")


def _outcome(outcome: AppendOutcome) -> dict[str, Any]:
    return _appended_members(outcome) if isinstance(outcome, AppendResult) else problem_outcome(outcome)

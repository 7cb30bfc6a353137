"""Taking publications over HTTP: read, checked, and durable when they are answered.

Small events go the short way, alone or some together. All that is looked up for them is in memory; the transaction
that makes them durable, with others that come at the same time, also looks whether their token is good and whether the
schema is another one. All else goes the long way, step by step in threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import Depends, Header, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse

from tidings import guessing
from tidings.errors import InputError, OverLimit
from tidings.interfaces.http.access import asking, presumes
from tidings.interfaces.http.gathering import Gathering
from tidings.interfaces.http.observing import note
from tidings.interfaces.http.rates import CHARGED_PARTS, charge
from tidings.interfaces.http.refused import Refused
from tidings.interfaces.http.v1.header_attributes import attributes_of
from tidings.interfaces.http.v1.limits import Limits
from tidings.interfaces.http.v1.outcomes import refusal, status_of_many, wants_lines
from tidings.interfaces.http.v1.spooled import Spooled
from tidings.interfaces.http.writing import write
from tidings.model import Publication
from tidings.publications.media_types import JSON
from tidings.publications.rdf_media_types import JSON_LD, plain
from tidings.service import Tidings, offering
from tidings.service.access import Caller, Scope
from tidings.service.knowing import SchemaRead
from tidings.service.offering import Offered, Sent, WrongType, is_bulk
from tidings.service.taking import Outcome, lines_of, take
from tidings.store import Appended, Outcomes, Ready

Id = Annotated[
    str | None, Query(max_length=500, description="The id of the publication; one is made without.")
]
IdField = Annotated[
    str | None,
    Query(max_length=500, description="The field that holds the id of an event, or of each in a line."),
]
Base = Annotated[
    str | None, Query(max_length=2_000, description="What relative IRIs of a graph are relative to.")
]
Audience = Annotated[
    str | None, Query(max_length=500, description="A label: only subscribers who were granted it see it.")
]
Key = Annotated[str | None, Header(max_length=502, description="The id, too, for those who retry.")]

SMALL = 4_000
"""Bytes of events that are read between two others: asking a thread to do so would take about as long."""
FEW, TOGETHER = 50, 200
"""How many of them there may be, and how many requests share a transaction: others want to write, too."""

EVENTS = frozenset({JSON, offering.CLOUD_EVENT, *offering.LINES, offering.BATCH})


def is_small(request: Request) -> bool:
    """Whether a body is announced as being so."""
    announced = request.headers.get("content-length", "")
    return announced.isdecimal() and int(announced[:20]) <= SMALL


Presumed = Annotated[Caller, Depends(presumes(Scope.PUBLISH, is_small))]


class Taking:
    """Takes publications."""

    def __init__(self, tidings: Tidings, limits: Limits) -> None:
        self._tidings, self._limits = tidings, limits
        self._gathering: Gathering[Ready, Outcomes] = Gathering(
            tidings.store.intake.take, "publications", TOGETHER
        )

    async def publish(
        self,
        request: Request,
        caller: Presumed,
        id: Id = None,
        id_field: IdField = None,
        base: Base = None,
        audience: Audience = None,
        idempotency_key: Key = None,
    ) -> Response:
        """Publish one or many, as `Content-Type` says. What is answered with a position is durable.

        The same id with the same body again is the same publication; with another body it is refused.
        """
        async with request.app.state.uploads.read(request, self._limits.body) as body:
            media_type = request.headers.get("content-type", "")
            named = _id(id, request.headers.getlist("idempotency-key"))
            context, found = attributes_of(request.headers), self._limits
            bounds = (found.bulk, found.values, found.refusals)
            sent = Sent(body, media_type, named, id_field, base, audience, context, *bounds)
            return await self._at_once(sent, request, caller) or await self._looked_at(sent, request)

    async def _at_once(self, sent: Sent, request: Request, caller: Caller) -> Response | None:
        """The short way, for small events that are as they should be: no other thread until they are made durable,
        which is when the token and the schema are looked at. No answer if anything is otherwise: what, the long way
        says.
        """
        known = self._tidings.schema_read
        if known is None or len(sent.body) > SMALL or plain(sent.media_type) not in EVENTS:
            return None
        try:
            with guessing.bounded(0):  # whatever is wrong is looked at again the long way
                found = offering.offered(replace(sent, most=min(sent.most, FEW)), known.checked_against)
        except InputError:
            return None
        good = [one for one in found if isinstance(one, Publication)]
        if not good or len(good) < len(found) or (is_bulk(sent) and sent.id is not None):
            return None
        return await self._taken(sent, good, request, caller, known)

    async def _looked_at(self, sent: Sent, request: Request) -> Response:
        """The long way: who asks is looked up, then what they sent is taken apart, elsewhere, as it may take long."""
        caller = await asking(request).allowed(request, Scope.PUBLISH)
        if plain(sent.media_type) == JSON_LD:
            charge(request, sent.body.count(b"{") // CHARGED_PARTS)
        try:
            found, known = await run_in_threadpool(self._offered, sent)
        except WrongType as problem:
            raise Refused(415, problem) from problem
        except OverLimit as problem:
            raise Refused(413, problem) from problem
        if len(found) == 1 and not is_bulk(sent):
            if isinstance(found[0], InputError):
                raise found[0]
            taken = await self._taken(sent, [found[0]], request, caller, known)
            return taken or await self._looked_at(sent, request)  # it is another schema or token meanwhile
        refused = sum(isinstance(one, InputError) for one in found)
        charge(request, min(sent.refusals, refused) + (len(found) - refused) // CHARGED_PARTS)
        return await write(partial(self._several, sent, found, wants_lines(request)))

    async def _taken(
        self, sent: Sent, found: Sequence[Publication], request: Request, caller: Caller, known: SchemaRead
    ) -> Response | None:
        """One or a few, durable with others that come now; no answer if token or schema is not what it was."""
        outcomes = await self._gathering.add(Ready(found, caller.token.id, known.version))
        if outcomes is None:
            return None
        if is_bulk(sent):
            return _many(outcomes, lines_of(sent), wants_lines(request))
        [outcome] = outcomes
        if isinstance(outcome, InputError):
            raise outcome
        note(request, publication=outcome.id)
        return _one(outcome)

    def _offered(self, sent: Sent) -> tuple[list[Offered], SchemaRead]:
        known = self._tidings.schema_now()
        return offering.offered(sent, known.checked_against), known

    def _several(self, sent: Sent, found: Sequence[Offered], as_lines: bool) -> Response:
        """Many, or the parts of one, with their answer: to write a long one takes a while, too."""
        outcomes = take(self._tidings.store, sent, found)
        return _many(outcomes, lines_of(sent), as_lines) if is_bulk(sent) else _parts(outcomes)


def _id(id: str | None, keys: Sequence[str]) -> str | None:
    """The id that is given, in the query or in the header; a header may have it in quotes, as the standard asks."""
    named = {key[1:-1] if len(key) > 1 and key[0] == key[-1] == '"' else key for key in keys}
    if not all(key.isascii() for key in named):
        hint = "?id= takes any characters"
        raise InputError("the header is not ASCII", where="Idempotency-Key", accepted="ASCII", hint=hint)
    said = named | ({id} if id is not None else set())
    if len(said) > 1:
        received = " and ".join(sorted(said))
        raise InputError("two ids for one publication", where="Idempotency-Key", received=received[:200])
    return next(iter(said), None)


def _one(done: Appended) -> Response:
    place = {"Location": f"/v1/publications/{quote(done.id, safe='')}"}
    return JSONResponse(_told(done), 201 if done.new else 200, place)


def _parts(done: Sequence[Outcome]) -> Response:
    taken = [one for one in done if isinstance(one, Appended)]
    is_new = any(one.new for one in taken)
    return JSONResponse({"publications": [_told(one) for one in taken]}, 201 if is_new else 200)


def _told(done: Appended) -> dict[str, Any]:
    return {"id": done.id, "position": done.position, "new": done.new}


def _many(done: Sequence[Outcome], lines: list[int] | None, as_lines: bool) -> Response:
    """An outcome for each, in the order in which they came: as JSON, or a line for each if that is asked for."""
    named = "line" if lines else "number"
    numbers = lines or range(1, len(done) + 1)
    refused = sum(isinstance(one, InputError) for one in done)
    new = sum(isinstance(one, Appended) and one.new for one in done)
    answer = Spooled(as_lines)
    for number, one in zip(numbers, done, strict=True):
        answer.add({named: number}, one, _outcome)
    counted = {"published": new, "known": len(done) - new - refused, "refused": refused}
    return answer.response(status_of_many(new, refused), counted, "outcomes")


def _outcome(one: Outcome) -> dict[str, Any]:
    return _told(one) if isinstance(one, Appended) else refusal(one)

"""Publications over HTTP: one or many of any kind, durable when they are answered.

POST   /v1/publications         ?id=  &id_field=  &base=      Idempotency-Key, ce-id
GET    /v1/publications         ?before=  &limit=             the last ones, newest first
GET    /v1/publications/{id}
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse

from tidings.cloud_events import LARGEST, carried
from tidings.errors import Absent, InputError, OverLimit
from tidings.interfaces.http import problems
from tidings.interfaces.http.access import Publishing
from tidings.interfaces.http.answers import Refused
from tidings.interfaces.http.observing import note
from tidings.interfaces.http.v1 import answering, forms
from tidings.interfaces.http.v1.answering import Versioned
from tidings.interfaces.http.v1.header_attributes import attributes_of
from tidings.interfaces.http.v1.limits import Limits
from tidings.interfaces.http.v1.uploads import Gathering, Uploads
from tidings.interfaces.http.writing import write
from tidings.model import Publication
from tidings.service import Tidings, offering
from tidings.service.access import Caller
from tidings.service.offering import ACCEPTED, Offered, Sent, WrongType, is_bulk
from tidings.service.taking import Outcome, lines_of, take
from tidings.store import Appended, Entry, Store
from tidings.store.audiences import sees

Id = Annotated[
    str | None, Query(max_length=500, description="The id of the publication; one is made without.")
]
IdField = Annotated[
    str | None, Query(max_length=500, description="Line by line: the field that holds each event's id.")
]
Base = Annotated[
    str | None, Query(max_length=2_000, description="What relative IRIs of a graph are relative to.")
]
Audience = Annotated[
    str | None, Query(max_length=500, description="A label: only subscribers who were granted it see it.")
]
Key = Annotated[str | None, Header(max_length=502, description="The id, too, for those who retry.")]
Before = Annotated[int | None, Query(ge=1, le=2**63 - 1, description="Only what came before this position.")]
Limit = Annotated[int, Query(ge=1, le=1_000)]

BRIEF = 16_000
"""Bytes of a body that is shown where there are many."""

_LINES = "application/x-ndjson"


class Publications:
    """Takes publications, and shows those that were taken."""

    def __init__(self, tidings: Tidings, limits: Limits) -> None:
        self._tidings, self._limits = tidings, limits
        self._uploads = Uploads(limits.uploads)
        self._gathering: Gathering[Publication, Outcome] = Gathering(tidings.store.journal.offer)

    async def publish(
        self,
        request: Request,
        caller: Publishing,
        id: Id = None,
        id_field: IdField = None,
        base: Base = None,
        audience: Audience = None,
        idempotency_key: Key = None,
    ) -> Response:
        """Publish one or many, as `Content-Type` says. What is answered with a position is durable.

        The same id with the same body again is the same publication; with another body it is refused.
        """
        async with self._uploads.read(request, self._limits.body) as body:
            media_type = request.headers.get("content-type", "")
            named = _id(id, request.headers.getlist("idempotency-key"))
            context, most = attributes_of(request.headers), self._limits.bulk
            sent = Sent(body, media_type, named, id_field, base, audience, context, most)
            return await self._taken(sent, request)

    async def _taken(self, sent: Sent, request: Request) -> Response:
        try:
            found = await run_in_threadpool(self._offered, sent)
        except WrongType as problem:
            raise Refused(415, problem) from problem
        except OverLimit as problem:
            raise Refused(413, problem) from problem
        if len(found) == 1 and isinstance(found[0], Publication) and not is_bulk(sent):
            outcome = await self._gathering.add(found[0])
            if isinstance(outcome, InputError):
                raise outcome
            note(request, publication=outcome.id)
            return _one(outcome)
        outcomes = await write(partial(take, self._tidings.store, sent, found))
        return _many(outcomes, lines_of(sent), request) if is_bulk(sent) else _parts(outcomes)

    def _offered(self, sent: Sent) -> list[Offered]:
        return offering.offered(sent, self._tidings.checked_against())

    def last(self, caller: Publishing, before: Before = None, limit: Limit = 100) -> forms.PublicationPage:
        """The last publications, newest first. What is large comes without its body; what carries a label that the
        caller was not granted is left out.
        """
        found = self._tidings.store.journal.latest(before, limit, BRIEF)
        following = found[-1].publication.position if found else None
        is_end = following is None or following <= 1
        listed = [shown(one) for one in visible(self._tidings.store, caller, found)]
        return forms.PublicationPage(publications=listed, next=None if is_end else following)

    def find(self, caller: Publishing, id: str) -> forms.Published:
        """A publication."""
        found = self._tidings.store.journal.entry(id, LARGEST)
        if found is None or not visible(self._tidings.store, caller, [found]):
            raise Absent("there is no such publication", received=repr(id)[:200])
        return shown(found)


def visible(store: Store, caller: Caller, found: Sequence[Entry]) -> list[Entry]:
    """Those that a caller may see: an administrator all of them, others what carries no label that was not granted."""
    if caller.is_administrator or all(one.publication.audience is None for one in found):
        return list(found)
    granted = store.audiences.of(caller.subscriber) if caller.subscriber else frozenset[str]()
    return [one for one in found if sees(granted, one.publication.audience)]


def router_for(tidings: Tidings, limits: Limits) -> APIRouter:
    """The endpoints."""
    found = Publications(tidings, limits)
    router = APIRouter(prefix="/v1/publications", tags=["publications"], route_class=Versioned)
    add = router.add_api_route
    taken: dict[int | str, dict[str, Any]] = {
        200: {
            "model": forms.Taken | forms.TakenParts | forms.Outcomes,
            "description": "It was there already",
        },
        201: {"model": forms.Taken | forms.TakenParts | forms.Outcomes, "description": "It is durable"},
        207: {"model": forms.Outcomes, "description": "Some of many were refused"},
    }
    body = {"required": True, "content": {each: {"schema": {}} for each in ACCEPTED}}
    add(
        "",
        found.publish,
        methods=["POST"],
        responses=taken | answering.wrong(409),
        openapi_extra={"requestBody": body},
        response_class=JSONResponse,
    )
    add("", found.last, methods=["GET"])
    add("/{id:path}", found.find, methods=["GET"])
    return router


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


def _many(done: Sequence[Outcome], lines: list[int] | None, request: Request) -> Response:
    """An outcome for each, in the order in which they came: as JSON, or a line for each if that is asked for."""
    named = "line" if lines else "number"
    numbers = lines or range(1, len(done) + 1)
    told = [{named: n} | _outcome(one) for n, one in zip(numbers, done, strict=True)]
    refused = sum(isinstance(one, InputError) for one in done)
    new = sum(isinstance(one, Appended) and one.new for one in done)
    status = 207 if refused else 201 if new else 200
    if _LINES in request.headers.get("accept", ""):
        text = "".join(f"{answering.line(one)}\n" for one in told)
        return Response(text, status, media_type=_LINES)
    counted = {"published": new, "known": len(done) - new - refused, "refused": refused}
    return JSONResponse(counted | {"outcomes": told}, status)


def _outcome(one: Outcome) -> dict[str, Any]:
    if isinstance(one, Appended):
        return _told(one)
    return {"problem": problems.details(one, answering.status_of(one))}


def shown(entry: Entry, largest: int = LARGEST) -> forms.Published:
    """A publication as others see it; one that is too large without its body."""
    one = entry.publication
    known = carried(one, largest) or {} if len(one.body) == entry.size else {}
    return forms.Published(
        id=one.id,
        position=one.position or 0,
        time=entry.time,
        media_type=one.media_type,
        size=entry.size,
        audience=one.audience,
        body=known.get("body"),
        body_base64=known.get("body_base64"),
    )

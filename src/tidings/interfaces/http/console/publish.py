"""Publishing by paste or drop: what was pasted is recognised, published, or refused with the place underlined."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool

from tidings.errors import InputError
from tidings.interfaces.http.answers import too_large
from tidings.interfaces.http.console.answering import Shown
from tidings.interfaces.http.console.recognising import JSON_LINES, KINDS, PARTS, kind_of
from tidings.interfaces.http.console.visiting import Publisher, Visitor, form_of, page
from tidings.interfaces.http.v1.limits import Limits
from tidings.model import Reject
from tidings.publications.media_types import JSON
from tidings.service import Tidings
from tidings.store import Appended

HERE = "publish"
ESCAPED = 3
"""So many bytes of a form stand for one byte of a text, where all of it is escaped."""
SHOWN = 100
"""Outcomes of several that are listed; the others are counted."""


@dataclass(frozen=True, slots=True)
class Offered:
    """What somebody wants to publish."""

    text: str
    kind: str = ""
    """Empty if it is to be recognised."""
    id: str = ""
    base: str = ""
    audience: str = ""
    """The label that says who may see it; empty if everybody may."""

    @property
    def media_type(self) -> str:
        return self.kind or kind_of(self.text)


@dataclass(slots=True)
class Outcome:
    """What became of it: the first that were published or refused, and how many there were."""

    media_type: str
    listed: list[Appended | Reject]
    published: int = 0
    again: int = 0
    refused: int = 0


def router_for(tidings: Tidings, limits: Limits) -> APIRouter:
    """The page on which people publish."""
    router = APIRouter(prefix="/publish", route_class=Shown)

    @router.get("")
    def publish(visitor: Publisher) -> Response:
        return form_page(visitor, Offered(""))

    @router.post("")
    async def published(request: Request, visitor: Publisher) -> Response:
        given = await form_of(request, visitor, ESCAPED * limits.body)
        offered = Offered(*(given.get(name, "") for name in ("text", "kind", "id", "base", "audience")))
        if len(offered.text.encode()) > limits.body:
            raise too_large(limits.body)
        return await run_in_threadpool(_published, tidings, visitor, offered)

    return router


def form_page(
    visitor: Visitor, offered: Offered, outcome: Outcome | None = None, problem: InputError | None = None
) -> Response:
    """The form, with what became of what was sent before."""
    values: dict[str, Any] = {"offered": offered, "outcome": outcome, "problem": problem, "kinds": KINDS}
    return page("publish.html", visitor, HERE, values, 422 if problem else 200)


def _published(tidings: Tidings, visitor: Visitor, offered: Offered) -> Response:
    try:
        outcome = publish(tidings, offered)
    except InputError as problem:
        return form_page(visitor, offered, None, problem)
    is_done = not outcome.refused
    return form_page(visitor, Offered("", offered.kind) if is_done else offered, outcome)


def publish(tidings: Tidings, offered: Offered) -> Outcome:
    """Publish what was offered; one that is refused is an error, several have an outcome each."""
    if offered.kind and offered.kind not in KINDS:
        raise InputError("no kind of publication", received=offered.kind, accepted=", ".join(KINDS))
    if not offered.text.strip():
        raise InputError("nothing to publish", hint="paste it, or drop a file")
    outcome = Outcome(offered.media_type, [])
    for one in _outcomes(tidings, offered):
        if isinstance(one, Reject):
            outcome.refused += 1
        else:
            outcome.published += one.new
            outcome.again += not one.new
        if len(outcome.listed) < SHOWN:
            outcome.listed.append(one)
    return outcome


def _outcomes(tidings: Tidings, offered: Offered) -> Iterator[Appended | Reject]:
    body, audience = offered.text.encode(), offered.audience.strip() or None
    id, base = offered.id.strip() or None, offered.base.strip() or None
    if offered.media_type == JSON_LINES:
        lines = (line for line in body.split(b"\n") if line.strip())
        yield from tidings.publish_many(lines, media_type=JSON, audience=audience)
    elif offered.media_type in PARTS:
        yield from tidings.publish_parts(body, offered.media_type, id, base, audience)
    else:
        yield tidings.publish(body, id, offered.media_type, base, audience)

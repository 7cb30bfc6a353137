"""Publishing by paste or drop: what was pasted is recognised, published, or refused with the place underlined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool

from tidings.errors import InputError
from tidings.interfaces.http.bodies import too_large
from tidings.interfaces.http.console.answering import pages_at
from tidings.interfaces.http.console.recognising import KINDS, kind_of
from tidings.interfaces.http.console.visiting import Publisher, Visitor, form_of, page
from tidings.interfaces.http.v1.answering import status_of
from tidings.interfaces.http.v1.limits import Limits
from tidings.service import Tidings, offering
from tidings.service.offering import Sent
from tidings.service.taking import lines_of, take
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

    def sent(self, most: int) -> Sent:
        """The same as somebody would send it over HTTP; `most` is how many there may be of many."""
        id, base, audience = (each.strip() or None for each in (self.id, self.base, self.audience))
        return Sent(self.text.encode(), self.media_type, id, base=base, audience=audience, most=most)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of it: the first that were published or refused, each with its number, and how many there were."""

    media_type: str
    listed: list[tuple[int, Appended | InputError]]
    published: int
    again: int
    refused: int
    left: str = ""
    """The lines that were refused, if it was taken line by line: the others would be published once more."""


def router_for(tidings: Tidings, limits: Limits) -> APIRouter:
    """The page on which people publish."""
    router = pages_at("publish")

    @router.get("")
    def publish(visitor: Publisher) -> Response:
        return form_page(visitor, Offered(""))

    @router.post("")
    async def published(request: Request, visitor: Publisher) -> Response:
        given = await form_of(request, visitor, ESCAPED * limits.body)
        offered = Offered(*(given.get(name, "") for name in ("text", "kind", "id", "base", "audience")))
        if len(offered.text.encode()) > limits.body:
            raise too_large(limits.body)
        return await run_in_threadpool(_published, tidings, visitor, offered, limits)

    return router


def form_page(
    visitor: Visitor, offered: Offered, outcome: Outcome | None = None, problem: InputError | None = None
) -> Response:
    """The form, with what became of what was sent before."""
    values: dict[str, Any] = {"offered": offered, "outcome": outcome, "problem": problem, "kinds": KINDS}
    return page("publish.html", visitor, HERE, values, status_of(problem) if problem else 200)


def _published(tidings: Tidings, visitor: Visitor, offered: Offered, limits: Limits) -> Response:
    try:
        outcome = publish(tidings, offered, limits)
    except InputError as problem:
        return form_page(visitor, offered, None, problem)
    if not outcome.refused:
        return form_page(visitor, Offered("", offered.kind), outcome)
    kept = replace(offered, text=outcome.left, kind=outcome.media_type) if outcome.left else offered
    return form_page(visitor, kept, outcome)


def publish(tidings: Tidings, offered: Offered, limits: Limits) -> Outcome:
    """Publish what was offered, as the API would; what is refused as a whole is raised, lines have an outcome each."""
    if not offered.text.strip():
        raise InputError("nothing to publish", hint="paste it, or drop a file")
    sent = offered.sent(limits.bulk)
    done = take(tidings.store, sent, offering.offered(sent, tidings.checked_against()))
    numbers = lines_of(sent) or range(1, len(done) + 1)
    new = sum(isinstance(one, Appended) and one.new for one in done)
    refused = sum(isinstance(one, InputError) for one in done)
    outcomes = [*zip(numbers, done, strict=True)]
    left = _refused_lines(offered.text, outcomes) if lines_of(sent) else ""
    return Outcome(sent.media_type, outcomes[:SHOWN], new, len(done) - new - refused, refused, left)


def _refused_lines(text: str, outcomes: Sequence[tuple[int, Appended | InputError]]) -> str:
    lines = text.split("\n")
    return "\n".join(lines[number - 1] for number, one in outcomes if isinstance(one, InputError))

"""Publishing by paste or drop: what was pasted is recognised, published, or refused with the place underlined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool

from tidings.api.request_body import build_too_large_error
from tidings.api.v1.limits import Limits
from tidings.api.v1.route_classes import v1_status_of
from tidings.console.pages import console_router
from tidings.console.session import PublishVisitor, Visitor, read_form, render_page
from tidings.console.sniff import list_titles, sniff_media_type
from tidings.errors import InputError
from tidings.service import submission
from tidings.service.submission import Submission, append_submission, number_lines
from tidings.service.tidings import Tidings
from tidings.store.journal import AppendResult

HERE = "publish"
ESCAPED = 3
"""Bytes of a form per byte of a text in which every byte is percent-encoded."""
SHOWN = 100
"""Outcomes that are listed; the others are only counted."""


@dataclass(frozen=True, slots=True)
class SubmissionForm:
    """The fields of the form."""

    text: str
    kind: str = ""
    """Empty to detect the media type."""
    id: str = ""
    base: str = ""
    audience: str = ""
    """The audience label; empty for everyone."""

    @property
    def media_type(self) -> str:
        return self.kind or sniff_media_type(self.text)

    def sent(self, most: int) -> Submission:
        """Return the submission as a client would send it; `most` limits the items."""
        id, base, audience = (each.strip() or None for each in (self.id, self.base, self.audience))
        return Submission(self.text.encode(), self.media_type, id, base=base, audience=audience, most=most)


@dataclass(frozen=True, slots=True)
class SubmissionOutcome:
    """The first results with their numbers, and the counts of all."""

    media_type: str
    listed: list[tuple[int, AppendResult | InputError]]
    published: int
    again: int
    refused: int
    left: str = ""
    """The refused lines of JSON Lines; publishing the whole text again would repeat the others."""


def router_for(tidings: Tidings, limits: Limits) -> APIRouter:
    """Return the page for publishing."""
    router = console_router("publish")

    @router.get("")
    def publish(visitor: PublishVisitor) -> Response:
        return form_page(visitor, SubmissionForm(""))

    @router.post("")
    async def published(request: Request, visitor: PublishVisitor) -> Response:
        given = await read_form(request, visitor, ESCAPED * limits.body)
        offered = SubmissionForm(
            *(given.get(name, "") for name in ("text", "kind", "id", "base", "audience"))
        )
        if len(offered.text.encode()) > limits.body:
            raise build_too_large_error(limits.body)
        return await run_in_threadpool(_published, tidings, visitor, offered, limits)

    return router


def form_page(
    visitor: Visitor,
    offered: SubmissionForm,
    outcome: SubmissionOutcome | None = None,
    problem: InputError | None = None,
) -> Response:
    """Render the form, with the outcome of the previous submission."""
    values: dict[str, Any] = {
        "offered": offered,
        "outcome": outcome,
        "problem": problem,
        "kinds": list_titles(),
    }
    return render_page("publish.html", visitor, HERE, values, v1_status_of(problem) if problem else 200)


def _published(tidings: Tidings, visitor: Visitor, offered: SubmissionForm, limits: Limits) -> Response:
    try:
        outcome = publish_submission(tidings, offered, limits)
    except InputError as problem:
        return form_page(visitor, offered, None, problem)
    if not outcome.refused:
        return form_page(visitor, SubmissionForm("", offered.kind), outcome)
    kept = replace(offered, text=outcome.left, kind=outcome.media_type) if outcome.left else offered
    return form_page(visitor, kept, outcome)


def publish_submission(tidings: Tidings, offered: SubmissionForm, limits: Limits) -> SubmissionOutcome:
    """Publish as the API does: raise if the whole is refused; lines have an outcome each."""
    if not offered.text.strip():
        raise InputError("nothing to publish", hint="paste it, or drop a file")
    sent = offered.sent(limits.bulk)
    done = append_submission(
        tidings.store, sent, submission.parse_submission(sent, tidings.checked_against())
    )
    numbers = number_lines(sent) or range(1, len(done) + 1)
    new = sum(isinstance(one, AppendResult) and one.new for one in done)
    refused = sum(isinstance(one, InputError) for one in done)
    outcomes = [*zip(numbers, done, strict=True)]
    left = _refused_lines(offered.text, outcomes) if number_lines(sent) else ""
    return SubmissionOutcome(sent.media_type, outcomes[:SHOWN], new, len(done) - new - refused, refused, left)


def _refused_lines(text: str, outcomes: Sequence[tuple[int, AppendResult | InputError]]) -> str:
    lines = text.split("\n")
    return "\n".join(lines[number - 1] for number, one in outcomes if isinstance(one, InputError))

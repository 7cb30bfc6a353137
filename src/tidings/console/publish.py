"""Pages for publishing by paste or drop, and for dead letters, which can be corrected and published again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool

from tidings.api.limits import Limits
from tidings.api.request_body import build_too_large_error
from tidings.api.v1.route_classes import v1_status_of
from tidings.console.pages import HOME, console_router, format_query, redirect_to
from tidings.console.session import (
    AdministerVisitor,
    Form,
    NumberInPath,
    NumberParameter,
    PublishVisitor,
    Visitor,
    read_form,
    render_page,
)
from tidings.errors import InputError, NotFound
from tidings.ingest import publisher
from tidings.ingest.submission import Submission, SubmissionLimits, number_lines
from tidings.kinds import JSON, kinds
from tidings.service.tidings import Tidings
from tidings.store.dead_letters import DeadLetter
from tidings.store.journal import AppendResult

HERE, DEAD_LETTERS = "publish", "dead-letters"
ESCAPED = 3
"""Bytes of a form per byte of a text in which every byte is percent-encoded."""
MAX_LISTED = 100
"""Outcomes that are listed; the others are only counted."""
PAGE = 25
MAX_SHOWN = 4_000
"""Characters of a dead letter's body that are shown; publishing it again uses all of it."""


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

    def build_submission(self, most: int) -> Submission:
        """Return the submission as a client would send it; `most` limits the items."""
        id, base, audience = (value.strip() or None for value in (self.id, self.base, self.audience))
        return Submission(
            self.text.encode(),
            self.media_type,
            id,
            base=base,
            audience=audience,
            limits=SubmissionLimits(most),
        )


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


def list_titles() -> Mapping[str, str]:
    """Return the media types that a form offers, with their names for people."""
    return {media_type: title for kind in kinds() for media_type, title in kind.titles.items()}


def sniff_media_type(text: str) -> str:
    """Guess the media type of a text. Built-in kinds come last, events at the very end: they accept anything."""
    begins = text.removeprefix("\ufeff").lstrip()
    media_types = (kind.sniff(begins) for kind in reversed(kinds()))
    return next((media_type for media_type in media_types if media_type), JSON)


def router_for(tidings: Tidings, limits: Limits) -> APIRouter:
    """Return the page for publishing."""
    router = console_router("publish")

    @router.get("")
    def publish(visitor: PublishVisitor) -> Response:
        return form_page(visitor, SubmissionForm(""))

    @router.post("")
    async def submit(request: Request, visitor: PublishVisitor) -> Response:
        fields = await read_form(request, ESCAPED * limits.body)
        offered = SubmissionForm(
            *(fields.get(name, "") for name in ("text", "kind", "id", "base", "audience"))
        )
        if len(offered.text.encode()) > limits.body:
            raise build_too_large_error(limits.body)
        return await run_in_threadpool(_publish, tidings, visitor, offered, limits)

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


def _publish(tidings: Tidings, visitor: Visitor, offered: SubmissionForm, limits: Limits) -> Response:
    try:
        outcome = publish_submission(tidings, offered, limits)
    except InputError as problem:
        return form_page(visitor, offered, None, problem)
    if not outcome.refused:
        return form_page(visitor, SubmissionForm("", offered.kind), outcome)
    form = replace(offered, text=outcome.left, kind=outcome.media_type) if outcome.left else offered
    return form_page(visitor, form, outcome)


def publish_submission(tidings: Tidings, offered: SubmissionForm, limits: Limits) -> SubmissionOutcome:
    """Publish as the API does: raise if the whole is refused; lines have an outcome each."""
    if not offered.text.strip():
        raise InputError("nothing to publish", hint="paste it, or drop a file")
    sent = offered.build_submission(limits.bulk)
    results = publisher.publish(tidings.store, sent, tidings.checked_against())
    numbers = number_lines(sent) or range(1, len(results) + 1)
    new = sum(isinstance(result, AppendResult) and result.new for result in results)
    refused = sum(isinstance(result, InputError) for result in results)
    outcomes = [*zip(numbers, results, strict=True)]
    left = _refused_lines(offered.text, outcomes) if number_lines(sent) else ""
    return SubmissionOutcome(
        sent.media_type, outcomes[:MAX_LISTED], new, len(results) - new - refused, refused, left
    )


def _refused_lines(text: str, outcomes: Sequence[tuple[int, AppendResult | InputError]]) -> str:
    lines = text.split("\n")
    return "\n".join(lines[number - 1] for number, result in outcomes if isinstance(result, InputError))


# Dead letters, for administrators: unprocessable publications with their errors, and publishing them again.


def dead_letters_router_for(tidings: Tidings, limits: Limits) -> APIRouter:
    """Return the pages of dead letters."""
    router = console_router(DEAD_LETTERS)

    @router.get("")
    def letters(visitor: AdministerVisitor, after: NumberParameter = 0, published: str = "") -> Response:
        dead_letters = tidings.dead_letters(after, PAGE + 1)
        values = {
            "letters": [(letter, _decode_body(letter)[:MAX_SHOWN]) for letter in dead_letters[:PAGE]],
            "more": dead_letters[PAGE - 1].number if len(dead_letters) > PAGE else None,
            "is_first": not after,
            "published": tidings.store.journal.find(published[:200]) if published else None,
        }
        return render_page("dead_letters.html", visitor, DEAD_LETTERS, values)

    @router.post("/{number}/replay")
    def replay(number: NumberInPath, visitor: AdministerVisitor, form: Form) -> Response:
        return _replay(tidings, visitor, number, limits)

    @router.get("/{number}/mend")
    def mend(number: NumberInPath, visitor: AdministerVisitor) -> Response:
        return form_page(visitor, _build_form(tidings, _find_letter(tidings, number)))

    return router


def _replay(tidings: Tidings, visitor: Visitor, number: int, limits: Limits) -> Response:
    """Publish it again under a new id, as the journal is not read twice. If it is still invalid, show the form."""
    offered = _build_form(tidings, _find_letter(tidings, number))
    try:
        outcome = publish_submission(tidings, offered, limits)
    except InputError as problem:
        return form_page(visitor, offered, None, problem)
    [(_, first), *others] = outcome.listed
    if others or isinstance(first, InputError):
        return form_page(visitor, offered, outcome)
    return redirect_to(f"{HOME}/{DEAD_LETTERS}{format_query({'published': first.id})}")


def _find_letter(tidings: Tidings, number: int) -> DeadLetter:
    letters = tidings.dead_letters(number - 1, 1) if number > 0 else []
    if not letters or letters[0].number != number:
        raise NotFound("there is no such dead letter", received=str(number))
    return letters[0]


def _build_form(tidings: Tidings, letter: DeadLetter) -> SubmissionForm:
    publication = tidings.store.journal.find(letter.publication) if letter.publication.isprintable() else None
    text = _decode_body(letter)
    media_type = publication.media_type if publication else sniff_media_type(text)
    return SubmissionForm(text, media_type, audience=letter.audience or "")


def _decode_body(letter: DeadLetter) -> str:
    return (letter.body or b"").decode("utf-8", "backslashreplace")

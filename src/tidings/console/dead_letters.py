"""Dead letter pages, for administrators: what could not be processed, why, and publishing it again."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool

from tidings.api.v1.limits import Limits
from tidings.console import publish
from tidings.console.pages import HOME, console_router, format_query, redirect_to
from tidings.console.session import (
    AdministerVisitor,
    NumberInPath,
    NumberParameter,
    Visitor,
    read_form,
    render_page,
)
from tidings.console.sniff import sniff_media_type
from tidings.errors import Absent, InputError
from tidings.service.tidings import Tidings
from tidings.store.dead_letters import DeadLetter

HERE = "dead-letters"
PAGE = 25
SHOWN = 4_000
"""Characters of a body that are shown; publishing it again uses all of it."""


def router_for(tidings: Tidings, limits: Limits) -> APIRouter:
    """Return the pages of dead letters."""
    router = console_router(HERE)

    @router.get("")
    def letters(visitor: AdministerVisitor, after: NumberParameter = 0, published: str = "") -> Response:
        found = tidings.dead_letters(after, PAGE + 1)
        values = {
            "letters": [(letter, _text(letter)[:SHOWN]) for letter in found[:PAGE]],
            "more": found[PAGE - 1].number if len(found) > PAGE else None,
            "is_first": not after,
            "published": tidings.store.journal.find(published[:200]) if published else None,
        }
        return render_page("dead_letters.html", visitor, HERE, values)

    @router.post("/{number}/replay")
    async def replay(number: NumberInPath, request: Request, visitor: AdministerVisitor) -> Response:
        await read_form(request, visitor)
        return await run_in_threadpool(_replayed, tidings, visitor, number, limits)

    @router.get("/{number}/mend")
    def mend(number: NumberInPath, visitor: AdministerVisitor) -> Response:
        return publish.form_page(visitor, _offered(tidings, _letter(tidings, number)))

    return router


def _replayed(tidings: Tidings, visitor: Visitor, number: int, limits: Limits) -> Response:
    """Publish it again under a new id, as the journal is not read twice. If it is still invalid, show the form."""
    offered = _offered(tidings, _letter(tidings, number))
    try:
        outcome = publish.publish_submission(tidings, offered, limits)
    except InputError as problem:
        return publish.form_page(visitor, offered, None, problem)
    [(_, first), *others] = outcome.listed
    if others or isinstance(first, InputError):
        return publish.form_page(visitor, offered, outcome)
    return redirect_to(f"{HOME}/{HERE}{format_query({'published': first.id})}")


def _letter(tidings: Tidings, number: int) -> DeadLetter:
    found = tidings.dead_letters(number - 1, 1) if number > 0 else []
    if not found or found[0].number != number:
        raise Absent("there is no such dead letter", received=str(number))
    return found[0]


def _offered(tidings: Tidings, letter: DeadLetter) -> publish.SubmissionForm:
    kept = tidings.store.journal.find(letter.publication) if letter.publication.isprintable() else None
    text = _text(letter)
    media_type = kept.media_type if kept else sniff_media_type(text)
    return publish.SubmissionForm(text, media_type, audience=letter.audience or "")


def _text(letter: DeadLetter) -> str:
    return (letter.body or b"").decode("utf-8", "backslashreplace")

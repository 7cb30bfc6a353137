"""Errors as Problem Details (RFC 9457): a kind with an address, what is wrong this time, and the facts as members.

    {"type": "/problems#check-problem", "title": "The text parses, but contradicts the schema or itself",
     "status": 422, "detail": "no event type has an attribute 'prise' (column 1)", "instance": "/v1/subscriptions",
     "error": "CheckProblem", "what": "...", "place": {"line": 1, "column": 1, "length": 5}, "pointer": "/text", ...}

`GET /problems` says what each kind means.
"""

from __future__ import annotations

import re
from typing import Any

from fastapi import APIRouter, Response
from fastapi.responses import HTMLResponse

from tidings.errors import StoreError, TidingsError
from tidings.interfaces.http.html import Html, joined, tag

MEDIA_TYPE = "application/problem+json"
PAGE = "/problems"

_GUARDED = {
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
}


def details(problem: TidingsError, status: int, instance: str | None = None) -> dict[str, Any]:
    """The members of an answer. `message` is all of it as people read it, with the place underlined."""
    if isinstance(problem, StoreError):
        problem = problem.nowhere()  # a path of this machine, or the address of a server behind it
    kind = type(problem)
    told: dict[str, Any] = {"type": f"{PAGE}#{name_of(kind)}", "title": title_of(kind), "status": status}
    told |= {"detail": problem.headline()} | ({"instance": instance} if instance else {})
    return told | problem.facts() | {"message": problem.message()}


def name_of(kind: type[TidingsError]) -> str:
    """A class as addresses name it: `CheckProblem` is check-problem."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", kind.__name__).lower()


def title_of(kind: type[TidingsError]) -> str:
    """The first sentence about a class: it is the same each time."""
    return re.split(r"[.;:](?:\s|$)", (kind.__doc__ or name_of(kind)).strip(), maxsplit=1)[0]


def kinds() -> list[type[TidingsError]]:
    """All kinds of errors that this process knows, by name."""
    found, waiting = set[type[TidingsError]](), [TidingsError]
    while waiting:
        kind = waiting.pop()
        found.add(kind)
        waiting += kind.__subclasses__()
    return sorted((kind for kind in found if not kind.__name__.startswith("_")), key=name_of)


def router() -> APIRouter:
    """The page that the types of problems lead to."""
    made = APIRouter(include_in_schema=False)
    made.add_api_route(PAGE, _page, methods=["GET"])
    return made


def _page() -> Response:
    said = [_said(kind) for kind in kinds()]
    head = tag("head", tag("meta", charset="utf-8"), tag("title", "What may go wrong"))
    body = tag("body", tag("h1", "What may go wrong"), tag("dl", *said))
    return HTMLResponse(
        joined(Html("<!DOCTYPE html>\n"), tag("html", head, body, lang="en")), headers=_GUARDED
    )


def _said(kind: type[TidingsError]) -> Html:
    name = name_of(kind)
    told = " ".join((kind.__doc__ or "").split())
    return joined(tag("dt", tag("code", name), id=name), tag("dd", told))

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

from tidings.api.html import Html, html_element, join_html
from tidings.errors import StoreError, TidingsError

MEDIA_TYPE = "application/problem+json"
PAGE = "/problems"

_GUARDED = {
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
}


def problem_members(problem: TidingsError, status: int, instance: str | None = None) -> dict[str, Any]:
    """The members of an answer. `message` is all of it as people read it, with the place underlined."""
    if isinstance(problem, StoreError):
        problem = problem.nowhere()  # a path of this machine, or the address of a server behind it
    kind = type(problem)
    told: dict[str, Any] = {
        "type": f"{PAGE}#{problem_name(kind)}",
        "title": problem_title(kind),
        "status": status,
    }
    told |= {"detail": problem.headline()} | ({"instance": instance} if instance else {})
    return told | problem.facts() | {"message": problem.message()}


def problem_name(kind: type[TidingsError]) -> str:
    """A class as addresses name it: `CheckProblem` is check-problem."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", kind.__name__).lower()


def problem_title(kind: type[TidingsError]) -> str:
    """The first sentence about a class: it is the same each time."""
    return re.split(r"[.;:](?:\s|$)", (kind.__doc__ or problem_name(kind)).strip(), maxsplit=1)[0]


def list_problem_types() -> list[type[TidingsError]]:
    """All kinds of errors that this process knows, by name."""
    found, waiting = set[type[TidingsError]](), [TidingsError]
    while waiting:
        kind = waiting.pop()
        found.add(kind)
        waiting += kind.__subclasses__()
    return sorted((kind for kind in found if not kind.__name__.startswith("_")), key=problem_name)


def router() -> APIRouter:
    """The page that the types of problems lead to."""
    made = APIRouter(include_in_schema=False)
    made.add_api_route(PAGE, _page, methods=["GET"])
    return made


def _page() -> Response:
    said = [_describe_type(kind) for kind in list_problem_types()]
    head = html_element(
        "head", html_element("meta", charset="utf-8"), html_element("title", "What may go wrong")
    )
    body = html_element("body", html_element("h1", "What may go wrong"), html_element("dl", *said))
    return HTMLResponse(
        join_html(Html("<!DOCTYPE html>\n"), html_element("html", head, body, lang="en")), headers=_GUARDED
    )


def _describe_type(kind: type[TidingsError]) -> Html:
    name = problem_name(kind)
    told = " ".join((kind.__doc__ or "").split())
    return join_html(html_element("dt", html_element("code", name), id=name), html_element("dd", told))

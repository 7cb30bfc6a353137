"""Rendering of pages: templates that escape every value, highlighted publications, error pages, redirects."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse
from fastapi.routing import APIRoute
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from tidings.api.parameters import check_parameters, parameter_problem
from tidings.api.problem_details import HttpError
from tidings.api.routes import HEADERS, retry_after_headers, status_of
from tidings.core import durations
from tidings.core.text import escape_bidi, plural
from tidings.errors import DecodeProblem, Overloaded, Place, TidingsError
from tidings.model import Publication
from tidings.notification_text import (
    binding_rows,
    find_change,
    format_change,
    format_limits,
    format_reason,
    list_reasons,
)
from tidings.parsers.parser_pool import run_isolated
from tidings.parsers.xml_bytes import convert_to_utf8
from tidings.parsers.xml_parser import indent_xml
from tidings.values import show

LONGEST = 200_000
"""Characters of a publication that are shown."""

AROUND, WIDE = 4, 300
"""Lines above and below the place of an error, and characters left and right of it."""

_BETWEEN_TAGS = re.compile(r">\s*\n\s*<")


def highlight_publication(publication: Publication, marked: Collection[str] = ()) -> Markup:
    """Return the body of a publication; values at the JSON pointers in `marked` are highlighted."""
    try:
        text = publication.body.decode()
    except UnicodeDecodeError:
        return Markup.escape(publication.body[:64].hex(" ") + " …")
    if len(text) > LONGEST:
        return Markup.escape(text[:LONGEST]) + Markup("<em>… and so on</em>")
    if publication.media_type.endswith("json"):
        return _json(text, {pointer.lstrip("/").replace("/", ".") for pointer in marked})
    return Markup.escape(_xml(text) if publication.media_type.endswith("xml") else text)


def _json(text: str, paths: Collection[str]) -> Markup:
    """Return JSON with highlighting; invalid or deeply nested text unchanged."""
    try:
        return Markup("").join(_value(json.loads(text.removeprefix("\ufeff")), "", "\n", paths))
    except (ValueError, RecursionError):
        return Markup.escape(text)


def _value(value: Any, path: str, line: str, paths: Collection[str]) -> Iterator[Markup]:
    """Yield the parts of a value. The items of a list have the path of the list, as in predicates."""
    if not isinstance(value, dict | list) or not value:
        is_marked = path in paths or path.removeprefix("data.") in paths
        kind = "mark" if is_marked else "span"
        encoded = json.dumps(value, ensure_ascii=False)
        yield Markup(f'<{kind} class="{_kind(value)}">{escape(encoded)}</{kind}>')
        return
    opened, closed = "{}" if isinstance(value, dict) else "[]"
    inner = f"{line}  "
    yield Markup(opened)
    for index, (name, member) in enumerate(_members(value)):
        yield Markup("," if index else "") + Markup(inner)
        if name is not None:
            yield Markup(f'<span class="key">{escape(json.dumps(name, ensure_ascii=False))}</span>: ')
        below = path if name is None else f"{path}.{name}".lstrip(".")
        yield from _value(member, below, inner, paths)
    yield Markup(f"{line}{closed}")


def _members(value: dict[str, Any] | list[Any]) -> Iterator[tuple[str | None, Any]]:
    if isinstance(value, dict):
        yield from value.items()
    else:
        yield from ((None, one) for one in value)


def _kind(value: Any) -> str:
    if isinstance(value, str):
        return "string"
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else "word"


def _xml(text: str) -> str:
    """Return XML indented, unless it has lines already; invalid XML unchanged."""
    if _BETWEEN_TAGS.search(text) or "<!" in text:
        return text
    try:
        return run_isolated(indent_xml, convert_to_utf8(text.encode()))
    except (DecodeProblem, Overloaded):
        return text


def highlight_place(place: Place) -> Markup:
    """Return the text of an error with the place marked; of a long text only its surroundings."""
    lines = place.text.split("\n")
    index, start = place.line - 1, place.column - 1
    line = lines[index] if index < len(lines) else ""
    end = start + max(1, place.length)
    head = "\n".join([*lines[max(0, index - AROUND) : index], line[max(0, start - WIDE) : start]])
    tail = "\n".join([line[end : end + WIDE], *lines[index + 1 : index + 1 + AROUND]])
    return Markup("{}<mark>{}</mark>{}").format(head, line[start:end] or " ", tail)


class FieldValue(Markup):
    """The value of a form field. It is sent back unchanged, so its bidirectional characters are not escaped."""


def _sanitize(value: object) -> object:
    """Escape bidirectional control characters in everything that a template shows."""
    if not isinstance(value, str) or isinstance(value, FieldValue):
        return value
    return Markup(escape_bidi(value)) if isinstance(value, Markup) else escape_bidi(value)


def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("tidings.console"),
        autoescape=True,
        finalize=_sanitize,
        undefined=StrictUndefined,  # a name that is mistyped in a template is an error, not nothing
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "duration": durations.show,
        "moment": format_instant,
        "capital": capitalize,
        "query": format_query,
    }
    made.filters["typed"] = FieldValue.escape
    made.globals |= {
        "between": format_elapsed,
        "bound_rows": binding_rows,
        "change_of": find_change,
        "in_words": list_reasons,
        "plural": plural,
        "show_change": format_change,
        "show_limits": format_limits,
        "show_reason": format_reason,
        "show_value": show,
        "underlined": highlight_place,
    }
    return made


def render_template(name: str, values: Mapping[str, Any]) -> str:
    """Return a rendered template. Its layout is the console's frame, unless `values` name another one."""
    return _templates.get_template(name).render({"layout": "base.html", **values})


def format_instant(instant: str) -> str:
    """Return `2026-11-17 02:50:42`; the element's `datetime` has the full timestamp."""
    return instant[:19].replace("T", " ")


def format_elapsed(start: str, end: str) -> str:
    """Return the time between two instants, such as `5 minutes`."""
    passed = datetime.fromisoformat(end) - datetime.fromisoformat(start)
    return durations.about(passed.total_seconds())


def capitalize(text: str) -> str:
    """Return a text with its first letter in upper case, as a sentence."""
    return text[:1].upper() + text[1:]


def format_query(values: Mapping[str, object]) -> str:
    """Return `?name=value` of the values that are not empty; an empty text if none is left."""
    parameters = {name: value for name, value in values.items() if value not in (None, "")}
    return f"?{urlencode(parameters)}" if parameters else ""


_templates = _environment()


HOME = "/console"
LOG_IN = f"{HOME}/login"

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
SECURITY_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Pages run and load only our own files, whatever a publication contains, and browsers do not cache them."""

_Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class ConsoleRoute(APIRoute):
    """A route that answers errors with a page, and redirects visitors without a session to the login."""

    def get_route_handler(self) -> _Handler:
        answer = super().get_route_handler()

        async def answered(request: Request) -> Response:
            try:
                check_parameters(request)
                response = await answer(request)
            except HttpError as refused:
                response = _error_response(request, refused.problem, refused.status)
            except RequestValidationError as error:
                response = problem_page(request, parameter_problem(error), 400)
            except TidingsError as problem:
                response = problem_page(request, problem, status_of(problem))
            for name, value in SECURITY_HEADERS.items():
                response.headers.setdefault(name, value)
            return response

        return answered


def console_router(below: str = "") -> APIRouter:
    """Return a router for pages below an address of the console."""
    prefix = f"{HOME}/{below}" if below else HOME
    return APIRouter(prefix=prefix, route_class=ConsoleRoute, include_in_schema=False)


def _error_response(request: Request, problem: TidingsError, status: int) -> Response:
    if status != 401:
        return problem_page(request, problem, status)
    way = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    to = f"?next={quote(way)}" if request.method == "GET" and request.url.path != HOME else ""
    return redirect_to(f"{LOG_IN}{to}")


def problem_page(request: Request, problem: TidingsError, status: int) -> Response:
    """Return the page of an error."""
    visitor = getattr(request.state, "visitor", None)
    values = {"visitor": visitor, "here": "", "problem": problem, "status": status, "start": HOME}
    headers = HEADERS.get(status, {}) | retry_after_headers(problem)
    return HTMLResponse(render_template("problem.html", values), status, headers)


def redirect_to(to: str) -> RedirectResponse:
    """Redirect after a POST, so that reloading the page does not repeat it."""
    return RedirectResponse(to, 303)

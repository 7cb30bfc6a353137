"""How the console answers: pages that nothing foreign gets into, and what is wrong as a page, too."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse
from fastapi.routing import APIRoute

from tidings.errors import TidingsError
from tidings.interfaces.http.answers import HEADERS, come_back, status_of
from tidings.interfaces.http.console.templating import rendered
from tidings.interfaces.http.parameters import check_parameters, parameter_problem
from tidings.interfaces.http.refused import Refused

HOME = "/console"
LOG_IN = f"{HOME}/login"

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
GUARDED = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Whatever a publication says, nothing in a page runs or is loaded that is not ours, and nothing of it is kept."""

_Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class Shown(APIRoute):
    """A route on which everything that goes wrong is a page. Whoever is a stranger is led to the log-in."""

    def get_route_handler(self) -> _Handler:
        answer = super().get_route_handler()

        async def answered(request: Request) -> Response:
            try:
                check_parameters(request)
                response = await answer(request)
            except Refused as refused:
                response = _refused(request, refused.problem, refused.status)
            except RequestValidationError as error:
                response = problem_page(request, parameter_problem(error), 400)
            except TidingsError as problem:
                response = problem_page(request, problem, status_of(problem))
            for name, value in GUARDED.items():
                response.headers.setdefault(name, value)
            return response

        return answered


def pages_at(below: str = "") -> APIRouter:
    """A router for pages below an address of the console."""
    prefix = f"{HOME}/{below}" if below else HOME
    return APIRouter(prefix=prefix, route_class=Shown, include_in_schema=False)


def _refused(request: Request, problem: TidingsError, status: int) -> Response:
    if status != 401:
        return problem_page(request, problem, status)
    way = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    to = f"?next={quote(way)}" if request.method == "GET" and request.url.path != HOME else ""
    return moved(f"{LOG_IN}{to}")


def problem_page(request: Request, problem: TidingsError, status: int) -> Response:
    """What is wrong, for whoever looks."""
    visitor = getattr(request.state, "visitor", None)
    values = {"visitor": visitor, "here": "", "problem": problem, "status": status}
    headers = HEADERS.get(status, {}) | come_back(problem)
    return HTMLResponse(rendered("problem.html", values), status, headers)


def moved(to: str) -> RedirectResponse:
    """What was posted is done; the browser goes on to a page that may be loaded again."""
    return RedirectResponse(to, 303)

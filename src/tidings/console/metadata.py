"""Pages for browsing metadata: classes, their resources, and the references of a resource.

They are served twice from the same templates: below `/console/browse/metadata` for people who are logged in, and below
`/browse` without scripts for trusted callers, who send the service's token as the password.
"""

from __future__ import annotations

import shlex
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Response
from fastapi.responses import HTMLResponse

from tidings.api import problem_details
from tidings.api.authentication import TrustPolicy, require_trust
from tidings.api.routes import ProblemRoute
from tidings.console.pages import HOME, console_router, render_template
from tidings.console.session import AnyVisitor, render_page
from tidings.errors import TidingsError
from tidings.metadata.queries.browser import MAX_PAGE_SIZE, PAGE_SIZE, Browser, class_tree, display_value
from tidings.metadata.resources import Ref
from tidings.store.store import Store

SCRIPTLESS_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "private, no-cache",
}
"""Headers of pages outside of the console: nothing runs, and nothing is loaded from elsewhere."""

BASIC_AUTH_CHALLENGE = {
    "WWW-Authenticate": 'Basic realm="Tidings: any name, and the token as the password", charset="UTF-8"'
}

MAX_INDENT = 8

Uri = Annotated[str, Query(min_length=1, max_length=500)]
After = Annotated[str, Query(max_length=1_100)]
Limit = Annotated[int, Query(ge=1, le=MAX_PAGE_SIZE)]
Values = dict[str, Any]


class MetadataView:
    """The values of the templates; links lead to pages below `address`."""

    def __init__(self, store: Store, address: str) -> None:
        self._browser, self._address = Browser(store), address

    def classes(self) -> Values:
        lines = [(min(depth, MAX_INDENT), cls) for depth, cls in class_tree(self._browser.classes())]
        return {"at": self._address, "lines": lines}

    def instances(self, name: str, after: str, limit: int) -> Values:
        page = self._browser.instances(name, after, limit)
        return {"page": page, **self._common(name, after)}

    def resource(self, uri: str, after: str, limit: int) -> Values:
        view = self._browser.resource(uri, after, limit)
        literals = {
            name: literal_values
            for name, values in view.resource.values.items()
            if (literal_values := [display_value(value) for value in values if not isinstance(value, Ref)])
        }
        return {"view": view, "literals": literals, **self._common(uri, after)}

    def _common(self, subject: str, after: str) -> Values:
        command = f"tidings provider pick {shlex.quote(subject)} --as NAME"
        picked = self._browser.pick(subject)
        return {"at": self._address, "picked": picked, "command": command, "is_first": not after}


def console_router_for(store: Store) -> APIRouter:
    """The pages in the console."""
    here = "browse"
    router = console_router("browse/metadata")
    view = MetadataView(store, f"{HOME}/browse/metadata")

    @router.get("")
    def classes(visitor: AnyVisitor) -> Response:
        return render_page("metadata.html", visitor, here, view.classes())

    @router.get("/class/{name}")
    def instances(visitor: AnyVisitor, name: str, after: After = "") -> Response:
        return render_page("metadata_class.html", visitor, here, view.instances(name, after, PAGE_SIZE))

    @router.get("/resource")
    def resource(visitor: AnyVisitor, uri: Uri, after: After = "") -> Response:
        return render_page("metadata_resource.html", visitor, here, view.resource(uri, after, PAGE_SIZE))

    return router


class ScriptlessRoute(ProblemRoute):
    """A route that answers errors with a page without scripts."""

    def wrong(self, problem: TidingsError, status: int) -> Response:
        challenge = BASIC_AUTH_CHALLENGE if status == 401 else {}
        values = {"problem": problem, "status": status, "start": "/browse"}
        return _scriptless_page("problem.html", values, status, challenge)


def router_for(store: Store, trust: TrustPolicy) -> APIRouter:
    """The pages below `/browse`."""
    view = MetadataView(store, "/browse")
    dependencies = [Depends(require_trust(trust, "metadata"))]
    router = APIRouter(
        prefix="/browse", route_class=ScriptlessRoute, dependencies=dependencies, include_in_schema=False
    )

    @router.get("")
    def classes() -> Response:
        return _scriptless_page("metadata.html", view.classes())

    @router.get("/class/{name}")
    def instances(name: str, after: After = "", limit: Limit = PAGE_SIZE) -> Response:
        return _scriptless_page("metadata_class.html", view.instances(name, after, limit))

    @router.get("/resource")
    def resource(uri: Uri, after: After = "", limit: Limit = PAGE_SIZE) -> Response:
        return _scriptless_page("metadata_resource.html", view.resource(uri, after, limit))

    return router


def problem_types_router() -> APIRouter:
    """The page that the `type` of Problem Details links to."""
    router = APIRouter(include_in_schema=False)

    @router.get(problem_details.PAGE)
    def problem_types() -> Response:
        kinds = [
            (problem_details.problem_name(kind), " ".join((kind.__doc__ or "").split()))
            for kind in problem_details.list_problem_types()
        ]
        return _scriptless_page("problem_types.html", {"kinds": kinds})

    return router


def _scriptless_page(
    name: str, values: Values, status: int = 200, headers: dict[str, str] | None = None
) -> Response:
    content = render_template(name, {"layout": "scriptless.html", "visitor": None, **values})
    return HTMLResponse(content, status, SCRIPTLESS_HEADERS | (headers or {}))

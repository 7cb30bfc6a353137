"""Looking around in metadata over HTTP: as JSON for machines, and as pages for people.

GET /metadata/classes                       GET /browse
GET /metadata/classes/{name}                GET /browse/class/{name}
GET /metadata/resource?uri=                 GET /browse/resource?uri=
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Response
from fastapi.responses import HTMLResponse

from tidings.browsing import LARGEST_PAGE, PAGE, Browser
from tidings.errors import TidingsError
from tidings.interfaces import browsing_as_json as as_json
from tidings.interfaces.http import browsing_pages as pages
from tidings.interfaces.http.answers import Answering
from tidings.interfaces.http.joining import join
from tidings.interfaces.http.trust import Trust, only_for
from tidings.store import Store

GUARDED = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "private, no-cache",
}
"""Nothing in a page runs or is loaded from elsewhere, whatever metadata says."""

ASKS = {"WWW-Authenticate": 'Basic realm="Tidings: any name, and the token as the password", charset="UTF-8"'}

Uri = Annotated[str, Query(min_length=1, max_length=500)]
After = Annotated[str, Query(max_length=1_100)]
Limit = Annotated[int, Query(ge=1, le=LARGEST_PAGE)]


def router_for(store: Store, trust: Trust) -> APIRouter:
    """The endpoints for machines and the pages for people."""
    browser = Browser(store)

    trusted = Depends(only_for(trust, "metadata"))
    router = APIRouter()
    join(router, _for_machines(browser, trusted), _for_people(browser, trusted))
    return router


def _for_machines(browser: Browser, trusted: Any) -> APIRouter:
    router = APIRouter(prefix="/metadata", tags=["metadata"], route_class=Answering, dependencies=[trusted])

    @router.get("/classes")
    def classes() -> dict[str, Any]:
        return {"classes": [as_json.class_seen(each) for each in browser.classes()]}

    @router.get("/classes/{name}")
    def instances(name: str, after: After = "", limit: Limit = PAGE) -> dict[str, Any]:
        return as_json.instances(browser.instances(name, after, limit))

    @router.get("/resource")
    def resource(uri: Uri, after: After = "", limit: Limit = PAGE) -> dict[str, Any]:
        return as_json.resource_seen(browser.resource(uri, after, limit))

    return router


class Showing(Answering):
    """A route on which everything that goes wrong is a page."""

    def wrong(self, problem: TidingsError, status: int) -> Response:
        return _page(pages.problem_page(problem), status, ASKS if status == 401 else {})


def _for_people(browser: Browser, trusted: Any) -> APIRouter:
    router = APIRouter(prefix="/browse", route_class=Showing, dependencies=[trusted], include_in_schema=False)

    @router.get("")
    def classes() -> Response:
        return _page(pages.classes_page(browser.classes()))

    @router.get("/class/{name}")
    def instances(name: str, after: After = "", limit: Limit = PAGE) -> Response:
        found = browser.instances(name, after, limit)
        return _page(pages.class_page(found, browser.pick(name), not after))

    @router.get("/resource")
    def resource(uri: Uri, after: After = "", limit: Limit = PAGE) -> Response:
        seen = browser.resource(uri, after, limit)
        return _page(pages.resource_page(seen, browser.pick(uri), not after))

    @router.get("/style.css")
    def style() -> Response:
        return Response(pages.CSS, media_type="text/css", headers=GUARDED)

    return router


def _page(content: str, status: int = 200, more: dict[str, str] | None = None) -> Response:
    return HTMLResponse(content, status, GUARDED | (more or {}))

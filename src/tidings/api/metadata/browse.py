"""Looking around in metadata over HTTP: as JSON for machines, and as pages for people.

GET /metadata/classes                       GET /browse
GET /metadata/classes/{name}                GET /browse/class/{name}
GET /metadata/resource?uri=                 GET /browse/resource?uri=
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Response
from fastapi.responses import HTMLResponse

from tidings.api.authentication import TrustPolicy, require_trust
from tidings.api.metadata import browse_pages as pages
from tidings.api.routes import ProblemRoute, join_routers
from tidings.errors import TidingsError
from tidings.metadata.queries import browser as as_json
from tidings.metadata.queries.browser import MAX_PAGE_SIZE, PAGE_SIZE, Browser
from tidings.store.store import Store

SECURITY_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "private, no-cache",
}
"""Nothing in a page runs or is loaded from elsewhere, whatever metadata says."""

BASIC_AUTH_CHALLENGE = {
    "WWW-Authenticate": 'Basic realm="Tidings: any name, and the token as the password", charset="UTF-8"'
}

Uri = Annotated[str, Query(min_length=1, max_length=500)]
After = Annotated[str, Query(max_length=1_100)]
Limit = Annotated[int, Query(ge=1, le=MAX_PAGE_SIZE)]


def router_for(store: Store, trust: TrustPolicy) -> APIRouter:
    """The endpoints for machines and the pages for people."""
    browser = Browser(store)

    trusted = Depends(require_trust(trust, "metadata"))
    router = APIRouter()
    join_routers(router, _json_router(browser, trusted), _page_router(browser, trusted))
    return router


def _json_router(browser: Browser, trusted: Any) -> APIRouter:
    router = APIRouter(
        prefix="/metadata", tags=["metadata"], route_class=ProblemRoute, dependencies=[trusted]
    )

    @router.get("/classes")
    def classes() -> dict[str, Any]:
        return {"classes": [as_json.class_to_json(each) for each in browser.classes()]}

    @router.get("/classes/{name}")
    def instances(name: str, after: After = "", limit: Limit = PAGE_SIZE) -> dict[str, Any]:
        return as_json.instances_to_json(browser.instances(name, after, limit))

    @router.get("/resource")
    def resource(uri: Uri, after: After = "", limit: Limit = PAGE_SIZE) -> dict[str, Any]:
        return as_json.view_to_json(browser.resource(uri, after, limit))

    return router


class BrowsePageRoute(ProblemRoute):
    """A route on which everything that goes wrong is a page."""

    def wrong(self, problem: TidingsError, status: int) -> Response:
        return _page(pages.problem_page(problem), status, BASIC_AUTH_CHALLENGE if status == 401 else {})


def _page_router(browser: Browser, trusted: Any) -> APIRouter:
    router = APIRouter(
        prefix="/browse", route_class=BrowsePageRoute, dependencies=[trusted], include_in_schema=False
    )

    @router.get("")
    def classes() -> Response:
        return _page(pages.classes_page(browser.classes()))

    @router.get("/class/{name}")
    def instances(name: str, after: After = "", limit: Limit = PAGE_SIZE) -> Response:
        found = browser.instances(name, after, limit)
        return _page(pages.class_page(found, browser.pick(name), not after))

    @router.get("/resource")
    def resource(uri: Uri, after: After = "", limit: Limit = PAGE_SIZE) -> Response:
        seen = browser.resource(uri, after, limit)
        return _page(pages.resource_page(seen, browser.pick(uri), not after))

    @router.get("/style.css")
    def style() -> Response:
        return Response(pages.CSS, media_type="text/css", headers=SECURITY_HEADERS)

    return router


def _page(content: str, status: int = 200, more: dict[str, str] | None = None) -> Response:
    return HTMLResponse(content, status, SECURITY_HEADERS | (more or {}))

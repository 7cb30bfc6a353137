"""Metadata as JSON, for browsing: classes, their resources, and the references of a resource.

GET /metadata/classes
GET /metadata/classes/{name}
GET /metadata/resource?uri=

`console/metadata.py` renders the same as pages.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query

from tidings.api.authentication import TrustPolicy, require_trust
from tidings.api.routes import ProblemRoute
from tidings.metadata.queries import browser as browsing
from tidings.metadata.queries.browser import MAX_PAGE_SIZE, PAGE_SIZE, Browser
from tidings.store.store import Store

Uri = Annotated[str, Query(min_length=1, max_length=500)]
After = Annotated[str, Query(max_length=1_100)]
Limit = Annotated[int, Query(ge=1, le=MAX_PAGE_SIZE)]


def router_for(store: Store, trust: TrustPolicy) -> APIRouter:
    browser = Browser(store)
    dependencies = [Depends(require_trust(trust, "metadata"))]
    router = APIRouter(
        prefix="/metadata", tags=["metadata"], route_class=ProblemRoute, dependencies=dependencies
    )

    @router.get("/classes")
    def classes() -> dict[str, Any]:
        return {"classes": [browsing.class_to_json(cls) for cls in browser.classes()]}

    @router.get("/classes/{name}")
    def instances(name: str, after: After = "", limit: Limit = PAGE_SIZE) -> dict[str, Any]:
        return browsing.instances_to_json(browser.instances(name, after, limit))

    @router.get("/resource")
    def resource(uri: Uri, after: After = "", limit: Limit = PAGE_SIZE) -> dict[str, Any]:
        return browsing.view_to_json(browser.resource(uri, after, limit))

    return router

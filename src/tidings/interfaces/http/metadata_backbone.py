"""What other providers ask for: the log.

GET  /metadata/log?after=12&limit=500&wait=20
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response
from fastapi.responses import JSONResponse

from tidings.interfaces.http.metadata_repositories import After, Wait
from tidings.interfaces.http.waiting import News
from tidings.metadata.log_pages import page_to_json
from tidings.provider import Provider
from tidings.store import Store

MOST = 1_000

Limit = Annotated[int, Query(ge=1, le=MOST)]


def add_to(router: APIRouter, store: Store, provider: Provider, news: News) -> None:
    """Add the endpoints to those of a provider."""
    endpoints = Endpoints(store, provider, news)
    router.add_api_route("/log", endpoints.log, methods=["GET"])


class Endpoints:
    """What a provider answers to others."""

    def __init__(self, store: Store, provider: Provider, news: News) -> None:
        self._store, self._provider, self._news = store, provider, news

    async def log(self, after: After = 0, limit: Limit = 500, wait: Wait = 0) -> Response:
        """Entries of the log after a position; if there are none, they are waited for."""
        look = lambda: self._store.backbone.page(after, limit)  # noqa: E731
        found = await self._news.found(look, lambda page: bool(page.entries), wait)
        return JSONResponse(page_to_json(found))

"""What other providers ask for: the log, and everything at once for those who begin.

GET  /metadata/log?after=12&limit=500&wait=20
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from fastapi.responses import JSONResponse, StreamingResponse

from tidings.interfaces.http.metadata_repositories import After, Wait
from tidings.interfaces.http.waiting import News
from tidings.metadata.log_pages import page_to_json
from tidings.provider import Provider
from tidings.store import Store

MOST = 1_000
JSON_LINES = "application/x-ndjson"
PIECE = 100_000
"""Bytes that are sent at a time."""

Limit = Annotated[int, Query(ge=1, le=MOST)]


def add_to(router: APIRouter, store: Store, provider: Provider, news: News) -> None:
    """Add the endpoints to those of a provider."""
    endpoints = Endpoints(store, provider, news)
    router.add_api_route("/log", endpoints.log, methods=["GET"])
    router.add_api_route("/snapshot", endpoints.snapshot, methods=["GET"])


class Endpoints:
    """What a provider answers to others."""

    def __init__(self, store: Store, provider: Provider, news: News) -> None:
        self._store, self._provider, self._news = store, provider, news

    async def log(self, after: After = 0, limit: Limit = 500, wait: Wait = 0) -> Response:
        """Entries of the log after a position; if there are none, they are waited for."""
        look = lambda: self._store.backbone.page(after, limit)  # noqa: E731
        found = await self._news.found(look, lambda page: bool(page.entries), wait)
        return JSONResponse(page_to_json(found))

    def snapshot(self) -> Response:
        """Everything, as of one position. The first line is made before the answer begins: it may be refused."""
        lines = self._provider.snapshot()
        first = next(lines)
        return StreamingResponse(_pieces(chain([first], lines)), media_type=JSON_LINES)


def _pieces(records: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
    """Lines of JSON, many together: each piece is made in a thread of its own."""
    piece = bytearray()
    for record in records:
        piece += json.dumps(record, ensure_ascii=False).encode() + b"\n"
        if len(piece) >= PIECE:
            yield bytes(piece)
            piece.clear()
    yield bytes(piece)

"""A client that disconnects in the middle of its body."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter, FastAPI


def left_halfway(router: APIRouter, path: str, media_type: str) -> int:
    """Return the status of the response. An error of the application would be logged as a failure of the server."""
    app = FastAPI()
    app.include_router(router)
    scope = {"type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b""}
    scope |= {"headers": [(b"content-type", media_type.encode())], "client": ("127.0.0.1", 1)}
    parts = iter(({"type": "http.request", "body": b"<a", "more_body": True}, {"type": "http.disconnect"}))
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return next(parts)

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    return int(sent[0]["status"])

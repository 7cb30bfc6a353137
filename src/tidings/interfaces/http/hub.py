"""The hub over HTTP: those who want to be told of new entries ask here (WebSub, section 5)."""

from __future__ import annotations

from urllib.parse import parse_qsl

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import PlainTextResponse

from tidings.errors import InputError
from tidings.feeds.hub import Hub
from tidings.feeds.hub_rules import HubBusy

LARGEST = 20_000
FORM = "application/x-www-form-urlencoded"


def router_for(hub: Hub) -> APIRouter:
    """The endpoint of the hub. It answers before the callback was asked: what was taken is verified in its turn."""
    router = APIRouter(tags=["hub"])

    @router.post("/hub", status_code=202)
    async def ask(request: Request) -> Response:
        body = await _body(request)
        if body is None:
            return PlainTextResponse(f"at most {LARGEST:,} bytes\n", 413)
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != FORM:
            return PlainTextResponse(f"a form, as {FORM}\n", 415)
        return await run_in_threadpool(_asked, hub, body)

    return router


async def _body(request: Request) -> bytes | None:
    """The body; nothing if it is too large, and no more of it is read then."""
    read = b""
    async for chunk in request.stream():
        read += chunk
        if len(read) > LARGEST:
            return None
    return read


def _asked(hub: Hub, body: bytes) -> Response:
    try:
        form = dict(parse_qsl(body.decode("utf-8", "replace"), max_num_fields=50))
        hub.ask(form)
    except HubBusy as problem:
        return PlainTextResponse(f"{problem}\n", 503, {"Retry-After": "60"})
    except (InputError, ValueError) as problem:  # too many fields
        return PlainTextResponse(f"{problem}\n", 400)
    return Response(status_code=202)

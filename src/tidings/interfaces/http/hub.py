"""The hub over HTTP: those who want to be told of new entries ask here (WebSub, section 5)."""

from __future__ import annotations

from urllib.parse import parse_qsl

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import PlainTextResponse

from tidings.errors import InputError
from tidings.feeds.hub import Hub
from tidings.feeds.hub_rules import HubBusy
from tidings.interfaces.http.answers import Plain
from tidings.interfaces.http.bodies import body_of

LARGEST = 20_000
FORM = "application/x-www-form-urlencoded"


def router_for(hub: Hub) -> APIRouter:
    """The endpoint of the hub. It answers before the callback was asked: what was taken is verified in its turn."""
    router = APIRouter(tags=["hub"], route_class=Plain)

    @router.post("/hub", status_code=202)
    async def ask(request: Request) -> Response:
        body = await body_of(request, LARGEST)
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != FORM:
            return PlainTextResponse(f"a form, as {FORM}\n", 415)
        return await run_in_threadpool(_asked, hub, body)

    return router


def _asked(hub: Hub, body: bytes) -> Response:
    try:
        form = dict(parse_qsl(body.decode("utf-8", "replace"), max_num_fields=50))
        hub.ask(form)
    except HubBusy as problem:
        return PlainTextResponse(f"{problem}\n", 503, {"Retry-After": "60"})
    except (InputError, ValueError) as problem:  # too many fields
        return PlainTextResponse(f"{problem}\n", 400)
    return Response(status_code=202)

"""Routes of the console, below `/console`, and its static files."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from fastapi import APIRouter, Request, Response

from tidings.api.limits import Limits
from tidings.api.rate_limiter import RateLimiter
from tidings.api.routes import join_routers
from tidings.console import (
    browse,
    destinations,
    metadata,
    notifications,
    pipeline,
    publish,
    subscriptions,
    tokens,
)
from tidings.console.pages import HOME, SECURITY_HEADERS, console_router, redirect_to
from tidings.console.session import AnyVisitor
from tidings.core.drawing.svg import PICTURE_STYLE
from tidings.delivery.destinations import Destinations
from tidings.errors import NotFound
from tidings.feeds.outbound.personal_feeds import PersonalFeeds
from tidings.objects.model.model_picture import MODEL_STYLE
from tidings.service.authorization import Access
from tidings.service.tidings import Tidings

MEDIA_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
"""Media types of static files; other files are not served."""

_FOLDER = Path(__file__).with_name("static")


def static_router_for() -> APIRouter:
    """Return the static files, held in memory. Browsers revalidate them, so pages never run scripts of old versions."""
    files = {path.name: path.read_bytes() for path in _FOLDER.iterdir() if path.suffix in MEDIA_TYPES}
    files["picture.css"] = _picture_style()
    tags = {name: f'"{hashlib.sha256(body).hexdigest()[:20]}"' for name, body in files.items()}
    router = console_router("static")

    @router.get("/{name}")
    def file(name: str, request: Request) -> Response:
        if name not in files:
            raise NotFound("there is no such file", received=name)
        headers = SECURITY_HEADERS | {"Cache-Control": "no-cache", "ETag": tags[name]}
        if request.headers.get("if-none-match") == tags[name]:
            return Response(status_code=304, headers=headers)
        return Response(files[name], media_type=MEDIA_TYPES[Path(name).suffix], headers=headers)

    return router


def _picture_style() -> bytes:
    """Return the stylesheet of pictures, scoped to `.picture`: pages use the same class names for other things."""
    return f".picture {{\n{PICTURE_STYLE}{MODEL_STYLE}.page {{ fill: none; }}\n}}\n".encode()


def router_for(
    tidings: Tidings,
    reached: Destinations,
    feeds: PersonalFeeds,
    limits: Limits,
    public_url: str | None = None,
    attempts: RateLimiter | None = None,
    find_spark_ui: Callable[[], str | None] = lambda: None,
) -> APIRouter:
    """Return the console of a home folder. `public_url` determines whether cookies need https."""
    router = console_router()
    join_routers(router, *list_routers(tidings, reached, feeds, limits, public_url, attempts, find_spark_ui))
    router.add_api_route("", show_start, methods=["GET"])
    router.add_api_route("/{rest:path}", show_not_found, methods=["GET"])
    return router


def list_routers(
    tidings: Tidings,
    reached: Destinations,
    feeds: PersonalFeeds,
    limits: Limits,
    public_url: str | None = None,
    attempts: RateLimiter | None = None,
    find_spark_ui: Callable[[], str | None] = lambda: None,
) -> tuple[APIRouter, ...]:
    """Return the routers of the console's parts."""
    access = Access(tidings.store)
    return (
        tokens.login_router_for(access, (public_url or "").startswith("https:"), attempts),
        static_router_for(),
        notifications.router_for(tidings),
        subscriptions.router_for(tidings, feeds, limits),
        destinations.router_for(reached),
        publish.router_for(tidings, limits),
        browse.router_for(tidings),
        metadata.console_router_for(tidings.store),
        publish.dead_letters_router_for(tidings, limits),
        pipeline.router_for(tidings, find_spark_ui),
        tokens.router_for(access),
    )


def show_start(visitor: AnyVisitor) -> Response:
    """Redirect to the first page that the visitor's token may see."""
    if visitor.may_subscribe:
        return redirect_to(f"{HOME}/notifications")
    return redirect_to(f"{HOME}/publish")


def show_not_found(rest: str, visitor: AnyVisitor) -> Response:
    raise NotFound("there is no such page", received=f"{HOME}/{rest}"[:200])

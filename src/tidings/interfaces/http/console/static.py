"""What pages load: the style, the scripts and the icon, all from here."""

from __future__ import annotations

import hashlib
from pathlib import Path

from fastapi import APIRouter, Request, Response

from tidings.errors import Absent
from tidings.interfaces.drawing.svg import STYLE
from tidings.interfaces.http.console.answering import GUARDED, pages_at
from tidings.interfaces.model_picture import STYLE as MODEL_STYLE

MEDIA_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
"""Of the files that are served; nothing else is."""

_FOLDER = Path(__file__).with_name("static")


def router_for() -> APIRouter:
    """The files, held in memory. A browser asks each time whether its copy is the one in use: so no page is ever shown
    with the script of another version.
    """
    files = {path.name: path.read_bytes() for path in _FOLDER.iterdir() if path.suffix in MEDIA_TYPES}
    files["picture.css"] = _picture_style()
    tags = {name: f'"{hashlib.sha256(body).hexdigest()[:20]}"' for name, body in files.items()}
    router = pages_at("static")

    @router.get("/{name}")
    def file(name: str, request: Request) -> Response:
        if name not in files:
            raise Absent("there is no such file", received=name)
        headers = GUARDED | {"Cache-Control": "no-cache", "ETag": tags[name]}
        if request.headers.get("if-none-match") == tags[name]:
            return Response(status_code=304, headers=headers)
        return Response(files[name], media_type=MEDIA_TYPES[Path(name).suffix], headers=headers)

    return router


def _picture_style() -> bytes:
    """The style of pictures, for those in a page: their names mean something else outside of them."""
    return f".picture {{\n{STYLE}{MODEL_STYLE}.page {{ fill: none; }}\n}}\n".encode()

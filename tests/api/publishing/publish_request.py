"""A helper with which tests publish."""

from __future__ import annotations

import httpx

from tests.support.servers.api_server import Service

EVENT = {"specversion": "1.0", "id": "ce-1", "source": "/shop", "type": "sale", "data": {"price": 5}}
"""A CloudEvent in structured mode."""

CONTEXT = {"ce_specversion": "1.0", "ce_id": "ce-h", "ce_source": "/shop", "ce_type": "sale"}
"""The headers of a CloudEvent in binary mode, as `post` takes them."""


def post(service: Service, body: bytes | str, kind: str, **more: str) -> httpx.Response:
    """Publish a body; arguments that begin with `ce_` or a capital letter are headers, the others query parameters."""
    named = {name: more.pop(name) for name in list(more) if name.startswith("ce_") or name[0].isupper()}
    headers = {"Content-Type": kind} | {name.replace("_", "-"): value for name, value in named.items()}
    data = body.encode() if isinstance(body, str) else body
    return service.shop.post("/v1/publications", content=data, headers=headers, params=more)

"""How tests publish."""

from __future__ import annotations

import httpx

from tests.support.servers.api_server import Service

EVENT = {"specversion": "1.0", "id": "ce-1", "source": "/shop", "type": "sale", "data": {"price": 5}}
"""A CloudEvent that is whole."""

CONTEXT = {"ce_specversion": "1.0", "ce_id": "ce-h", "ce_source": "/shop", "ce_type": "sale"}
"""What one has in headers, as `post` takes them."""


def post(service: Service, body: bytes | str, kind: str, **more: str) -> httpx.Response:
    """Publish something; what begins with `ce_` or a capital letter is a header, the rest is in the query."""
    named = {name: more.pop(name) for name in list(more) if name.startswith("ce_") or name[0].isupper()}
    headers = {"Content-Type": kind} | {name.replace("_", "-"): value for name, value in named.items()}
    data = body.encode() if isinstance(body, str) else body
    return service.shop.post("/v1/publications", content=data, headers=headers, params=more)

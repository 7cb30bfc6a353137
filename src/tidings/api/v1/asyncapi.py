"""The AsyncAPI 3.0 document of both streams, from the schemas of the API: `GET /v1/asyncapi.json`."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from tidings.api.authentication import COOKIE
from tidings.api.v1.schemas import Acknowledgement, CloudEvent, Introduction

MESSAGES: tuple[tuple[str, type[BaseModel], str], ...] = (
    ("notification", CloudEvent, "A notification as a CloudEvent; the cursor is `data.sequence`."),
    ("acknowledgement", Acknowledgement, "Acknowledges everything up to a sequence number."),
    ("introduction", Introduction, "The first message of a client that sends neither a header nor a cookie."),
)

_AFTER = "A cursor: only notifications after it. Default: the unacknowledged ones."
_PARAMETERS = {
    "after": {"type": "integer", "minimum": 0, "description": _AFTER},
    "subscription": {"type": "string", "description": "Only notifications of this subscription."},
    "subscriber": {
        "type": "string",
        "description": "The subscriber; only administrators may name another one.",
    },
}
_QUERY = {"type": "object", "properties": _PARAMETERS}

router = APIRouter(prefix="/v1")


@router.get("/asyncapi.json", include_in_schema=False)
def asyncapi(request: Request) -> JSONResponse:
    """Return the AsyncAPI document, with this server's address."""
    return JSONResponse(build_asyncapi(request.url.netloc, request.url.scheme == "https"))


def build_asyncapi(host: str, is_secure: bool = False) -> dict[str, Any]:
    """Return the document of the streams at a host."""
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Notifications of Tidings",
            "version": version("tidings"),
            "description": "Live notifications of a subscriber, resumed by cursor without loss or repetition.",
        },
        "defaultContentType": "application/json",
        "servers": {
            "events": _server(host, "https" if is_secure else "http"),
            "sockets": _server(host, "wss" if is_secure else "ws"),
        },
        "channels": {"stream": _stream(), "socket": _socket()},
        "operations": {
            "streamNotifications": _operation("send", "stream", "notification")
            | {"bindings": {"http": {"method": "GET", "query": _QUERY, "bindingVersion": "0.3.0"}}},
            "sendNotifications": _operation("send", "socket", "notification"),
            "receiveAcknowledgements": _operation("receive", "socket", "acknowledgement"),
            "receiveIntroduction": _operation("receive", "socket", "introduction"),
        },
        "components": {
            "messages": {name: _message(name, kind, summary) for name, kind, summary in MESSAGES},
            "schemas": _schemas(),
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A token that `tidings token make` created",
                },
                "console": {"type": "httpApiKey", "in": "cookie", "name": COOKIE},
            },
        },
    }


def _server(host: str, protocol: str) -> dict[str, Any]:
    schemes = [{"$ref": f"#/components/securitySchemes/{name}"} for name in ("bearer", "console")]
    return {"host": host, "protocol": protocol, "security": schemes}


def _stream() -> dict[str, Any]:
    return {
        "address": "/v1/notifications/stream",
        "title": "Server-sent events",
        "description": "The `id` of an event is its cursor; `Last-Event-ID` resumes after it. Comments are heartbeats.",
        "servers": [{"$ref": "#/servers/events"}],
        "messages": _references("notification"),
    }


def _socket() -> dict[str, Any]:
    return {
        "address": "/v1/notifications/ws",
        "title": "WebSocket",
        "description": (
            "Closed with 1001 or 1012 when the server shuts down, 1013 for too many streams or requests, 4400 for an "
            "invalid message, parameter or cursor, 4401 without a valid token, 4403 for a token without the scope."
        ),
        "servers": [{"$ref": "#/servers/sockets"}],
        "messages": _references("notification", "acknowledgement", "introduction"),
        "bindings": {"ws": {"method": "GET", "query": _QUERY, "bindingVersion": "0.1.0"}},
    }


def _references(*names: str) -> dict[str, Any]:
    return {name: {"$ref": f"#/components/messages/{name}"} for name in names}


def _operation(action: str, channel: str, message: str) -> dict[str, Any]:
    return {
        "action": action,
        "channel": {"$ref": f"#/channels/{channel}"},
        "messages": [{"$ref": f"#/channels/{channel}/messages/{message}"}],
    }


def _message(name: str, kind: type[BaseModel], summary: str) -> dict[str, Any]:
    payload = {"$ref": f"#/components/schemas/{kind.__name__}"}
    return {"name": name, "summary": summary, "contentType": "application/json", "payload": payload}


def _schemas() -> dict[str, Any]:
    kinds = [(kind, "serialization") for _, kind, _ in MESSAGES]
    _, made = models_json_schema(kinds, ref_template="#/components/schemas/{model}")  # type: ignore[arg-type]
    found: dict[str, Any] = made["$defs"]
    return found

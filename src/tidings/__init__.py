"""Tidings: content-based publish/subscribe for structured data, on Apache Spark.

The public names; everything else is private to its module. They are imported when first used, so that a program pays
only for the parts it touches.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidings.client import AsyncClient, Client
    from tidings.errors import InputError, NotificationFailed, SetupError, StoreError, TidingsError
    from tidings.events.json_decoder import decode
    from tidings.events.schema.event_schema import EventSchema
    from tidings.events.schema.files import load as load_schema
    from tidings.matching.compiler.compilation import compile_many, compile_text
    from tidings.matching.index.index import Index
    from tidings.model import Match, Notification, Publication, Reason, Reject, Subscription
    from tidings.objects.listener.session_listener import notice
    from tidings.objects.propagation import Limits, Object, Watch
    from tidings.objects.readers.sqlalchemy_marks import association, implicit, propagates, stored, subscriber
    from tidings.service.tidings import Tidings

_PLACES = {
    "AsyncClient": "client",
    "Client": "client",
    "EventSchema": "events.schema.event_schema",
    "Index": "matching.index",
    "InputError": "errors",
    "Limits": "objects.propagation",
    "Match": "model",
    "NotificationFailed": "errors",
    "Notification": "model",
    "Object": "objects.propagation",
    "Publication": "model",
    "Reason": "model",
    "Reject": "model",
    "SetupError": "errors",
    "StoreError": "errors",
    "Subscription": "model",
    "Tidings": "service.tidings",
    "TidingsError": "errors",
    "Watch": "objects.propagation",
    "association": "objects.readers.sqlalchemy_marks",
    "compile_many": "matching.compiler.compilation",
    "compile_text": "matching.compiler.compilation",
    "decode": "events.json_decoder",
    "implicit": "objects.readers.sqlalchemy_marks",
    "load_schema": "events.schema.files:load",
    "notice": "objects.listener.session_listener",
    "propagates": "objects.readers.sqlalchemy_marks",
    "stored": "objects.readers.sqlalchemy_marks",
    "subscriber": "objects.readers.sqlalchemy_marks",
}

__all__ = [
    "AsyncClient",
    "Client",
    "EventSchema",
    "Index",
    "InputError",
    "Limits",
    "Match",
    "Notification",
    "NotificationFailed",
    "Object",
    "Publication",
    "Reason",
    "Reject",
    "SetupError",
    "StoreError",
    "Subscription",
    "Tidings",
    "TidingsError",
    "Watch",
    "association",
    "compile_many",
    "compile_text",
    "decode",
    "implicit",
    "load_schema",
    "notice",
    "propagates",
    "stored",
    "subscriber",
]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'tidings' has no attribute '{name}'")
    module, _, spelled = _PLACES[name].partition(":")
    return getattr(import_module(f"tidings.{module}"), spelled or name)


def __dir__() -> list[str]:
    return __all__

"""Tidings tells the right people, once, as soon as something they asked about changes.

The public names; everything else is private to its module. They are imported when first used, so that a program pays
only for the parts it touches.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidings.client import AsyncClient, Client
    from tidings.compiler.pipeline import compile_many, compile_text
    from tidings.errors import InputError, NotTold, SetupError, StoreError, TidingsError
    from tidings.matching.index import Index
    from tidings.model import Match, Notification, Publication, Reason, Reject, Subscription
    from tidings.objects.aspect.noticing import notice
    from tidings.objects.definition import Limits, Watch
    from tidings.objects.marks import association, implicit, propagates, stored, subscriber
    from tidings.objects.reasons import Object
    from tidings.publications.event import decode
    from tidings.schema.event_schema import EventSchema
    from tidings.schema.files import load as load_schema
    from tidings.service import Tidings

_PLACES = {
    "AsyncClient": "client",
    "Client": "client",
    "EventSchema": "schema.event_schema",
    "Index": "matching.index",
    "InputError": "errors",
    "Limits": "objects.definition",
    "Match": "model",
    "NotTold": "errors",
    "Notification": "model",
    "Object": "objects.reasons",
    "Publication": "model",
    "Reason": "model",
    "Reject": "model",
    "SetupError": "errors",
    "StoreError": "errors",
    "Subscription": "model",
    "Tidings": "service",
    "TidingsError": "errors",
    "Watch": "objects.definition",
    "association": "objects.marks",
    "compile_many": "compiler.pipeline",
    "compile_text": "compiler.pipeline",
    "decode": "publications.event",
    "implicit": "objects.marks",
    "load_schema": "schema.files:load",
    "notice": "objects.aspect.noticing",
    "propagates": "objects.marks",
    "stored": "objects.marks",
    "subscriber": "objects.marks",
}

__all__ = [
    "AsyncClient",
    "Client",
    "EventSchema",
    "Index",
    "InputError",
    "Limits",
    "Match",
    "NotTold",
    "Notification",
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

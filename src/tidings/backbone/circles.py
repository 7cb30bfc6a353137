"""Providers that follow each other in a circle: nobody keeps the log, and a registration would be handed on for ever.

    here ──follows──▶ b ──follows──▶ c ──follows──▶ here

Whoever closes the circle finds it, by asking each provider whom it follows. One further on that does not answer ends
that: it may be away for now, and registrations count how often they were handed on all the same.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any
from urllib.parse import urlsplit

from tidings.backbone.log import Log
from tidings.backbone.peer import Peer
from tidings.errors import InputError, TidingsError

LONGEST = 10
"""So many providers are asked at most."""
SECONDS = 5.0
"""How long one of them may take to answer; the one that is followed itself has the time it always has."""
_HERE = frozenset(("localhost", "127.0.0.1", "::1"))


class Circle(InputError):
    """Providers follow each other, or one follows itself."""


def refuse_circle(own: str, log: Log) -> None:
    """Refuse to follow a log that comes, in the end, from the provider with an id."""
    if not isinstance(log, Peer):
        return
    path, found = [log.name], log.status()
    while found.get("provider") != own:
        url = found.get("leader")
        if not isinstance(url, str) or not url.startswith("http") or url in path or len(path) == LONGEST:
            return
        path.append(url)
        found = _status(url)
    raise _circle(path)


def refuse_own(log: Log, own: Collection[str]) -> None:
    """Refuse to follow what is served at one of the own addresses; nobody answers there before it is served."""
    if isinstance(log, Peer) and _place(log.name) in map(_place, own):
        log.close()
        raise _circle([log.name])


def _status(url: str) -> dict[str, Any]:
    """Where a provider stands; nothing if it does not say so."""
    try:
        with Peer(url) as peer:
            return peer.status(SECONDS)
    except TidingsError:
        return {}


def _place(url: str) -> tuple[str | None, int] | None:
    """The host and the port of an address; nothing if it is none, which is said elsewhere."""
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        return None
    return "localhost" if parts.hostname in _HERE else parts.hostname, port


def _circle(path: list[str]) -> Circle:
    if len(path) == 1:
        hint = "follow another one; `tidings provider lead` if this one should keep the log"
        return Circle("a provider cannot follow itself", received=path[0], hint=hint)
    hint = "`tidings provider lead` at the one that should keep the log, and no --follow there"
    return Circle("providers follow each other in a circle", received=" -> ".join(path), hint=hint)

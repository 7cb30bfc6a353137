"""Which log a provider follows: the one that is named, or the one that it has followed before."""

from __future__ import annotations

from tidings.backbone.log import Log
from tidings.backbone.peer import Peer
from tidings.backbone.shared_log import SharedLog
from tidings.errors import InputError
from tidings.provider import Provider
from tidings.store import Store


def log_for(store: Store, provider: Provider, leader: str | None, shared: str | None) -> Log | None:
    """The log of the provider at an address, or the one in a database; nothing if the provider keeps its own."""
    if leader and shared:
        raise InputError("a provider follows another one or a shared log, not both", where="--follow, --log")
    if shared:
        return _shared(store, provider, shared)
    known = None if leader else store.backbone.leader()
    if known and not known.startswith("http"):
        hint = f"--log {known}, with the password; or `tidings provider lead` to follow it no more"
        raise InputError("the log of this provider is in a database", where=known, hint=hint)
    named = leader or known
    return Peer(named) if named else None


def _shared(store: Store, provider: Provider, url: str) -> SharedLog:
    log = SharedLog(url, provider)
    if log.name == store.database.name:
        log.close()
        hint = "providers of one store share its log already"
        raise InputError("the log is in the provider's own store", where="--log", hint=hint)
    return log

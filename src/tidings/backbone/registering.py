"""Where registrations go: to whoever keeps the log. A provider that keeps its own takes them itself.

client ── PUT ──▶ follower ── PUT ──▶ leader        the entry is at a position of the leader's log
                    ◀───── the log ─────             and is applied here when the client is answered
"""

from __future__ import annotations

from threading import Lock

from tidings.backbone.log import Keeper, Log, Shared
from tidings.backbone.peer import Peer
from tidings.closing import Closing
from tidings.errors import InputError
from tidings.store import Store


class Registering(Closing):
    """Finds out who keeps the log of a provider: it may begin to follow another one at any time.

    `log` is the one that is followed here, if one is. Its connection waits for news: registrations have another one.
    """

    def __init__(self, store: Store, log: Log | None = None) -> None:
        self._store, self._log = store, log
        self._peer: Peer | None = None
        self._guard = Lock()

    def keeper(self) -> Keeper | None:
        """Who keeps the log; nothing if this provider does."""
        if isinstance(self._log, Shared):
            return self._log
        leader = self._log.name if self._log else self._store.backbone.leader()
        if leader is None:
            return None
        if not leader.startswith("http"):
            hint = "say it with --log, as where it is followed"
            raise InputError("the log of this provider is elsewhere", where=leader, hint=hint)
        return self._peer_at(leader)

    def _peer_at(self, url: str) -> Peer:
        with self._guard:
            if self._peer is None or self._peer.name != url:
                self._close_peer()
                self._peer = Peer(url)
            return self._peer

    def close(self) -> None:
        with self._guard:
            self._close_peer()

    def _close_peer(self) -> None:
        if self._peer is not None:
            self._peer.close()
            self._peer = None

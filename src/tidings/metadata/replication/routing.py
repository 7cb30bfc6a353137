"""A log in a database that several providers share: a store of its own, of which only the log is used."""

from __future__ import annotations

from collections.abc import Collection
from threading import Event, Lock
from time import monotonic

from tidings.core.closeable import Closeable
from tidings.errors import InputError, SetupError
from tidings.metadata.log import LogDraft, LogPage, Operation
from tidings.metadata.provider.provider import Provider
from tidings.metadata.replication.log_protocol import LogKeeper, ReplicationLog, SharedReplicationLog
from tidings.metadata.replication.peer import Peer
from tidings.operations import kafka_address
from tidings.store.store import Store, open_store

POLL_SECONDS = 0.2


class DatabaseLog(SharedReplicationLog):
    """The log in the store at an address, for one of the providers that share it."""

    def __init__(self, url: str, provider: Provider) -> None:
        self._store = open_store(url)
        self._ended = Event()
        super().__init__(self._store.database.name, provider)

    def page(self, after: int, limit: int, wait: float) -> LogPage:
        """Entries after a position. Nobody is told by the database that there is something new: it is looked for."""
        until = monotonic() + wait
        while True:
            page = self._store.replication.page(after, limit)
            left = until - monotonic()
            if page.entries or left <= 0 or self._ended.wait(min(left, POLL_SECONDS)):
                return page

    def append(self, draft: LogDraft) -> int:
        [position] = self._store.metadata.log.append([draft])
        return position

    def last_of(self, uris: Collection[str], after: int) -> dict[str, Operation]:
        return self._store.metadata.log.last_of(uris, after)

    def end(self) -> None:
        self._ended.set()

    def close(self) -> None:
        self._store.close()


# Which log a provider follows: the one that is named, or the one that it has followed before.


def open_log(
    store: Store, provider: Provider, leader: str | None, shared: str | None
) -> ReplicationLog | None:
    """The log of the provider at an address, or one that is shared; nothing if the provider keeps its own."""
    if leader and shared:
        raise InputError("a provider follows another one or a shared log, not both", where="--follow, --log")
    if shared:
        return open_shared_log(store, provider, shared)
    known = None if leader else store.replication.leader()
    if known and not known.startswith("http"):
        hint = f"--log {known}, with the password; or `tidings provider lead` to follow it no more"
        raise InputError("the log of this provider is one that is shared", where=known, hint=hint)
    named = leader or known
    return Peer(named) if named else None


def open_shared_log(store: Store, provider: Provider, url: str) -> SharedReplicationLog:
    """The log at an address that several providers share: a Kafka topic, or in a database."""
    if url.startswith(kafka_address.KAFKA_SCHEME):
        return _kafka_log(provider, url)
    log = DatabaseLog(url, provider)
    if log.name == store.database.name:
        log.close()
        hint = "providers of one store share its log already"
        raise InputError("the log is in the provider's own store", where="--log", hint=hint)
    return log


def _kafka_log(provider: Provider, url: str) -> SharedReplicationLog:
    address = kafka_address.parse_kafka_address(url)
    try:
        from tidings.metadata.replication.kafka_log import KafkaLog  # noqa: PLC0415 - its library is an extra
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("confluent_kafka"):
            raise
        what, hint = "the client for Kafka is not installed", "pip install 'tidings[kafka]'"
        raise SetupError(what, where=address.name, hint=hint) from error
    return KafkaLog(address, provider)


# Where registrations go: to whoever keeps the log. A provider that keeps its own takes them itself.
#
# client ── PUT ──▶ follower ── PUT ──▶ leader        the entry is at a position of the leader's log
#                     ◀───── the log ─────             and is applied here when the client is answered


class RegistrationRouter(Closeable):
    """Finds out who keeps the log of a provider: it may begin to follow another one at any time.

    `log` is the one that is followed here, if one is. Its connection waits for news: registrations have another one.
    """

    def __init__(self, store: Store, log: ReplicationLog | None = None) -> None:
        self._store, self._log = store, log
        self._peer: Peer | None = None
        self._guard = Lock()

    def keeper(self) -> LogKeeper | None:
        """Who keeps the log; nothing if this provider does."""
        if isinstance(self._log, SharedReplicationLog):
            return self._log
        leader = self._log.name if self._log else self._store.replication.leader()
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

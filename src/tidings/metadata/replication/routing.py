"""Choice of the log that a provider follows, and routing of registrations to its owner."""

from __future__ import annotations

from collections.abc import Collection
from threading import Event, Lock
from time import monotonic

from tidings.core.lifecycle import Closeable
from tidings.errors import InputError, SetupError
from tidings.metadata.log import LogDraft, LogPage, Operation
from tidings.metadata.provider.provider import Provider
from tidings.metadata.replication.peer import LogKeeper, Peer, ReplicationLog, SharedReplicationLog
from tidings.operations import kafka_address
from tidings.store.store import Store, open_store

POLL_SECONDS = 0.2


class DatabaseLog(SharedReplicationLog):
    """A shared log in a database: only the log of that store is used."""

    def __init__(self, url: str, provider: Provider) -> None:
        self._store = open_store(url)
        self._ended = Event()
        super().__init__(self._store.database.name, provider)

    def page(self, after: int, limit: int, wait: float) -> LogPage:
        """Return entries after a position, by polling the database."""
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


def open_log(
    store: Store, provider: Provider, leader: str | None, shared: str | None
) -> ReplicationLog | None:
    """Open the log to follow: the given leader's, a shared one, or the last one; None if the provider leads."""
    if leader and shared:
        raise InputError(
            "a provider follows another provider or a shared log, not both", where="--follow, --metadata-log"
        )
    if shared:
        return open_shared_log(store, provider, shared)
    recorded = None if leader else store.replication.leader()
    if recorded and not recorded.startswith("http"):
        hint = f"pass --metadata-log {recorded} with the password, or run `tidings provider lead` to stop following it"
        raise InputError("this provider follows a shared log", where=recorded, hint=hint)
    named = leader or recorded
    return Peer(named) if named else None


def open_shared_log(store: Store, provider: Provider, url: str) -> SharedReplicationLog:
    """Open a shared log: a Kafka topic, or a database."""
    if url.startswith(kafka_address.KAFKA_SCHEME):
        return _kafka_log(provider, url)
    log = DatabaseLog(url, provider)
    if log.name == store.database.name:
        log.close()
        hint = "providers of one store share its log already"
        raise InputError("the log is in the provider's own store", where="--metadata-log", hint=hint)
    return log


def _kafka_log(provider: Provider, url: str) -> SharedReplicationLog:
    address = kafka_address.parse_kafka_address(url)
    try:
        from tidings.metadata.replication.kafka_log import KafkaLog  # noqa: PLC0415 - its library is an extra
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("confluent_kafka"):
            raise
        message, hint = "the client for Kafka is not installed", "pip install 'tidings[kafka]'"
        raise SetupError(message, where=address.name, hint=hint) from error
    return KafkaLog(address, provider)


# A follower forwards registrations to the owner of the log:
#
#     client ── PUT ──▶ follower ── PUT ──▶ leader        the entry has a position in the leader's log
#                         ◀───── the log ─────             and is applied here before the client gets a response


class RegistrationRouter(Closeable):
    """Finds the owner of the log, which can change at any time.

    `log` is the log followed here, if any. Its connection is busy long polling, so registrations use another one.
    """

    def __init__(self, store: Store, log: ReplicationLog | None = None) -> None:
        self._store, self._log = store, log
        self._peer: Peer | None = None
        self._guard = Lock()

    def keeper(self) -> LogKeeper | None:
        """Return the owner of the log; None if it is this provider."""
        if isinstance(self._log, SharedReplicationLog):
            return self._log
        leader = self._log.name if self._log else self._store.replication.leader()
        if leader is None:
            return None
        if not leader.startswith("http"):
            hint = "pass it with --metadata-log, as in the process that follows it"
            raise InputError("this provider follows a shared log", where=leader, hint=hint)
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

"""Which log a provider follows: the one that is named, or the one that it has followed before."""

from __future__ import annotations

from tidings.backbone.log import Log, Shared
from tidings.backbone.peer import Peer
from tidings.backbone.shared_log import SharedLog
from tidings.errors import InputError, SetupError
from tidings.provider import Provider
from tidings.store import Store
from tidings.web import kafka_address


def log_for(store: Store, provider: Provider, leader: str | None, shared: str | None) -> Log | None:
    """The log of the provider at an address, or one that is shared; nothing if the provider keeps its own."""
    if leader and shared:
        raise InputError("a provider follows another one or a shared log, not both", where="--follow, --log")
    if shared:
        return shared_log(store, provider, shared)
    known = None if leader else store.backbone.leader()
    if known and not known.startswith("http"):
        hint = f"--log {known}, with the password; or `tidings provider lead` to follow it no more"
        raise InputError("the log of this provider is one that is shared", where=known, hint=hint)
    named = leader or known
    return Peer(named) if named else None


def shared_log(store: Store, provider: Provider, url: str) -> Shared:
    """The log at an address that several providers share: a Kafka topic, or in a database."""
    if url.startswith(kafka_address.SCHEME):
        return _kafka_log(provider, url)
    log = SharedLog(url, provider)
    if log.name == store.database.name:
        log.close()
        hint = "providers of one store share its log already"
        raise InputError("the log is in the provider's own store", where="--log", hint=hint)
    return log


def _kafka_log(provider: Provider, url: str) -> Shared:
    address = kafka_address.parse(url)
    try:
        from tidings.backbone.kafka_log import KafkaLog  # noqa: PLC0415 - its library is an extra
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("confluent_kafka"):
            raise
        what, hint = "the client for Kafka is not installed", "pip install 'tidings[kafka]'"
        raise SetupError(what, where=address.name, hint=hint) from error
    return KafkaLog(address, provider)

"""Access tokens with their scopes. The store has only hashes, so a copy of it grants no access."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from threading import Lock

from sqlalchemy import Column, Connection, Table, Text, insert, select, update

from tidings.store import bulk, counters, names
from tidings.store.database import Database
from tidings.store.encoding import Clock, format_instant
from tidings.store.tables import Name, metadata

tokens = Table(
    "tokens",
    metadata,
    Column("id", Name, primary_key=True),
    Column("hash", Name, nullable=False, unique=True),
    Column("name", Text, nullable=False),
    Column("subscriber", Name, nullable=True, index=True),
    Column("scopes", Text, nullable=False),
    Column("made", Name, nullable=False),
    Column("expires", Name, nullable=True),
    Column("revoked", Name, nullable=True),
    sqlite_with_rowid=False,
)


@dataclass(frozen=True, slots=True)
class Token:
    """Facts about a token, without its secret. `subscriber` is the one whose subscriptions it may use."""

    id: str
    name: str
    subscriber: str | None
    scopes: frozenset[str]
    made: str
    expires: str | None = None
    revoked: str | None = None


REMEMBERED = 10_000
"""Maximum number of cached tokens."""

_GOOD = select(tokens.c.id, tokens.c.expires).where(tokens.c.revoked.is_(None))
_COLUMNS = tuple(tokens.c[name] for name in Token.__dataclass_fields__)
_BY_HASH = select(tokens.c.hash, *_COLUMNS).where(tokens.c.revoked.is_(None))


class Tokens:
    """The tokens of a store."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock
        self._cache: dict[str, Token] = {}
        self._remembering = Lock()

    def keep(self, secret: str, token: Token) -> Token:
        """Add a token by the hash of its secret, under a new id."""
        return self._database.transact(lambda c: _keep(c, secret, token, format_instant(self._clock())))

    def keep_first(self, secret: str, token: Token, hand_out: Callable[[], object]) -> Token | None:
        """Add a token if there never was one with its scopes, revoked ones included; safe with concurrent processes.

        `hand_out` is called in the transaction: if it fails, the token is not added.
        """
        others = (
            select(tokens.c.id).where(*(tokens.c.scopes.contains(scope) for scope in token.scopes)).limit(1)
        )

        def first(connection: Connection) -> Token | None:
            counters.lock(connection, "tokens")
            if connection.execute(others).first():
                return None
            kept = _keep(connection, secret, token, format_instant(self._clock()))
            hand_out()
            return kept

        with self._database.read() as connection:
            if connection.execute(others).first():
                return None
        return self._database.transact(first)

    def find(self, secret: str) -> Token | None:
        """Find a valid token; None if it is unknown, revoked or expired."""
        return self.find_all([secret]).get(secret)

    def find_all(self, secrets: Collection[str]) -> dict[str, Token]:
        """Find valid tokens by their secrets, in one query."""
        hashes = {secret: hash_secret(secret) for secret in secrets}
        with self._database.read() as connection:
            rows = bulk.select_among(connection, _BY_HASH, tokens.c.hash, set(hashes.values()))
            tokens_by_hash = {hash: _token(*fields) for hash, *fields in rows}
        moment = format_instant(self._clock())
        good = {
            hash: token for hash, token in tokens_by_hash.items() if not is_expired(token.expires, moment)
        }
        self._remember(hashes.values(), good)
        return {secret: good[hash] for secret, hash in hashes.items() if hash in good}

    def find_cached(self, secret: str) -> Token | None:
        """Return the cached token without a query. It cannot change, only expire or be revoked.

        The transaction that relies on it must check for revocation, as `Journal.append_batches` does.
        """
        token = self._cache.get(hash_secret(secret))
        return None if token is None or is_expired(token.expires, format_instant(self._clock())) else token

    def _remember(self, hashes: Iterable[str], good: Mapping[str, Token]) -> None:
        """Cache valid tokens, and remove invalid ones from the cache."""
        with self._remembering:
            for hash in hashes:
                self._cache.pop(hash, None)
            self._cache |= good
            for hash in list(islice(self._cache, max(0, len(self._cache) - REMEMBERED))):
                del self._cache[hash]

    def find_valid(self, ids: Collection[str]) -> set[str]:
        """Return the ids of valid tokens, in one query for all that are in use."""
        moment = format_instant(self._clock())
        with self._database.read() as connection:
            rows = bulk.select_among(connection, _GOOD, tokens.c.id, ids)
            return {id for id, expires in rows if not is_expired(expires, moment)}

    def list(self, subscriber: str | None = None) -> list[Token]:
        """List all tokens, oldest first, of all subscribers or of one."""
        query = select(*_COLUMNS).order_by(tokens.c.made, tokens.c.id)
        if subscriber is not None:
            query = query.where(tokens.c.subscriber == subscriber)
        with self._database.read() as connection:
            return [_token(*row) for row in connection.execute(query)]

    def revoke(self, id: str) -> bool:
        """Revoke a token; return false if there is none, or it was revoked before."""
        statement = update(tokens).where(tokens.c.id == id, tokens.c.revoked.is_(None))
        moment = format_instant(self._clock())
        return bool(self._database.transact(lambda c: c.execute(statement.values(revoked=moment)).rowcount))


def is_expired(expires: str | None, moment: str) -> bool:
    """Return whether a token has expired."""
    return expires is not None and expires <= moment


def hash_secret(secret: str) -> str:
    """Hash a secret. It has many random bits, so a slow hash is not needed."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _keep(connection: Connection, secret: str, token: Token, made: str) -> Token:
    names.check("a token's name", token.name)
    if token.subscriber is not None:
        names.check("a subscriber's name", token.subscriber)
    number = counters.step(connection, "tokens")
    stored = Token(f"t-{number}", token.name, token.subscriber, token.scopes, made, token.expires)
    row = {name: getattr(stored, name) for name in Token.__dataclass_fields__}
    scopes = " ".join(sorted(stored.scopes))
    connection.execute(insert(tokens), row | {"scopes": scopes, "hash": hash_secret(secret)})
    return stored


def _token(id: str, name: str, subscriber: str | None, scopes: str, *fields: str) -> Token:
    return Token(id, name, subscriber, frozenset(scopes.split()), *fields)

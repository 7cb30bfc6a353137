"""Authorization: tokens with scopes, each for one subscriber or for none.

    publish       append publications to the journal
    subscribe     manage the subscriptions, notifications and deliveries of one subscriber
    administer    everything, for every subscriber

A token is shown once, when it is made. It can expire and be revoked. The first administrator's token is written to a
file in the home folder, because the output of a service ends up in the logs of its machine.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from pathlib import Path

from tidings.core import durations
from tidings.core.atomic_files import private_folder, write_atomically
from tidings.errors import InputError, NotAllowed, SetupError
from tidings.objects.watches import SubscriberNames
from tidings.store.encoding import format_instant, utc_now
from tidings.store.store import Store
from tidings.store.tokens import Token

TOKEN_PREFIX = "tdg_"
"""Makes tokens recognisable in logs and commits."""

ADMINISTRATOR_FILE = "administrator.token"
"""Name of the file in the home folder with the first administrator's token."""


class Scope(StrEnum):
    """Permissions of a token."""

    PUBLISH = "publish"
    SUBSCRIBE = "subscribe"
    ADMINISTER = "administer"


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller of a request, identified by a token. `names` resolves subscribers that an administrator names."""

    token: Token
    names: SubscriberNames = field(compare=False, repr=False)

    @property
    def is_administrator(self) -> bool:
        return Scope.ADMINISTER in self.token.scopes

    @property
    def subscriber(self) -> str | None:
        """The subscriber of the token; an administrator's token may have none."""
        return self.token.subscriber

    def has_scope(self, scope: Scope) -> bool:
        return self.is_administrator or scope in self.token.scopes

    def may_act_for(self, subscriber: str) -> bool:
        """Return whether the caller may read and change the data of a subscriber."""
        is_own = self.has_scope(Scope.SUBSCRIBE) and self.subscriber == subscriber
        return self.is_administrator or is_own

    def resolve_subscriber(self, named: str | None) -> str:
        """Return the subscriber of a request: the token's own, or the one that an administrator names.

        For another subscriber the error is the same whether that subscriber exists or not.
        """
        subscriber = named if named is not None else self.subscriber
        if subscriber is None:
            hint = "a token without a subscriber of its own has to name one"
            raise InputError("the subscriber is missing", where="subscriber", hint=hint)
        if not self.may_act_for(subscriber):
            raise NotAllowed("this token is for another subscriber", accepted=self.subscriber)
        return subscriber if subscriber == self.subscriber else self.names.resolve(subscriber)


@dataclass(frozen=True, slots=True)
class NewToken:
    """A new token. `secret` is the token itself, which cannot be shown again."""

    secret: str
    token: Token


class Access:
    """The tokens of a store."""

    def __init__(self, store: Store) -> None:
        self._store, self._tokens = store, store.tokens

    def make(
        self, name: str, scopes: Collection[str], subscriber: str | None = None, expires_in: str | None = None
    ) -> NewToken:
        """Make a token with these scopes; `expires_in` is how long it is valid, for example `30 days`."""
        _check_scopes(scopes, subscriber)
        resolved = subscriber and SubscriberNames(self._store).resolve(subscriber)
        end = None if expires_in is None else utc_now() + timedelta(seconds=durations.parse(expires_in))
        secret = _generate_secret()
        token = Token("", name, resolved, frozenset(scopes), "", format_instant(end) if end else None)
        return NewToken(secret, self._tokens.keep(secret, token))

    def make_first_administrator(self, file: Path) -> NewToken | None:
        """Make the first administrator's token and write it to a file that only its owner can read.

        Return None if there ever was an administrator's token, a revoked one included.
        """
        secret = _generate_secret()
        first = Token("", "administrator", None, frozenset({Scope.ADMINISTER}), "")
        stored = self._tokens.keep_first(secret, first, lambda: _write_secret(file, secret))
        return NewToken(secret, stored) if stored else None

    def authenticate(self, secret: str) -> Caller | None:
        """Return the caller with a token; None if the token is invalid, expired or revoked."""
        token = self._tokens.find(secret) if secret.startswith(TOKEN_PREFIX) else None
        return self._caller(token) if token else None

    def authenticate_all(self, secrets: Collection[str]) -> dict[str, Caller]:
        """Authenticate several tokens at once; return the callers with valid tokens, by token."""
        tokens = self._tokens.find_all([secret for secret in secrets if secret.startswith(TOKEN_PREFIX)])
        return {secret: self._caller(token) for secret, token in tokens.items()}

    def find_cached(self, secret: str) -> Caller | None:
        """Return the caller if the token was valid at the last read from the store.

        The transaction that serves the request has to check that it still is.
        """
        token = self._tokens.find_cached(secret)
        return self._caller(token) if token else None

    def _caller(self, token: Token) -> Caller:
        return Caller(token, SubscriberNames(self._store))

    def list(self, subscriber: str | None = None) -> list[Token]:
        return self._tokens.list(subscriber)

    def revoke(self, id: str) -> bool:
        return self._tokens.revoke(id)


def _write_secret(file: Path, secret: str) -> None:
    """Write a secret that only the owner of the file can read, whatever the mode of an existing file."""
    try:
        private_folder(file.parent)
        file.unlink(missing_ok=True)
        write_atomically(file, secret + "\n", private=True)
    except OSError as problem:
        message = "the administrator's token cannot be written"
        raise SetupError(message, where=str(file), received=problem.strerror) from problem


def _generate_secret() -> str:
    return TOKEN_PREFIX + secrets.token_urlsafe(32)


def _check_scopes(scopes: Collection[str], subscriber: str | None) -> None:
    unknown = sorted(set(scopes) - set(Scope))
    if not scopes:
        raise InputError("a token needs a scope", accepted=", ".join(Scope))
    if unknown:
        received = ", ".join(unknown)
        raise InputError("unknown scope of a token", received=received, accepted=", ".join(Scope))
    if Scope.SUBSCRIBE in scopes and subscriber is None:
        message = "a token with the scope subscribe needs a subscriber"
        raise InputError(message, hint="name the subscriber with --as NAME")

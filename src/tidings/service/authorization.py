"""Who may do what: tokens with scopes, each for one subscriber or for none.

    publish       put publications into the journal
    subscribe     one subscriber's subscriptions, notifications and deliveries, and nobody else's
    administer    everything, for everybody

A token is shown once, when it is made. It can have an end, and it can be revoked. The first administrator's is written
to a file in the home folder: what a service prints ends in the logs of its machine.
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
"""So that whoever finds one in a log or a commit knows what it is."""

ADMINISTRATOR_FILE = "administrator.token"
"""In the home folder: the token of the first administrator."""


class Scope(StrEnum):
    """What a token is for."""

    PUBLISH = "publish"
    SUBSCRIBE = "subscribe"
    ADMINISTER = "administer"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, as their token says. `names` resolves those that an administrator gives."""

    token: Token
    names: SubscriberNames = field(compare=False, repr=False)

    @property
    def is_administrator(self) -> bool:
        return Scope.ADMINISTER in self.token.scopes

    @property
    def subscriber(self) -> str | None:
        """Whose subscriptions the token is for; an administrator's may be for nobody's in particular."""
        return self.token.subscriber

    def may(self, scope: Scope) -> bool:
        return self.is_administrator or scope in self.token.scopes

    def stands_for(self, subscriber: str) -> bool:
        """Whether what belongs to a subscriber is this caller's to see and to change."""
        own = self.may(Scope.SUBSCRIBE) and self.subscriber == subscriber
        return self.is_administrator or own

    def acting_as(self, named: str | None) -> str:
        """The subscriber that a request is about: the token's own, or the one an administrator names.

        Another's is refused in the same words whether there is one of this name or not.
        """
        subscriber = named if named is not None else self.subscriber
        if subscriber is None:
            raise InputError("for whom?", where="subscriber", hint="an administrator names the subscriber")
        if not self.stands_for(subscriber):
            raise NotAllowed("this token is for another subscriber", accepted=self.subscriber)
        return subscriber if subscriber == self.subscriber else self.names.resolve(subscriber)


@dataclass(frozen=True, slots=True)
class NewToken:
    """A new token. `secret` is the token itself: nobody can show it again."""

    secret: str
    token: Token


class Access:
    """The tokens of a store."""

    def __init__(self, store: Store) -> None:
        self._store, self._tokens = store, store.tokens

    def make(
        self, name: str, scopes: Collection[str], subscriber: str | None = None, lasting: str | None = None
    ) -> NewToken:
        """A token for these scopes; `lasting` is how long it is good for, `30 days` say."""
        wanted = _checked(scopes, subscriber)
        resolved = subscriber and SubscriberNames(self._store).resolve(subscriber)
        return self._made(name, wanted, resolved, lasting)

    def begin(self, file: Path) -> NewToken | None:
        """Make the administrator's token and write it to a file that only its owner can read.

        Nothing is made if there ever was an administrator's token, a revoked one included.
        """
        secret = _drawn()
        first = Token("", "administrator", None, frozenset({Scope.ADMINISTER}), "")
        kept = self._tokens.keep_first(secret, first, lambda: _write_secret(file, secret))
        return NewToken(secret, kept) if kept else None

    def who(self, secret: str) -> Caller | None:
        """Whoever a token is of, if it is good now."""
        found = self._tokens.find(secret) if secret.startswith(TOKEN_PREFIX) else None
        return self._caller(found) if found else None

    def who_all(self, secrets: Collection[str]) -> dict[str, Caller]:
        """The same for several at once: those who are good now, by their tokens."""
        found = self._tokens.find_all([secret for secret in secrets if secret.startswith(TOKEN_PREFIX)])
        return {secret: self._caller(token) for secret, token in found.items()}

    def presumably(self, secret: str) -> Caller | None:
        """Whoever a token is of, if it was good when the store was last asked. Whether it is now has to be asked in the
        transaction that does what they want.
        """
        found = self._tokens.known(secret)
        return self._caller(found) if found else None

    def _caller(self, token: Token) -> Caller:
        return Caller(token, SubscriberNames(self._store))

    def list(self, subscriber: str | None = None) -> list[Token]:
        return self._tokens.list(subscriber)

    def revoke(self, id: str) -> bool:
        return self._tokens.revoke(id)

    def _made(
        self, name: str, scopes: frozenset[str], subscriber: str | None, lasting: str | None
    ) -> NewToken:
        end = None if lasting is None else utc_now() + timedelta(seconds=durations.parse(lasting))
        secret = _drawn()
        token = Token("", name, subscriber, scopes, "", format_instant(end) if end else None)
        return NewToken(secret, self._tokens.keep(secret, token))


def _write_secret(file: Path, secret: str) -> None:
    """Write a secret for the owner of the file alone, whatever the mode of a file that was there."""
    try:
        private_folder(file.parent)
        file.unlink(missing_ok=True)
        write_atomically(file, secret + "\n", private=True)
    except OSError as problem:
        what = "the administrator's token cannot be written"
        raise SetupError(what, where=str(file), received=problem.strerror) from problem


def _drawn() -> str:
    return TOKEN_PREFIX + secrets.token_urlsafe(32)


def _checked(scopes: Collection[str], subscriber: str | None) -> frozenset[str]:
    accepted = ", ".join(Scope)
    unknown = sorted(set(scopes) - set(Scope))
    if unknown or not scopes:
        raise InputError(
            "this is no scope of a token", received=", ".join(unknown) or "none", accepted=accepted
        )
    if Scope.SUBSCRIBE in scopes and subscriber is None:
        raise InputError("a token to subscribe is for somebody", hint="name the subscriber with --as NAME")
    return frozenset(scopes)

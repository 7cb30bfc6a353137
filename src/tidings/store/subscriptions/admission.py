"""Admission of subscriptions into the store: each is added, found unchanged, or refused.

An id names one thing: an active subscription, a paused one, or a rule. The subscriptions of a subscriber are counted
once for all that are offered together. The number of active ones is cached with its version, because counting ten
thousand takes longer than adding one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import NamedTuple

from sqlalchemy import Column, Connection, select

from tidings.core import durations
from tidings.errors import IdConflict, InputError, LimitExceeded, pointing
from tidings.metadata.sql.tables import metadata_rules
from tidings.model import Subscription
from tidings.store import bulk, counters, names
from tidings.store.subscriptions import view
from tidings.store.tables import paused, subscriptions

COLUMNS = (
    subscriptions.c.id,
    subscriptions.c.subscriber,
    subscriptions.c.language,
    subscriptions.c.text,
    subscriptions.c.within,
)
IS_LIVE = subscriptions.c.removed.is_(None)
_LIVING = select(*COLUMNS).where(IS_LIVE)


def find_live(connection: Connection, ids: Collection[str]) -> Iterator[Subscription]:
    """Yield the active subscriptions among these ids, in the caller's transaction."""
    return (
        Subscription(*row) for row in bulk.select_among(connection, _LIVING, subscriptions.c.id, set(ids))
    )


def subscription_row(subscription: Subscription, version: int) -> tuple[object, ...]:
    """Build the row of a subscription that is added in a version; raise if a database cannot store it."""
    names.check("a subscription's id", subscription.id, "/id")
    names.check("a subscriber's name", subscription.subscriber, "/subscriber")
    with pointing("/within"):
        within = None if subscription.within is None else durations.check(subscription.within)
    return (
        version,
        subscription.id,
        subscription.subscriber,
        subscription.language,
        check_text(subscription),
        None,
        within,
    )


def check_text(subscription: Subscription) -> str:
    """Return the text; raise if a database cannot store it."""
    return names.check_text("a subscription's text", subscription.text, "/text")


REMEMBERED = 1_000
"""Maximum number of subscribers whose counts are cached."""


@dataclass(frozen=True, slots=True)
class AddedSubscription:
    """An active subscription; `new` is false if it existed before."""

    id: str
    new: bool


def limit_error(most: int) -> LimitExceeded:
    """Make the error for a subscriber at the limit."""
    accepted, hint = f"{most:,} for each subscriber", "remove some first"
    return LimitExceeded("too many subscriptions", accepted=accepted, hint=hint)


def id_conflict_error(id: str, owner: str, subscriber: str) -> IdConflict:
    """Make the error for an id that is in use; only its owner learns the text."""
    if owner != subscriber:
        return names.id_taken_error(id)
    hint = "give it an id of its own, leave the id out, or unsubscribe first"
    return _about_id(IdConflict(f"the id '{id}' is already used for another subscription", hint=hint))


@dataclass
class SubscriptionQuota:
    """The limit per subscriber, and the counts of active and other subscriptions."""

    most: int
    live: dict[str, int]
    others: Mapping[str, int]

    def count(self, subscriber: str) -> None:
        """Count one more, or raise at the limit."""
        live = self.live.get(subscriber, 0)
        if live + self.others.get(subscriber, 0) >= self.most:
            raise limit_error(self.most)
        self.live[subscriber] = live + 1


class LiveCounts(NamedTuple):
    """Numbers of active subscriptions by subscriber, as of a version."""

    version: int = -1
    live: Mapping[str, int] = {}


class LiveCountCache:
    """The last known counts. A writer knows the counts after its own change, and a version has one writer."""

    def __init__(self) -> None:
        self._lock, self._counts = Lock(), LiveCounts()

    def counts_at(self, version: int) -> Mapping[str, int]:
        counts = self._counts
        return counts.live if counts.version == version else {}

    def keep(self, before: int, counts: LiveCounts) -> None:
        """Store new counts; those of version `before` stay valid, because no other writer came in between."""
        with self._lock:
            if counts.version < self._counts.version:
                return  # a later writer was faster
            live = {**self.counts_at(before), **counts.live}
            self._counts = counts._replace(live=live if len(live) <= REMEMBERED else counts.live)


class ConflictingUse(NamedTuple):
    """Another use of an id: its owner, and the error for the owner."""

    owner: str
    problem: IdConflict


@dataclass
class Admission:
    """The subscriptions of one transaction: the uses of their ids, and the new rows."""

    version: int
    quota: SubscriptionQuota | None
    existing: dict[str, Subscription]
    conflicts: Mapping[str, ConflictingUse]
    rows: list[tuple[object, ...]] = field(default_factory=list)

    def admit(self, subscription: Subscription) -> AddedSubscription:
        """Admit a subscription with an id, or raise."""
        if subscription.id in self.conflicts:
            owner, problem = self.conflicts[subscription.id]
            raise problem if owner == subscription.subscriber else names.id_taken_error(subscription.id)
        if subscription.id in self.existing:
            if self.existing[subscription.id] != subscription:
                raise id_conflict_error(
                    subscription.id, self.existing[subscription.id].subscriber, subscription.subscriber
                )
            return AddedSubscription(subscription.id, new=False)
        row = subscription_row(subscription, self.version)
        if self.quota is not None:
            self.quota.count(subscription.subscriber)
        self.existing[subscription.id] = subscription
        self.rows.append(row)
        return AddedSubscription(subscription.id, new=True)

    def is_taken(self, id: str) -> bool:
        return id in self.existing or id in self.conflicts


def admit_subscriptions(
    connection: Connection,
    offered: Sequence[Subscription],
    most: int | None = None,
    remembered: LiveCountCache | None = None,
) -> tuple[list[AddedSubscription | InputError], Callable[[], None]]:
    """Return an outcome for each subscription, and a function to call after the commit."""
    last = counters.lock(connection, "subscriptions")
    live_counts = remembered.counts_at(last) if remembered else {}
    quota = None if most is None else _quota(connection, offered, most, live_counts)
    admission, named = _begin(connection, offered, last + 1, quota, _find_active_conflicts)
    outcomes = [_outcome(admission, one) for one in named]
    if admission.rows:
        bulk.insert_rows(connection, subscriptions, admission.rows)
        counters.advance(connection, "subscriptions", last + 1)

    def remember() -> None:
        if remembered is not None and quota is not None:
            remembered.keep(last, LiveCounts(last + bool(admission.rows), quota.live))

    return outcomes, remember


def admit_paused(
    connection: Connection, offered: Sequence[Subscription], time: str, most: int | None = None
) -> list[AddedSubscription | InputError]:
    """Add subscriptions that start paused; the stream sees no change."""
    last = counters.lock(connection, "subscriptions")
    quota = None if most is None else _quota(connection, offered, most, {})
    admission, named = _begin(connection, offered, last, quota, _find_paused_conflicts)
    outcomes = [_outcome(admission, one) for one in named]
    rows = [
        (id, owner, language, text, within, time, None)
        for _, id, owner, language, text, _, within in admission.rows
    ]
    if rows:
        bulk.insert_rows(connection, paused, rows)
    return outcomes


def _outcome(admission: Admission, subscription: Subscription) -> AddedSubscription | InputError:
    try:
        return admission.admit(subscription)
    except InputError as problem:
        return problem.with_traceback(None)  # a hundred thousand tracebacks would fill the memory


def add_subscriptions(connection: Connection, offered: Sequence[Subscription]) -> list[str]:
    """Add all subscriptions in the caller's transaction and return their ids, or raise."""
    outcomes, _ = admit_subscriptions(connection, offered)
    return [unwrap_outcome(outcome).id for outcome in outcomes]


def refuse_taken_ids(connection: Connection, ids: Collection[str], owner: str) -> None:
    """Refuse ids of rules that are those of a subscription, active or paused."""
    for subscription in find_live(connection, ids):
        raise id_conflict_error(subscription.id, subscription.subscriber, owner)
    for id, whose in _owners(connection, paused.c.id, paused.c.subscriber, ids).items():
        raise _is_paused(id) if whose == owner else names.id_taken_error(id)


def admit_rules(connection: Connection, ids: Collection[str], owner: str, most: int | None = None) -> None:
    """Refuse rules that the caller's transaction has added, if an id is in use or their owner exceeds the limit.

    The lock keeps other writers out until the transaction ends.
    """
    counters.lock(connection, "subscriptions")
    refuse_taken_ids(connection, ids, owner)
    if most is not None and view.count(connection, owner) > most:
        raise limit_error(most)


def unwrap_outcome(outcome: AddedSubscription | InputError) -> AddedSubscription:
    """Return an outcome, or raise it if it is an error."""
    if isinstance(outcome, InputError):
        raise outcome
    return outcome


ConflictLookup = tuple[dict[str, Subscription], Mapping[str, ConflictingUse]]
"""The uses of some ids: existing subscriptions of the same state, and conflicts."""


def _begin(
    connection: Connection,
    offered: Sequence[Subscription],
    version: int,
    quota: SubscriptionQuota | None,
    find_conflicts: Callable[[Connection, Collection[str]], ConflictLookup],
) -> tuple[Admission, list[Subscription]]:
    """Start an admission; return it with the subscriptions, each with an id.

    Unprintable ids are refused later; a database could not even look up all of them.
    """
    named = [subscription if subscription.id else _named(subscription, 8) for subscription in offered]
    printable = [subscription.id for subscription in named if subscription.id.isprintable()]
    admission = Admission(version, quota, *find_conflicts(connection, printable))
    seen = {subscription.id for subscription in offered if subscription.id}
    for i, subscription in enumerate(named):
        if not offered[i].id and (subscription.id in seen or admission.is_taken(subscription.id)):
            named[i] = _named(subscription, 16)
        seen.add(named[i].id)
    return admission, named


def _named(subscription: Subscription, digits: int) -> Subscription:
    return replace(subscription, id=names.new_id("r" if subscription.language == view.RULES else "s", digits))


def _find_active_conflicts(connection: Connection, ids: Collection[str]) -> ConflictLookup:
    """Find conflicts of new active subscriptions: rules, and paused ones, which keep their ids."""
    rules = _owners(connection, *_RULES, ids)
    sleeping = _owners(connection, paused.c.id, paused.c.subscriber, ids)
    conflicts = {
        id: ConflictingUse(owner, id_conflict_error(id, owner, owner)) for id, owner in rules.items()
    }
    conflicts |= {id: ConflictingUse(owner, _is_paused(id)) for id, owner in sleeping.items()}
    return {one.id: one for one in find_live(connection, ids)}, conflicts


def _find_paused_conflicts(connection: Connection, ids: Collection[str]) -> ConflictLookup:
    """Find conflicts of new paused subscriptions: active ones and rules."""
    rows = bulk.select_among(connection, _PAUSED, paused.c.id, ids)
    paused_by_id = {subscription.id: subscription for subscription in (Subscription(*row) for row in rows)}
    active = _owners(connection, *_RULES, ids) | {
        subscription.id: subscription.subscriber for subscription in find_live(connection, ids)
    }
    return paused_by_id, {id: ConflictingUse(owner, _is_active(id)) for id, owner in active.items()}


_PAUSED = select(paused.c.id, paused.c.subscriber, paused.c.language, paused.c.text, paused.c.within)
_RULES = metadata_rules.c.name, metadata_rules.c.owner


def _owners(
    connection: Connection, column: Column[str], owner: Column[str], ids: Collection[str]
) -> dict[str, str]:
    """Return the owners of existing ids; an empty table, as in most stores, spares the lookups."""
    if not ids or connection.execute(select(column).limit(1)).first() is None:
        return {}
    return dict(tuple(row) for row in bulk.select_among(connection, select(column, owner), column, ids))


def _quota(
    connection: Connection, offered: Sequence[Subscription], most: int, known_counts: Mapping[str, int]
) -> SubscriptionQuota:
    # Unprintable names are refused in any case.
    subscribers = {one.subscriber for one in offered if one.subscriber.isprintable()}
    counted = view.live_counts(connection, subscribers - known_counts.keys())
    live = {
        name: known_counts[name] if name in known_counts else counted.get(name, 0) for name in subscribers
    }
    return SubscriptionQuota(most, live, view.other_counts(connection, subscribers))


def _is_paused(id: str) -> IdConflict:
    hint = "resume or remove that one, or leave the id out"
    return _about_id(IdConflict(f"the id '{id}' is used for a subscription that is paused", hint=hint))


def _is_active(id: str) -> IdConflict:
    hint = "pause or remove that one, or leave the id out"
    return _about_id(IdConflict(f"the id '{id}' is used for a subscription that is active", hint=hint))


def _about_id(problem: IdConflict) -> IdConflict:
    problem.pointer = "/id"
    return problem

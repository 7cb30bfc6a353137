"""Subscriptions on their way into the store, each for itself: one that is new, one that is there already, or why not.

An id names one thing, a subscription that lives, one that is paused, or a rule. How many a subscriber has is counted
once for all that are offered together; and how many live is remembered with the version it was so in, because to count
ten thousand takes longer than to add one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import NamedTuple

from sqlalchemy import Column, Connection, select

from tidings.core import durations
from tidings.errors import IdTaken, InputError, OverLimit, pointing
from tidings.metadata.sql.tables import metadata_rules
from tidings.model import Subscription
from tidings.store import bulk, counters, names
from tidings.store.subscriptions import view
from tidings.store.tables import paused, subscriptions

# Rows of subscriptions: what is in them, and those that live.


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
    """Those of these that live, in the caller's transaction."""
    return (
        Subscription(*row) for row in bulk.select_among(connection, _LIVING, subscriptions.c.id, set(ids))
    )


def subscription_row(one: Subscription, version: int) -> tuple[object, ...]:
    """A subscription as a row that is added in a version, if every database can keep it."""
    names.check("a subscription's id", one.id, "/id")
    names.check("a subscriber's name", one.subscriber, "/subscriber")
    with pointing("/within"):
        within = None if one.within is None else durations.check(one.within)
    return version, one.id, one.subscriber, one.language, check_text(one), None, within


def check_text(one: Subscription) -> str:
    """Its text, if every database can keep it."""
    return names.check_text("a subscription's text", one.text, "/text")


REMEMBERED = 1_000
"""Of how many subscribers it is remembered how many they have."""


@dataclass(frozen=True, slots=True)
class AddedSubscription:
    """A subscription that lives now; `new` is false if it was there before."""

    id: str
    new: bool


def limit_error(most: int) -> OverLimit:
    """What is said to somebody who has as many as there may be."""
    accepted, hint = f"{most:,} for each subscriber", "remove some first"
    return OverLimit("too many subscriptions", accepted=accepted, hint=hint)


def id_conflict_error(id: str, owner: str, whoever: str) -> IdTaken:
    """What is said to whoever wants an id that stands for something else of its owner's."""
    if owner != whoever:
        return names.id_taken_error(id)
    hint = "give it an id of its own, leave the id out, or unsubscribe first"
    return _about_id(IdTaken(f"the id '{id}' is already used for another subscription", hint=hint))


@dataclass
class SubscriptionQuota:
    """How many each subscriber may have, and has: those that live, and the others."""

    most: int
    live: dict[str, int]
    others: Mapping[str, int]

    def take(self, subscriber: str) -> None:
        """One more, or a refusal."""
        live = self.live.get(subscriber, 0)
        if live + self.others.get(subscriber, 0) >= self.most:
            raise limit_error(self.most)
        self.live[subscriber] = live + 1


class LiveCounts(NamedTuple):
    """How many live ones some subscribers have, as of a version."""

    version: int = -1
    live: Mapping[str, int] = {}


class LiveCountCache:
    """The last that was known. Whoever adds something knows how many there are afterwards, and nobody else can have
    changed it in the same version.
    """

    def __init__(self) -> None:
        self._lock, self._known = Lock(), LiveCounts()

    def at(self, version: int) -> Mapping[str, int]:
        known = self._known
        return known.live if known.version == version else {}

    def keep(self, before: int, known: LiveCounts) -> None:
        """What is known by now. What was known in the version `before` is so still: whoever tells this has changed
        nothing else, and nobody else could.
        """
        with self._lock:
            if known.version < self._known.version:
                return  # somebody was faster, and knows better
            live = {**self.at(before), **known.live}
            self._known = known._replace(live=live if len(live) <= REMEMBERED else known.live)


class IdConflict(NamedTuple):
    """What an id stands for otherwise: whose it is, and what its owner is told."""

    owner: str
    problem: IdTaken


@dataclass
class Admission:
    """What is offered together, in one transaction: what ids stand for by now, and the rows that are added."""

    version: int
    room: SubscriptionQuota | None
    known: dict[str, Subscription]
    otherwise: Mapping[str, IdConflict]
    rows: list[tuple[object, ...]] = field(default_factory=list)

    def take(self, one: Subscription) -> AddedSubscription:
        """One that has an id, or a refusal."""
        if one.id in self.otherwise:
            owner, problem = self.otherwise[one.id]
            raise problem if owner == one.subscriber else names.id_taken_error(one.id)
        if one.id in self.known:
            if self.known[one.id] != one:
                raise id_conflict_error(one.id, self.known[one.id].subscriber, one.subscriber)
            return AddedSubscription(one.id, new=False)
        made = subscription_row(one, self.version)
        if self.room is not None:
            self.room.take(one.subscriber)
        self.known[one.id] = one
        self.rows.append(made)
        return AddedSubscription(one.id, new=True)

    def is_taken(self, id: str) -> bool:
        return id in self.known or id in self.otherwise


def admit_subscriptions(
    connection: Connection,
    offered: Sequence[Subscription],
    most: int | None = None,
    remembered: LiveCountCache | None = None,
) -> tuple[list[AddedSubscription | InputError], Callable[[], None]]:
    """An outcome for each, and what is to be done when they are durable."""
    last = counters.lock(connection, "subscriptions")
    known = remembered.at(last) if remembered else {}
    room = None if most is None else _room(connection, offered, most, known)
    offering, named = _begin(connection, offered, last + 1, room, _at_work)
    outcomes = [_outcome(offering, one) for one in named]
    if offering.rows:
        bulk.insert_rows(connection, subscriptions, offering.rows)
        counters.advance(connection, "subscriptions", last + 1)

    def remember() -> None:
        if remembered is not None and room is not None:
            remembered.keep(last, LiveCounts(last + bool(offering.rows), room.live))

    return outcomes, remember


def admit_paused(
    connection: Connection, offered: Sequence[Subscription], time: str, most: int | None = None
) -> list[AddedSubscription | InputError]:
    """The same for what is to be paused from the beginning: to the stream nothing happens."""
    last = counters.lock(connection, "subscriptions")
    room = None if most is None else _room(connection, offered, most, {})
    offering, named = _begin(connection, offered, last, room, _at_rest)
    outcomes = [_outcome(offering, one) for one in named]
    rows = [
        (id, owner, language, text, within, time, None)
        for _, id, owner, language, text, _, within in offering.rows
    ]
    if rows:
        bulk.insert_rows(connection, paused, rows)
    return outcomes


def _outcome(offering: Admission, one: Subscription) -> AddedSubscription | InputError:
    try:
        return offering.take(one)
    except InputError as problem:
        return problem.with_traceback(None)  # of a hundred thousand, these would be most of the memory


def add_subscriptions(connection: Connection, offered: Sequence[Subscription]) -> list[str]:
    """The ids of all of them, if none is refused: in the caller's transaction, which ends then."""
    outcomes, _ = admit_subscriptions(connection, offered)
    return [unwrap_outcome(outcome).id for outcome in outcomes]


def refuse_taken_ids(connection: Connection, ids: Collection[str], owner: str) -> None:
    """Refuse ids for rules that stand for a subscription, active or paused."""
    for one in find_live(connection, ids):
        raise id_conflict_error(one.id, one.subscriber, owner)
    for id, whose in _owners(connection, paused.c.id, paused.c.subscriber, ids).items():
        raise _is_paused(id) if whose == owner else names.id_taken_error(id)


def admit_rules(connection: Connection, ids: Collection[str], owner: str, most: int | None = None) -> None:
    """Refuse rules that were added just now, in the caller's transaction, which ends then: if one of their ids stands
    for something else as well, or if their owner has more than may be. Nobody else adds anything until it ends.
    """
    counters.lock(connection, "subscriptions")
    refuse_taken_ids(connection, ids, owner)
    if most is not None and view.count(connection, owner) > most:
        raise limit_error(most)


def unwrap_outcome(outcome: AddedSubscription | InputError) -> AddedSubscription:
    """An outcome, if it is no refusal."""
    if isinstance(outcome, InputError):
        raise outcome
    return outcome


ConflictLookup = tuple[dict[str, Subscription], Mapping[str, IdConflict]]
"""What some ids stand for: subscriptions such as are offered, and what they stand for otherwise."""


def _begin(
    connection: Connection,
    offered: Sequence[Subscription],
    version: int,
    room: SubscriptionQuota | None,
    standing: Callable[[Connection, Collection[str]], ConflictLookup],
) -> tuple[Admission, list[Subscription]]:
    """The offering, and the subscriptions with ids: those that had none have one that nobody else has.

    What cannot be shown is no id, and is refused when its turn comes; a database could not even be asked for all of it.
    """
    given = {one.id for one in offered if one.id}
    named = [one if one.id else _named(one, 8) for one in offered]
    offering = Admission(
        version, room, *standing(connection, [one.id for one in named if one.id.isprintable()])
    )
    seen = set(given)
    for i, one in enumerate(named):
        if not offered[i].id and (one.id in seen or offering.is_taken(one.id)):
            named[i] = _named(one, 16)
        seen.add(named[i].id)
    return offering, named


def _named(one: Subscription, digits: int) -> Subscription:
    return replace(one, id=names.new_id("r" if one.language == view.RULES else "s", digits))


def _at_work(connection: Connection, ids: Collection[str]) -> ConflictLookup:
    """Of what is to live, ids stand otherwise for a rule, or for what is paused, which keeps its id."""
    rules = _owners(connection, *_RULES, ids)
    asleep = _owners(connection, paused.c.id, paused.c.subscriber, ids)
    otherwise = {id: IdConflict(owner, id_conflict_error(id, owner, owner)) for id, owner in rules.items()}
    otherwise |= {id: IdConflict(owner, _is_paused(id)) for id, owner in asleep.items()}
    return {one.id: one for one in find_live(connection, ids)}, otherwise


def _at_rest(connection: Connection, ids: Collection[str]) -> ConflictLookup:
    """Of what is to be paused, ids stand otherwise for what lives."""
    found = bulk.select_among(connection, _PAUSED, paused.c.id, ids)
    known = {one.id: one for one in (Subscription(*each) for each in found)}
    lives = _owners(connection, *_RULES, ids) | {one.id: one.subscriber for one in find_live(connection, ids)}
    return known, {id: IdConflict(owner, _is_active(id)) for id, owner in lives.items()}


_PAUSED = select(paused.c.id, paused.c.subscriber, paused.c.language, paused.c.text, paused.c.within)


_RULES = metadata_rules.c.name, metadata_rules.c.owner


def _owners(
    connection: Connection, column: Column[str], owner: Column[str], ids: Collection[str]
) -> dict[str, str]:
    """Whose some of the ids are. Most stores have no rules and nothing paused, and many ids are not looked for then."""
    if not ids or connection.execute(select(column).limit(1)).first() is None:
        return {}
    found = bulk.select_among(connection, select(column, owner), column, ids)
    return dict(tuple(row) for row in found)


def _room(
    connection: Connection, offered: Sequence[Subscription], most: int, known: Mapping[str, int]
) -> SubscriptionQuota:
    # Others are refused whatever there is room for, as ids that cannot be shown are.
    subscribers = {one.subscriber for one in offered if one.subscriber.isprintable()}
    counted = view.live_counts(connection, subscribers - known.keys())
    live = {name: known[name] if name in known else counted.get(name, 0) for name in subscribers}
    return SubscriptionQuota(most, live, view.other_counts(connection, subscribers))


def _is_paused(id: str) -> IdTaken:
    hint = "resume or remove that one, or leave the id out"
    return _about_id(IdTaken(f"the id '{id}' is used for a subscription that is paused", hint=hint))


def _is_active(id: str) -> IdTaken:
    hint = "pause or remove that one, or leave the id out"
    return _about_id(IdTaken(f"the id '{id}' is used for a subscription that is active", hint=hint))


def _about_id(problem: IdTaken) -> IdTaken:
    problem.pointer = "/id"
    return problem

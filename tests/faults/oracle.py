"""Checks of the final state, whatever was killed in between."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence

from tests.faults.clients import AcceptedPublication, Call, Version
from tests.spark import workload
from tidings.events.json_decoder import decode
from tidings.events.predicate_compiler import parse_and_check
from tidings.events.reference_matcher import matches
from tidings.model import Subscription
from tidings.store.store import Store

FOREVER = float("inf")
StoredNotifications = dict[str, list[tuple[int, str, str, str]]]
"""By subscriber: number, id, publication and subscription of all notifications."""


def check_journal(store: Store, accepted: Sequence[AcceptedPublication]) -> None:
    """Check that the journal has each acknowledged publication once, at its acknowledged position, and no other."""
    journal = [(one.position, one.id, one.body) for one in store.journal.read(0)]
    assert [position for position, *_ in journal] == list(range(1, len(journal) + 1))
    assert sorted(journal) == sorted((one.position, one.id, one.body) for one in accepted)


def notifications(store: Store, subscribers: Iterable[str]) -> StoredNotifications:
    by_subscriber: StoredNotifications = {}
    for subscriber in subscribers:
        by_subscriber[subscriber], after = [], 0
        while page := store.notifications.read(subscriber, after):
            by_subscriber[subscriber] += [
                (one.sequence, one.id, one.publication, one.subscription) for one in page
            ]
            after = page[-1].sequence
        assert [number for number, *_ in by_subscriber[subscriber]] == list(
            range(1, len(by_subscriber[subscriber]) + 1)
        ), subscriber
        assert not [
            pair for pair, count in Counter(row[2:] for row in by_subscriber[subscriber]).items() if count > 1
        ]
    return by_subscriber


def check_lasting(
    stored: StoredNotifications, accepted: Sequence[AcceptedPublication], lasting: list[Subscription]
) -> None:
    """Check that subscriptions that existed all the time have exactly the matches of the definition."""
    ids = {one.id for one in lasting}
    pairs = {(row[2], row[3]) for rows in stored.values() for row in rows if row[3] in ids}
    expected = workload.expected({one.id: one.body for one in accepted}, lasting)
    assert pairs == expected, (sorted(expected - pairs)[:5], sorted(pairs - expected)[:5])
    assert {one.subscriber for one in lasting} == set(stored)


def check_edited(
    stored: StoredNotifications,
    accepted: Sequence[AcceptedPublication],
    versions: dict[str, list[Version]],
    owners: dict[str, str],
    positions: Sequence[tuple[float, int]],
) -> int:
    """Check the matches of subscriptions that were edited meanwhile, and return the number of certain ones.

    A publication lies within the life of one text if that text was in force from when it was sent to when it was
    seen to be matched: then it is matched exactly if the text matches. Otherwise some text of that time must match.
    """
    pairs = {(row[2], row[3]) for rows in stored.values() for row in rows}
    for subscriber, rows in stored.items():
        assert not [row for row in rows if row[3] in owners and owners[row[3]] != subscriber]
    trees = {one.text: parse_and_check(one.text) for each in versions.values() for one in each if one.text}
    certain = 0
    for one in accepted:
        event, until = decode(one.body), next((at for at, upto in positions if upto >= one.position), FOREVER)
        for id, history in versions.items():
            possible = {version.text for version in _versions_between(history, one.sent, until)}
            fits = {text is not None and matches(trees[text], event) for text in possible}
            if len(fits) == 1:
                assert ((one.id, id) in pairs) == fits.pop(), (one, id, history)
                certain += (one.id, id) in pairs
    return certain


def _versions_between(history: list[Version], sent: float, until: float) -> list[Version]:
    """Return the versions that may have been in force at some moment between; before the first, there was none."""
    ends = [*(version.finished for version in history), FOREVER]
    all = [Version(None, 0.0, 0.0), *history]
    return [
        version for version, end in zip(all, ends, strict=True) if version.started <= until and end >= sent
    ]


def check_followed(stored: StoredNotifications, subscriber: str, received: Sequence[tuple[int, str]]) -> None:
    """Check that a client received all notifications once and in order."""
    expected = [(number, id) for number, id, *_ in stored[subscriber]]
    assert list(received) == expected, (
        subscriber,
        len(received),
        len(expected),
        _first_difference(received, expected),
    )


def _first_difference(received: Sequence[object], expected: Sequence[object]) -> object:
    pairs = zip(received, expected, strict=False)
    return next((pair for pair in enumerate(pairs) if pair[1][0] != pair[1][1]), "one is longer")


def check_webhooks(stored: StoredNotifications, calls: Sequence[Call]) -> Counter[str]:
    """Check that each notification was accepted at least once, in the order of its subscription, under one id, and
    never after it was recorded as delivered.
    """
    counts: Counter[str] = Counter()
    for subscriber, rows in stored.items():
        for subscription in {row[3] for row in rows}:
            numbers = [row[0] for row in rows if row[3] == subscription]
            own = [
                each for each in calls if (each.destination, each.subscription) == (subscriber, subscription)
            ]
            first = list(dict.fromkeys(number for each in own for number in each.numbers))
            assert first == numbers, (subscriber, subscription, first[:5], numbers[:5])
            assert {n for each in own if each.accepted for n in each.numbers} == set(numbers)
            _check_ids(own)
            place = {number: i for i, number in enumerate(numbers, 1)}
            for each in own:
                late = each.recorded is not None and place[each.numbers[0]] <= each.recorded
                assert not late, (each, "was recorded as delivered")
                counts["again"] += each.recorded is not None
            counts["calls"] += len(own)
    return counts


def _check_ids(calls: Sequence[Call]) -> None:
    ids: dict[tuple[int, ...], str] = {}
    single: dict[int, tuple[int, ...]] = {}
    for each in calls:
        assert ids.setdefault(each.numbers, each.id) == each.id, each
        for number in each.numbers:
            assert single.setdefault(number, each.numbers) == each.numbers, each


def last_lines(path, count: int = 12) -> str:
    lines = path.read_text(errors="replace").splitlines()
    relevant = [
        line
        for line in lines
        if '"info"' not in line or json.loads(line)["event"] not in ("request", "batch")
    ]
    return "\n".join(relevant[-count:])

"""What must hold in the end, whatever was killed meanwhile."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence

from tests.faults.people import Call, Sent, Version
from tests.spark import workload
from tidings.events.explanation import matches
from tidings.events.json_decoder import decode
from tidings.events.predicate_compiler import parse_and_check
from tidings.model import Subscription
from tidings.store.store import Store

FOREVER = float("inf")
Told = dict[str, list[tuple[int, str, str, str]]]
"""By subscriber: number, id, publication and subscription of all notifications."""


def check_journal(store: Store, taken: Sequence[Sent]) -> None:
    """Everything that was acknowledged is there once, where it was said to be, and nothing else is."""
    there = [(one.position, one.id, one.body) for one in store.journal.read(0)]
    assert [position for position, *_ in there] == list(range(1, len(there) + 1))
    assert sorted(there) == sorted((one.position, one.id, one.body) for one in taken)


def notifications(store: Store, everybody: Iterable[str]) -> Told:
    found: Told = {}
    for who in everybody:
        found[who], after = [], 0
        while page := store.notifications.read(who, after):
            found[who] += [(one.sequence, one.id, one.publication, one.subscription) for one in page]
            after = page[-1].sequence
        assert [number for number, *_ in found[who]] == list(range(1, len(found[who]) + 1)), who
        assert not [pair for pair, count in Counter(row[2:] for row in found[who]).items() if count > 1]
    return found


def check_lasting(told: Told, taken: Sequence[Sent], lasting: list[Subscription]) -> None:
    """Those that were there all the time have exactly what the definition says."""
    ids = {one.id for one in lasting}
    pairs = {(row[2], row[3]) for rows in told.values() for row in rows if row[3] in ids}
    expected = workload.expected({one.id: one.body for one in taken}, lasting)
    assert pairs == expected, (sorted(expected - pairs)[:5], sorted(pairs - expected)[:5])
    assert {one.subscriber for one in lasting} == set(told)


def check_edited(
    told: Told,
    taken: Sequence[Sent],
    versions: dict[str, list[Version]],
    owners: dict[str, str],
    seen: Sequence[tuple[float, int]],
) -> int:
    """Of those that were edited meanwhile: what lay within the life of one text, from when it was sent to when it was
    seen to be matched, is there if the text matches, and only then; otherwise some text that was there must match.

    How many must be there.
    """
    pairs = {(row[2], row[3]) for rows in told.values() for row in rows}
    for who, rows in told.items():
        assert not [row for row in rows if row[3] in owners and owners[row[3]] != who]
    trees = {one.text: parse_and_check(one.text) for each in versions.values() for one in each if one.text}
    certain = 0
    for one in taken:
        event, until = decode(one.body), next((at for at, upto in seen if upto >= one.position), FOREVER)
        for id, history in versions.items():
            possible = {version.text for version in _between(history, one.sent, until)}
            fits = {text is not None and matches(trees[text], event) for text in possible}
            if len(fits) == 1:
                assert ((one.id, id) in pairs) == fits.pop(), (one, id, history)
                certain += (one.id, id) in pairs
    return certain


def _between(history: list[Version], sent: float, until: float) -> list[Version]:
    """The versions that may have been in force at some moment between; before the first there was none."""
    ends = [*(version.done for version in history), FOREVER]
    all = [Version(None, 0.0, 0.0), *history]
    return [version for version, end in zip(all, ends, strict=True) if version.asked <= until and end >= sent]


def check_followed(told: Told, who: str, heard: Sequence[tuple[int, str]]) -> None:
    """A stream had everything, once and in order."""
    expected = [(number, id) for number, id, *_ in told[who]]
    assert list(heard) == expected, (who, len(heard), len(expected), _first_difference(heard, expected))


def _first_difference(heard: Sequence[object], expected: Sequence[object]) -> object:
    pairs = zip(heard, expected, strict=False)
    return next((pair for pair in enumerate(pairs) if pair[1][0] != pair[1][1]), "one is longer")


def check_webhooks(told: Told, calls: Sequence[Call]) -> Counter[str]:
    """Each notification was taken at least once, in the order of its subscription, under one id, and never after it
    was recorded as delivered.
    """
    counts: Counter[str] = Counter()
    for who, rows in told.items():
        for subscription in {row[3] for row in rows}:
            numbers = [row[0] for row in rows if row[3] == subscription]
            mine = [each for each in calls if (each.destination, each.subscription) == (who, subscription)]
            first = list(dict.fromkeys(number for each in mine for number in each.numbers))
            assert first == numbers, (who, subscription, first[:5], numbers[:5])
            assert {n for each in mine if each.taken for n in each.numbers} == set(numbers)
            _check_ids(mine)
            place = {number: i for i, number in enumerate(numbers, 1)}
            for each in mine:
                late = each.recorded is not None and place[each.numbers[0]] <= each.recorded
                assert not late, (each, "was recorded as delivered")
                counts["again"] += each.recorded is not None
            counts["calls"] += len(mine)
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
    kept = [
        line
        for line in lines
        if '"info"' not in line or json.loads(line)["event"] not in ("request", "batch")
    ]
    return "\n".join(kept[-count:])

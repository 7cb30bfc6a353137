"""Whether decoded documents surely are instances of a schema; of all others the definition decides.

The rules are those of `events.schema.consistency`. A document that seems to break one is declined, and so is one of
which this loop cannot be sure: an attribute with one value that has two (they may be equal), an integer beyond what
doubles tell apart where there are bounds. So there is one meaning, and one wording of what is wrong.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tidings.matching.kernels.bytes import hash_bytes
from tidings.matching.kernels.compiled import inlined, reading
from tidings.matching.kernels.decode.instants import NO_INSTANT, read_instant
from tidings.matching.kernels.decode.json_objects import BOOLEAN, DOUBLE, INTEGER, STRING
from tidings.matching.kernels.decode.names import child

ASK, IS_NUMBER, IS_STRING, IS_BOOLEAN, IS_INSTANT, IS_LISTED = 0, 1, 2, 3, 4, 5
"""What the values of a path have to be; of ASK nothing is known here."""

MANDATORY, MULTIPLE, NAMED = 1, 2, 4
"""What an event type says of an attribute. NAMED is in all of it."""

MOST_TYPES = 16
EVENT_TYPES = 0
_MOST_EXACT = 1 << 53


class Rules(NamedTuple):
    """A schema, by the numbers of paths and of event types.

    `values`, `low` and `high` say what values a path has, and `values_list` in which list they are. `beside` are paths
    that may be in any event. Type i names member_path[member_start[i]:member_start[i + 1]]; `open` are the types whose
    events may have more. `words` are lists of strings; the first list has the names of the types, in their order.
    """

    event_type: Any
    values: Any
    low: Any
    high: Any
    values_list: Any
    beside: Any
    member_start: Any
    member_path: Any
    member_says: Any
    open: Any
    words: Any


class Atoms(NamedTuple):
    """Atoms of documents, as `json_lines.Out` has them; `double` is the payload seen as doubles."""

    starts: Any
    path: Any
    kind: Any
    payload: Any
    double: Any
    length: Any
    text: Any


class Work(NamedTuple):
    """By path, what the types of a document say, and the last documents that had it said and had a value there."""

    says: Any
    said: Any
    seen: Any
    types: Any


@inlined
def _find(words: Any, number: int, text: Any, start: int, length: int) -> Any:
    """Which word of a list stands in the text, or -1."""
    return child(words, number, hash_bytes(text, start, length), text, start, length)


@inlined
def _types(atoms: Atoms, i: int, rules: Rules, work: Work) -> int:
    """Write down the numbers of the document's types; how many there are, 0 if one of them is none."""
    count = 0
    for at in range(atoms.starts[i], atoms.starts[i + 1]):
        if atoms.path[at] == rules.event_type:
            if atoms.kind[at] != STRING or count == MOST_TYPES:
                return 0
            found = _find(rules.words, EVENT_TYPES, atoms.text, atoms.payload[at], atoms.length[at])
            if found < 0:
                return 0
            work.types[count] = found
            count += 1
    return count


@inlined
def _merge(i: int, count: int, rules: Rules, work: Work) -> bool:
    """What the types say together, for each path; whether one of them is open."""
    more = False
    for place in range(count):
        number = work.types[place]
        more |= rules.open[number]
        for at in range(rules.member_start[number], rules.member_start[number + 1]):
            path = rules.member_path[at]
            if work.said[path] != i:
                work.said[path] = i
                work.says[path] = 0
            work.says[path] |= rules.member_says[at]
    return more


@inlined
def _belongs(atoms: Atoms, at: int, path: int, rules: Rules) -> bool:
    """Whether the value is in the domain of its attribute, for sure."""
    kind, wanted = atoms.kind[at], rules.values[path]
    if wanted == IS_NUMBER:
        if kind == DOUBLE:
            return rules.low[path] <= atoms.double[at] <= rules.high[path]
        if kind != INTEGER:
            return False
        number = atoms.payload[at]
        unbounded = rules.low[path] == -np.inf and rules.high[path] == np.inf
        exact = -_MOST_EXACT <= number <= _MOST_EXACT
        return unbounded or (exact and rules.low[path] <= number <= rules.high[path])
    if wanted == IS_BOOLEAN:
        return kind == BOOLEAN
    if kind != STRING or wanted == ASK:
        return False
    start, length = atoms.payload[at], atoms.length[at]
    if wanted == IS_INSTANT:
        return read_instant(atoms.text, start, length) != NO_INSTANT
    return wanted == IS_STRING or _find(rules.words, rules.values_list[path], atoms.text, start, length) >= 0


@inlined
def _values_conform(atoms: Atoms, i: int, more: bool, rules: Rules, work: Work) -> bool:
    for at in range(atoms.starts[i], atoms.starts[i + 1]):
        path = atoms.path[at]
        says = work.says[path] if work.said[path] == i else 0
        if says == 0:
            if not (more or rules.beside[path] or path == rules.event_type):
                return False
        elif (work.seen[path] == i and not says & MULTIPLE) or not _belongs(atoms, at, path, rules):
            return False
        work.seen[path] = i
    return True


@inlined
def _nothing_is_missing(i: int, count: int, rules: Rules, work: Work) -> bool:
    for place in range(count):
        number = work.types[place]
        for at in range(rules.member_start[number], rules.member_start[number + 1]):
            if rules.member_says[at] & MANDATORY and work.seen[rules.member_path[at]] != i:
                return False
    return True


@reading
def conform(atoms: Atoms, others: Any, rules: Rules, work: Work, declined: Any) -> None:
    """Decline the documents that do not surely conform. `others` have values at paths without a number."""
    for i in range(len(declined)):
        if declined[i]:
            continue
        count = _types(atoms, i, rules, work)
        more = _merge(i, count, rules, work)
        good = count > 0 and (more or not others[i]) and _values_conform(atoms, i, more, rules, work)
        declined[i] = not (good and _nothing_is_missing(i, count, rules, work))

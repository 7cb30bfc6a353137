"""Schema check of decoded documents: a kernel accepts the clear cases, the specification decides the others.

The rules are those of `events.schema.consistency`. The kernel declines a document that seems to break one,
and any document it cannot decide: two values of a single-valued attribute (they may be equal), an integer
beyond the exact range of doubles where there are bounds. So the rules and their error messages exist once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tidings.matching.kernels.bytes import hash_bytes
from tidings.matching.kernels.compiled import inlined, kernel
from tidings.matching.kernels.decode.json_objects import BOOLEAN, DOUBLE, INTEGER, STRING
from tidings.matching.kernels.decode.names import child
from tidings.matching.kernels.decode.scalars import NO_INSTANT, read_instant

OTHER, IS_NUMBER, IS_STRING, IS_BOOLEAN, IS_INSTANT, IS_LISTED = 0, 1, 2, 3, 4, 5
"""What the values of a path must be; the specification decides OTHER."""

MANDATORY, MULTIPLE, NAMED = 1, 2, 4
"""What an event type declares of an attribute. All declarations include NAMED."""

MOST_TYPES = 16
EVENT_TYPES = 0
_MOST_EXACT = 1 << 53


class Rules(NamedTuple):
    """A schema, by numbers of paths and event types.

    `values`, `low` and `high` restrict the values of a path, and `values_list` is the list that contains
    them. `common` are paths that any event may have. Type i names member_path[member_start[i]:member_start[i
    + 1]]; events of `open` types may have further paths. `words` are lists of strings; the first list holds
    the names of the types, in their order.
    """

    event_type: Any
    values: Any
    low: Any
    high: Any
    values_list: Any
    common: Any
    member_start: Any
    member_path: Any
    member_flags: Any
    open: Any
    words: Any


class Atoms(NamedTuple):
    """Atoms of documents, as in `json_objects.Out`; `double` is the payload viewed as doubles."""

    starts: Any
    path: Any
    kind: Any
    payload: Any
    double: Any
    length: Any
    text: Any


class Work(NamedTuple):
    """By path: declaration by the types of a document, and the last documents that declared it and that had it."""

    flags: Any
    flagged: Any
    seen: Any
    types: Any


@inlined
def _find_word(words: Any, number: int, text: Any, start: int, length: int) -> Any:
    """Return the number of the text in a list of words, or -1."""
    return child(words, number, hash_bytes(text, start, length), text, start, length)


@inlined
def _find_types(atoms: Atoms, i: int, rules: Rules, work: Work) -> int:
    """Write the numbers of the document's types; return how many there are, 0 if one of them is unknown."""
    count = 0
    for at in range(atoms.starts[i], atoms.starts[i + 1]):
        if atoms.path[at] == rules.event_type:
            if atoms.kind[at] != STRING or count == MOST_TYPES:
                return 0
            found = _find_word(rules.words, EVENT_TYPES, atoms.text, atoms.payload[at], atoms.length[at])
            if found < 0:
                return 0
            work.types[count] = found
            count += 1
    return count


@inlined
def _merge_types(i: int, count: int, rules: Rules, work: Work) -> bool:
    """Merge the declarations of the types, path by path; return whether one of the types is open."""
    more = False
    for place in range(count):
        number = work.types[place]
        more |= rules.open[number]
        for at in range(rules.member_start[number], rules.member_start[number + 1]):
            path = rules.member_path[at]
            if work.flagged[path] != i:
                work.flagged[path] = i
                work.flags[path] = 0
            work.flags[path] |= rules.member_flags[at]
    return more


@inlined
def _is_in_domain(atoms: Atoms, at: int, path: int, rules: Rules) -> bool:
    """Return whether the value is certainly in the domain of its attribute."""
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
    if kind != STRING or wanted == OTHER:
        return False
    start, length = atoms.payload[at], atoms.length[at]
    if wanted == IS_INSTANT:
        return read_instant(atoms.text, start, length) != NO_INSTANT
    return (
        wanted == IS_STRING
        or _find_word(rules.words, rules.values_list[path], atoms.text, start, length) >= 0
    )


@inlined
def _values_conform(atoms: Atoms, i: int, more: bool, rules: Rules, work: Work) -> bool:
    for at in range(atoms.starts[i], atoms.starts[i + 1]):
        path = atoms.path[at]
        flags = work.flags[path] if work.flagged[path] == i else 0
        if flags == 0:
            if not (more or rules.common[path] or path == rules.event_type):
                return False
        elif (work.seen[path] == i and not flags & MULTIPLE) or not _is_in_domain(atoms, at, path, rules):
            return False
        work.seen[path] = i
    return True


@inlined
def _has_mandatory(i: int, count: int, rules: Rules, work: Work) -> bool:
    for place in range(count):
        number = work.types[place]
        for at in range(rules.member_start[number], rules.member_start[number + 1]):
            if rules.member_flags[at] & MANDATORY and work.seen[rules.member_path[at]] != i:
                return False
    return True


@kernel
def decline_nonconforming(atoms: Atoms, others: Any, rules: Rules, work: Work, declined: Any) -> None:
    """Decline the documents that do not certainly conform. `others` have values at paths without a number."""
    for i in range(len(declined)):
        if declined[i]:
            continue
        count = _find_types(atoms, i, rules, work)
        more = _merge_types(i, count, rules, work)
        good = count > 0 and (more or not others[i]) and _values_conform(atoms, i, more, rules, work)
        declined[i] = not (good and _has_mandatory(i, count, rules, work))

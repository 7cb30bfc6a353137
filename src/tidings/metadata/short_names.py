"""Short names: how rules call the classes and properties of a schema.

    http://example.org/servers#memory       memory
    http://example.org/disks#memory         with the one above: servers:memory and disks:memory

A name is a word: what no rule could write becomes an underscore. Graphs do not keep the prefixes they were written
with, and two documents may call one namespace differently; so prefixes are taken from the IRI.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping

_BETWEEN = re.compile(r"[/#:?&=]+")
_NO_WORD = re.compile(r"[^\w-]+")


def short_names(iris: Iterable[str]) -> Mapping[str, str | None]:
    """The short name of each IRI; None for one that has none, or none of its own."""
    parts = {iri: _words(iri) for iri in iris}
    ends = {iri: _name(words, 1) for iri, words in parts.items()}
    sharing = _by_name(ends)
    found: dict[str, str | None] = {}
    for name, same in sharing.items():
        longer = _told_apart({iri: parts[iri] for iri in same}) if len(same) > 1 else {same[0]: name}
        found |= {iri: longer.get(iri) for iri in same}
    return {iri: found[iri] for iri in parts}


def local(iri: str) -> str:
    """The end of an IRI, as it is written there."""
    return _BETWEEN.split(iri)[-1]


def _by_name(names: Mapping[str, str | None]) -> Mapping[str | None, list[str]]:
    found: dict[str | None, list[str]] = defaultdict(list)
    for iri, name in names.items():
        found[name].append(iri)
    return found


def _told_apart(parts: Mapping[str, list[str]]) -> Mapping[str, str | None]:
    """Names with the shortest prefixes that make them different."""
    longest = max(map(len, parts.values()))
    for length in range(2, longest + 1):
        names = {iri: _name(words, length) for iri, words in parts.items()}
        if len(set(names.values())) == len(names):
            return names
    return {}


def _words(iri: str) -> list[str]:
    """What an IRI consists of, as words. A namespace's versions and years begin with a digit and say little."""
    *before, last = (_NO_WORD.sub("_", part) for part in _BETWEEN.split(iri))
    return [*filter(_is_word, before), last]


def _name(words: list[str], length: int) -> str | None:
    *prefix, end = words[-length:]
    return ":".join(["_".join(prefix), end] if prefix else [end]) if _is_word(end) else None


def _is_word(text: str) -> bool:
    return text[:1].isalpha() or text[:1] == "_"

"""Groups of texts that differ only in their literals, found without parsing: their *skeleton* is the common part.

One pattern cuts a text into skeleton and literals. Texts of a frequent skeleton are then recognised by a pattern of
their own, which is several times faster. Both cut every text at the same places.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

_STRING = r"'[^']*+(?:''[^']*+)*+'"
# A superset of numbers and dates: texts with anything else are compiled one by one.
_PLAIN = r"[0-9.eE+\-:TtZz]*+"
# Strings, names in double quotes, and numbers that do not end a name. The pattern begins with a character set because
# `re` skips ahead to such a set quickly.
_CUT = re.compile(
    rf"""(["'0-9\-](?:(?<=')[^']*+'(?:'[^']*+')*+|(?<=")[^"]*+"|(?<![A-Za-z0-9_.\-].)(?<=[0-9\-]){_PLAIN}))""",
    re.DOTALL,
)
_ACTIVE, _OFTEN, _SHARE = 8, 16, 20
"""How many skeletons are tried by their own pattern before a text is cut, after how many texts a skeleton is considered
for that, and that it must make up at least every twentieth text: failed tries cost more than cutting."""

Recognise = Callable[[str], "re.Match[str] | None"]
Key = tuple[tuple[str, ...], tuple[bool, ...]]
"""The text around the literals, and which of them are strings."""


@dataclass(slots=True, eq=False)
class Skeleton:
    """The texts of one skeleton: their rows, and their literals one text after the other."""

    parts: list[str]
    rows: list[int] = field(default_factory=list)
    literals: list[str] = field(default_factory=list)

    @property
    def width(self) -> int:
        return len(self.parts) // 2

    def column(self, ordinal: int) -> list[str]:
        """Return the literals at one place of all texts."""
        return self.literals[ordinal :: self.width]


def group_texts(texts: Iterable[str]) -> list[Skeleton]:
    """Group texts by skeleton."""
    known: dict[Key, Skeleton] = {}
    active: dict[Skeleton, Recognise] = {}
    for row, text in enumerate(texts):
        for skeleton, recognise in active.items():
            found = recognise(text)
            if found is not None:
                skeleton.rows.append(row)
                skeleton.literals.extend(found.groups())
                break
        else:
            skeleton = _cut_text(row, text, known)
            if len(skeleton.rows) % _OFTEN == 0 and len(skeleton.rows) * _SHARE > row:
                _activate(skeleton, active)
    return list(known.values())


def _cut_text(row: int, text: str, known: dict[Key, Skeleton]) -> Skeleton:
    parts = _CUT.split(text)
    if '"' in text:
        parts = _join_names(parts)
    literals = parts[1::2]
    key = tuple(parts[::2]), tuple([literal[0] == "'" for literal in literals])
    skeleton = known.get(key)
    if skeleton is None:
        skeleton = known[key] = Skeleton(parts)
    skeleton.rows.append(row)
    skeleton.literals.extend(literals)
    return skeleton


def _join_names(parts: list[str]) -> list[str]:
    """Put names in double quotes, which were cut out too, back into the skeleton."""
    joined = parts[:1]
    for literal, after in zip(parts[1::2], parts[2::2], strict=True):
        if literal[0] == '"':
            joined[-1] += literal + after
        else:
            joined += [literal, after]
    return joined


def _activate(skeleton: Skeleton, active: dict[Skeleton, Recognise]) -> None:
    """Recognise a frequent skeleton by its own pattern, in place of the least frequent one."""
    if len(active) == _ACTIVE:
        weakest = min(active, key=lambda skeleton: len(skeleton.rows))
        if len(weakest.rows) >= len(skeleton.rows):
            return
        del active[weakest]
    active[skeleton] = re.compile(_own_pattern(skeleton.parts)).fullmatch


def _own_pattern(parts: Sequence[str]) -> str:
    def pattern(place: int, part: str) -> str:
        if place % 2 == 0:
            return re.escape(part)
        return f"({_STRING})" if part[0] == "'" else rf"([0-9\-]{_PLAIN})"

    return "".join(pattern(place, part) for place, part in enumerate(parts))


def literal_ends(text: str) -> list[int]:
    """Return the end positions of the literals of a text."""
    return [found.end() for found in _CUT.finditer(text) if found[0][0] != '"']

"""Lines of a PlantUML diagram, without comments and presentation.

Only known presentation is skipped. An unknown word might have a meaning, so the parser rejects it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

MAX_LINE = 2_000
"""Longer lines are rejected before regular expressions backtrack over them."""

_COMMENT = re.compile(r"/'.*?(?:'/|\Z)|^[ \t]*'[^\n]*", re.DOTALL | re.MULTILINE)

_NOTE = r"(?:floating\s+)?note\b"
_NAMED_NOTE = r"\s*\"[^\"]*\"\s*as\b"
_NOTE_HEAD = r"(?:\"[^\"]*\"|::|[^:])*+"
"""Position of a note. The colon before its text is not in quotes and not in `::`: `note right of A::"m(x : int)"`."""

PRESENTATION = re.compile(
    r"@(?:start|end)\w*\b|(?:hide|show|remove|restore|skinparam|skin|scale|caption|title|mainframe|header|footer|legend"
    r"|left\s+to\s+right|top\s+to\s+bottom|allow_?mixing|set\s+\w+|url\s+(?:of|for)|newpage|page|rotate|sprite|autonumber"
    r"|(?:left|right|center)\s+(?:header|footer))(?=\s|$)"
    rf"|!(?:theme|pragma|option|assume)\b|{_NOTE}(?:{_NAMED_NOTE}|{_NOTE_HEAD}:)",
    re.IGNORECASE,
)

BLOCKS: tuple[tuple[re.Pattern[str], re.Pattern[str]], ...] = tuple(
    (re.compile(begin, re.IGNORECASE), re.compile(end, re.IGNORECASE))
    for begin, end in (
        (r"skinparam\b.*\{\s*$", r"\}"),
        (r"<style>", r".*</style>"),
        (r"(?:left\s+|right\s+|center\s+)?header\s*$", r"end\s*header"),
        (r"(?:left\s+|right\s+|center\s+)?footer\s*$", r"end\s*footer"),
        (r"legend\b(?!.*:)", r"end\s*legend"),
        (r"title\s*$", r"end\s*title"),
        (r"sprite\b.*\{\s*$", r"\}"),
        (rf"{_NOTE}(?!{_NAMED_NOTE})(?=.*\{{\s*$){_NOTE_HEAD}$", r"\}"),
        (rf"{_NOTE}(?!{_NAMED_NOTE}){_NOTE_HEAD}$", r"end\s*note"),
    )
)
"""Begin and end of blocks of presentation."""

GROUP = re.compile(
    r"(?:package|namespace|together|rectangle|folder|frame|node|cloud|database|component|card|storage)\b[^{]*"
    r"(?:\{[^{}]*\}[^{]*)*\{\s*(\}?)\s*$",
    re.IGNORECASE,
)
"""Begin of a group of classes; braces that are closed on the same line belong to stereotypes."""

_FIRST = re.compile(r"\w*")
_CLASS_NAME = re.compile(r"(?:abstract|class|dataclass|entity|exception|record|struct)\s+(?:class\s+)?(\w+)")
_NOTE_NAME = re.compile(rf"{_NOTE}\s*(?:\"[^\"]*\"\s*)?\bas\s+(\w+)", re.IGNORECASE)
_SKINPARAM_DEPTH = re.compile(r"[{}]")


@dataclass(frozen=True, slots=True)
class Line:
    """A stripped line and its offset in the text; `unended` if it begins a block that is never closed."""

    text: str
    start: int
    unended: bool = False


def blank_comments(text: str) -> str:
    """Replace comments by blanks, so that all offsets stay the same."""
    return _COMMENT.sub(lambda comment: re.sub(r"[^\n]", " ", comment[0]), text)


def split_lines(text: str) -> Iterator[Line]:
    """Yield all lines that are not blank."""
    start = 0
    for row in text.split("\n"):
        stripped = row.strip()
        if stripped:
            yield Line(stripped, start + row.index(stripped))
        start += len(row) + 1


def find_note_names(text: str) -> frozenset[str]:
    """Find named notes: lines from these to classes have no meaning."""
    return _find_names(text, _NOTE_NAME)


def find_class_names(text: str) -> frozenset[str]:
    """Find the names after `class` and its synonyms."""
    return _find_names(text, _CLASS_NAME)


def _find_names(text: str, pattern: re.Pattern[str]) -> frozenset[str]:
    lines = (line.text for line in split_lines(text) if len(line.text) <= MAX_LINE)
    return frozenset(match[1] for line in lines if (match := pattern.match(line)))


def skip_presentation(lines: Iterator[Line], classes: frozenset[str]) -> Iterator[Line]:
    """Yield the lines that are not presentation. `page "*" -- "1" Site` is not, where `page` is a class.

    The caller consumes the members of a class from `lines` itself: there `title : String` is a member.
    """
    for line in lines:
        if len(line.text) > MAX_LINE or _FIRST.match(line.text)[0] in classes:  # type: ignore[index]  # it matches everything
            yield line
            continue
        end = next((end for begin, end in BLOCKS if begin.match(line.text)), None)
        if end is not None:
            if not _skip_block(lines, line, end):
                yield Line(line.text, line.start, unended=True)
        elif not PRESENTATION.match(line.text):
            yield line


def _skip_block(lines: Iterator[Line], line: Line, end: re.Pattern[str]) -> bool:
    """Skip a block, in which braces may be nested; return False if it is never closed."""
    if end.search(line.text):
        return end.pattern != r"\}" or "{" not in line.text
    depth = 1
    for each in lines:
        if end.pattern != r"\}":
            if end.match(each.text):
                return True
            continue
        depth += sum(1 if brace[0] == "{" else -1 for brace in _SKINPARAM_DEPTH.finditer(each.text))
        if depth <= 0:
            return True
    return False

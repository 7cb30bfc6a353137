"""The lines of a PlantUML diagram: comments blanked out, presentation left out, blocks with their ends.

Only what is presentation is left out. A word that nobody knows might mean something, so it is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

MAX_LINE = 2_000
"""Longer lines are refused before a pattern goes back and forth over them."""

_COMMENT = re.compile(r"/'.*?(?:'/|\Z)|^[ \t]*'[^\n]*", re.DOTALL | re.MULTILINE)

_NOTE = r"(?:floating\s+)?note\b"
_NAMED_NOTE = r"\s*\"[^\"]*\"\s*as\b"
_NOTE_HEAD = r"(?:\"[^\"]*\"|::|[^:])*+"
"""What a note is at. The colon before its text is neither in quotes nor a member's: `note right of A::"m(x : int)"`."""

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
"""What begins a block of presentation, and what ends it."""

GROUP = re.compile(
    r"(?:package|namespace|together|rectangle|folder|frame|node|cloud|database|component|card|storage)\b[^{]*"
    r"(?:\{[^{}]*\}[^{]*)*\{\s*(\}?)\s*$",
    re.IGNORECASE,
)
"""What has classes in it; the braces that are closed again are those of stereotypes."""

_FIRST = re.compile(r"\w*")
_CLASS_NAME = re.compile(r"(?:abstract|class|dataclass|entity|exception|record|struct)\s+(?:class\s+)?(\w+)")
_NOTE_NAME = re.compile(rf"{_NOTE}\s*(?:\"[^\"]*\"\s*)?\bas\s+(\w+)", re.IGNORECASE)
_SKINPARAM_DEPTH = re.compile(r"[{}]")


@dataclass(frozen=True, slots=True)
class Line:
    """A line without blanks around it, and where it starts in the text; `unended` if it begins what never ends."""

    text: str
    start: int
    unended: bool = False


def blank_comments(text: str) -> str:
    """The same text with blanks for comments, so that everything else stays at its place."""
    return _COMMENT.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def split_lines(text: str) -> Iterator[Line]:
    """All lines that have something in them."""
    start = 0
    for row in text.split("\n"):
        stripped = row.strip()
        if stripped:
            yield Line(stripped, start + row.index(stripped))
        start += len(row) + 1


def find_note_names(text: str) -> frozenset[str]:
    """Notes that have a name can be joined to classes by lines, which say nothing."""
    return _found(text, _NOTE_NAME)


def find_class_names(text: str) -> frozenset[str]:
    """The names behind `class`."""
    return _found(text, _CLASS_NAME)


def _found(text: str, pattern: re.Pattern[str]) -> frozenset[str]:
    short = (line.text for line in split_lines(text) if len(line.text) <= MAX_LINE)
    return frozenset(found[1] for each in short if (found := pattern.match(each)))


def skip_presentation(waiting: Iterator[Line], classes: frozenset[str]) -> Iterator[Line]:
    """The lines that are no presentation. `page "*" -- "1" Site` is none where `page` is a class.

    Members of classes are taken from `waiting` by whoever sees the class begin: `title : String` is a member there.
    """
    for line in waiting:
        if len(line.text) > MAX_LINE or _FIRST.match(line.text)[0] in classes:  # type: ignore[index]  # it matches everything
            yield line
            continue
        end = next((end for begin, end in BLOCKS if begin.match(line.text)), None)
        if end is not None:
            if not _skip(waiting, line, end):
                yield Line(line.text, line.start, unended=True)
        elif not PRESENTATION.match(line.text):
            yield line


def _skip(waiting: Iterator[Line], line: Line, end: re.Pattern[str]) -> bool:
    """Leave out a block; false if its end never comes. Braces in it may be nested."""
    if end.search(line.text):
        return end.pattern != r"\}" or "{" not in line.text
    depth = 1
    for each in waiting:
        if end.pattern != r"\}":
            if end.match(each.text):
                return True
            continue
        depth += sum(1 if brace[0] == "{" else -1 for brace in _SKINPARAM_DEPTH.finditer(each.text))
        if depth <= 0:
            return True
    return False

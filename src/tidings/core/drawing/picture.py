"""What is drawn: boxes in layers, and lines from a box to one in a higher layer."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

LINE, PAD, CHARACTER = 18.0, 12.0, 7.9
"""Height of a line, space inside a box, and width of a character: fonts of one width need 0.605 of their size."""

WIDEST, MOST_LINES = 38, 3
"""So many characters stand in a line of a box, and so many lines; the whole text is in its tooltip."""


@dataclass(frozen=True, slots=True)
class Box:
    """A box: a title, some text, and a count. Those of one `group` have a mark in common."""

    key: str
    layer: int
    kind: str
    title: str
    text: str
    count: str
    group: str | None = None

    @property
    def lines(self) -> tuple[str, ...]:
        return wrap_text(self.text)

    @property
    def heading(self) -> str:
        return shorten_text(self.title, WIDEST)

    @property
    def width(self) -> float:
        last = self.count if self.group is None else f"{self.group}   {self.count}"
        return max(map(measure_text, (self.heading, *self.lines, last))) * CHARACTER + 2 * PAD

    @property
    def height(self) -> float:
        return (1 + len(self.lines) + bool(self.count)) * LINE + 1.2 * PAD


@dataclass(frozen=True, slots=True)
class Edge:
    """A line from a box up to another; `label` is written at its middle.

    `kind` is a name for the style sheet, `head` is the end with the arrow (`end` is up, `start` is down, or none), and
    `beside_source` and `beside_target` are written at the ends.
    """

    source: str
    target: str
    label: str = ""
    kind: str = ""
    head: str = "end"
    beside_source: str = ""
    beside_target: str = ""


@dataclass(frozen=True, slots=True)
class Picture:
    """Boxes and lines, what the layers are called from the lowest up, and what the whole is; `style` is more CSS.

    `room` is how many times the usual space is between boxes: labels need more.
    """

    title: str
    description: str
    layers: tuple[str, ...]
    boxes: tuple[Box, ...]
    edges: tuple[Edge, ...]
    notes: tuple[str, ...] = ()
    style: str = ""
    room: float = 1.0


def measure_text(text: str) -> int:
    """How many columns a text takes in a font of one width: characters of East Asia take two."""
    return sum(
        0 if unicodedata.combining(each) else 2 if unicodedata.east_asian_width(each) in "WF" else 1
        for each in text
    )


def shorten_text(text: str, most: int) -> str:
    """A text with its middle left out, if it is too long: both ends of a URI say something."""
    if measure_text(text) <= most:
        return text
    half = (most - 1) // 2
    head, tail = text, text
    while measure_text(head) > half:
        head = head[:-1]
    while measure_text(tail) > half:
        tail = tail[1:]
    return f"{head}…{tail}"


def wrap_text(text: str) -> tuple[str, ...]:
    """A text in lines: broken at spaces; a word that is too long is shortened, and so is what goes beyond the last."""
    lines: list[str] = []
    for word in text.split():
        if lines and measure_text(f"{lines[-1]} {word}") <= WIDEST:
            lines[-1] += f" {word}"
        else:
            lines.append(shorten_text(word, WIDEST))
    if len(lines) > MOST_LINES:
        lines = [*lines[: MOST_LINES - 1], shorten_text(f"{lines[MOST_LINES - 1]} …", WIDEST)]
    return tuple(lines)

"""Rendering of pictures as SVG: without scripts or fonts, for light and dark pages, readable by screen readers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from tidings.core.drawing.picture import (
    CHARACTER,
    LINE,
    PAD,
    Box,
    Edge,
    LayeredLayout,
    Picture,
    compute_layout,
    measure_text,
)
from tidings.core.text import escape_bidi, replace_invalid_characters

MARGIN, SIDE, ARROW = 24.0, 150.0, 7.0
"""Margin of the picture, width of the column with layer names, length of an arrowhead."""

GROUP_COLOR_COUNT = 6
"""Number of colours for groups; their names are written, too."""

PICTURE_STYLE = Path(__file__).with_name("picture.css").read_text()

Point = tuple[float, float]


def render_svg(picture: Picture) -> str:
    """Render a picture with its style sheet."""
    return _Drawing(picture).render(f"<style>\n{PICTURE_STYLE}{picture.style}</style>")


def render_svg_fragment(picture: Picture) -> str:
    """Render a picture for a page whose own style sheet has the style: its CSP allows no inline styles."""
    return _Drawing(picture).render()


class _Drawing:
    def __init__(self, picture: Picture) -> None:
        self.picture = picture
        self.boxes = {box.key: box for box in picture.boxes}
        self.at: LayeredLayout = compute_layout(picture.boxes, picture.edges, picture.room)
        self.side = SIDE if picture.layers else MARGIN
        self.top = MARGIN + LINE * (2.2 + len(picture.notes))
        groups = sorted({box.group for box in picture.boxes if box.group}, key=_natural)
        self.marks = {group: f"g{at % GROUP_COLOR_COUNT}" for at, group in enumerate(groups)}
        self.ports = self._ports()
        self.labels: list[tuple[float, float, float]] = []

    def render(self, style: str = "") -> str:
        width, height = self._size()
        start = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_n(width)} {_n(height)}" width="{_n(width)}" '
            f'height="{_n(height)}" role="img" aria-labelledby="title desc">'
        )
        parts = [start, f'<title id="title">{_text(self.picture.title)}</title>']
        parts.append(f'<desc id="desc">{_text(self.picture.description)}</desc>')
        parts += filter(None, (style, f'<rect class="page" width="{_n(width)}" height="{_n(height)}"/>'))
        parts += (*self._captions(), *self._lines(), *map(self._box, self.picture.boxes), "</svg>")
        return "\n".join(parts) + "\n"

    def _size(self) -> Point:
        right = max((self.left(box) + box.width for box in self.picture.boxes), default=MARGIN + self.side)
        words = (self.picture.title, *self.picture.notes)
        right = max(right, *(MARGIN + measure_text(each) * CHARACTER for each in words))
        bottom = self.top + (self.at.tops[0] + self.at.heights[0] if self.at.tops else 0.0)
        return right + MARGIN, bottom + MARGIN

    def left(self, box: Box) -> float:
        return MARGIN + self.side + self.at.middles[box.key] - box.width / 2

    def upper(self, box: Box) -> float:
        """Return the top of a box, which is centred vertically in its layer."""
        return self.top + self.at.tops[box.layer] + (self.at.heights[box.layer] - box.height) / 2

    def _captions(self) -> Iterator[str]:
        yield _text_element("title", MARGIN, MARGIN + LINE * 0.8, self.picture.title)
        for row, note in enumerate(self.picture.notes, 2):
            yield _text_element("quiet", MARGIN, MARGIN + LINE * (row - 0.2), note)
        for layer, name in enumerate(self.picture.layers[: len(self.at.tops)]):
            middle = self.top + self.at.tops[layer] + self.at.heights[layer] / 2
            for line, word in enumerate(name.split("\n")):
                yield _text_element(
                    "quiet", MARGIN, middle + LINE * (line - (name.count("\n")) / 2 + 0.3), word
                )

    def _box(self, box: Box) -> str:
        x, y = self.left(box), self.upper(box)
        width, height = _n(box.width), _n(box.height)
        mark = f" {self.marks[box.group]}" if box.group else ""
        parts = [f'<g class="{box.kind}{mark}"><title>{_text(f"{box.title}: {box.text}")}</title>']
        parts.append(f'<rect class="box" x="{_n(x)}" y="{_n(y)}" width="{width}" height="{height}" rx="6"/>')
        if box.group:
            parts.append(
                f'<rect class="mark" x="{_n(x)}" y="{_n(y + 6)}" width="4" height="{_n(box.height - 12)}"/>'
            )
        down = y + PAD * 0.6 + LINE * 0.75
        parts.append(_text_element("name", x + PAD, down, box.heading))
        for line in box.lines:
            down += LINE
            parts.append(_text_element("text", x + PAD, down, line))
        down += LINE
        if box.group:
            parts.append(_text_element("group", x + PAD, down, box.group))
        if box.count:
            parts.append(_text_element("count", x + box.width - PAD, down, box.count, "end"))
        return "".join(parts) + "</g>"

    def _ports(self) -> dict[tuple[int, bool], float]:
        """Compute where lines start and end: side by side, sorted by their other end so that they do not cross."""
        ends: dict[tuple[str, bool], list[tuple[float, int]]] = {}
        for number, way in enumerate(self.at.ways):
            ends.setdefault((way[0], True), []).append((self.at.middles[way[1]], number))
            ends.setdefault((way[-1], False), []).append((self.at.middles[way[-2]], number))
        ports: dict[tuple[int, bool], float] = {}
        for (key, is_start), lines in ends.items():
            step = min(24.0, self.boxes[key].width * 0.7 / len(lines))
            for index, (_, number) in enumerate(sorted(lines)):
                ports[number, is_start] = self.at.middles[key] + step * (index - (len(lines) - 1) / 2)
        return ports

    def _lines(self) -> Iterator[str]:
        for number, edge in enumerate(self.picture.edges):
            points = self._points(number, edge)
            kind = f" {edge.kind}" if edge.kind else ""
            yield f'<path class="line{kind}" d="{_path(points, ARROW if edge.head == "end" else 0.0)}"/>'
            if edge.head:
                (x, y), down = (points[-1], ARROW) if edge.head == "end" else (points[0], -ARROW)
                yield f'<path class="head{kind}" d="M{_n(x)} {_n(y)}l-4 {_n(down)}h8z"/>'
            if edge.label:
                yield _text_element(f"label{kind}", *self._free(points, edge.label), edge.label, "middle")
            yield from _end_texts(edge, points)

    def _free(self, points: Sequence[Point], label: str) -> Point:
        """Find a position for a label on the first curve of a line, near the middle, away from other labels."""
        half = measure_text(label) * CHARACTER / 2 + 2
        tried = [_on_curve(points[0], points[1], part) for part in (0.5, 0.35, 0.65, 0.2, 0.8)]
        free = (
            (x, y)
            for x, y in tried
            if all(abs(x - a) > half + b or abs(y - c) > LINE * 0.8 for a, b, c in self.labels)
        )
        x, y = next(free, tried[0])
        self.labels.append((x, half, y))
        return x, y + 4

    def _points(self, number: int, edge: Edge) -> list[Point]:
        """Return the points of a line from bottom to top; it crosses each layer in between vertically."""
        way, shift = self.at.ways[number], MARGIN + self.side
        source, target = self.boxes[edge.source], self.boxes[edge.target]
        points = [(shift + self.ports[number, True], self.upper(source))]
        for layer, place in enumerate(way[1:-1], source.layer + 1):
            x, top = shift + self.at.middles[place], self.top + self.at.tops[layer]
            points += ((x, top + self.at.heights[layer]), (x, top))
        points.append((shift + self.ports[number, False], self.upper(target) + target.height))
        return points


def _end_texts(edge: Edge, points: Sequence[Point]) -> Iterator[str]:
    """Render the texts at both ends, right of the line."""
    (x, y), (to_x, to_y) = points[0], points[-1]
    if edge.beside_source:
        yield _text_element("label", x + 7, y - 5, edge.beside_source)
    if edge.beside_target:
        yield _text_element("label", to_x + 7, to_y + LINE * 0.8, edge.beside_target)


def _path(points: Sequence[Point], arrow: float) -> str:
    """Build Bézier curves between layers; the last one ends vertically, below the arrowhead if there is one."""
    (x, y), *others = points
    path = f"M{_n(x)} {_n(y)}"
    last = len(others) - 1
    for index, (to_x, to_y) in enumerate(others):
        end = to_y + arrow if index == last else to_y
        bend = (y + end) / 2
        path += f"C{_n(x)} {_n(bend)} {_n(to_x)} {_n(bend)} {_n(to_x)} {_n(end)}"
        x, y = to_x, to_y
    return path


def _on_curve(start: Point, end: Point, part: float) -> Point:
    (x, y), (to_x, to_y), remaining = start, end, 1 - part
    across = remaining**3 + 3 * remaining**2 * part
    up = remaining**3 * y + 3 * remaining * part * (y + to_y) / 2 + part**3 * to_y
    return across * x + (1 - across) * to_x, up


def _text_element(kind: str, x: float, y: float, words: str, anchor: str = "") -> str:
    end = f' text-anchor="{anchor}"' if anchor else ""
    return f'<text class="{kind}" x="{_n(x)}" y="{_n(y)}"{end}>{_text(words)}</text>'


def _text(words: str) -> str:
    return escape(escape_bidi(replace_invalid_characters(words)))


def _natural(group: str) -> list[tuple[int, str]]:
    """Sort `group 10` after `group 9`."""
    return [
        (int(part), "") if part.isascii() and part.isdigit() else (-1, part)
        for part in re.split(r"([0-9]+)", group)
    ]


def _n(value: float) -> str:
    """Format a number with at most one decimal."""
    return f"{value + 0.0:.1f}".removesuffix(".0")

"""A picture as SVG: one file without scripts or fonts, for light and dark pages, with words for those who listen."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from tidings.core.drawing.layered_layout import LayeredLayout, compute_layout
from tidings.core.drawing.picture import CHARACTER, LINE, PAD, Box, Edge, Picture, measure_text
from tidings.core.text import escape_bidi

MARGIN, SIDE, ARROW = 24.0, 150.0, 7.0
"""Space around everything, space for the names of layers, and the length of an arrow's head."""

GROUP_COLOR_COUNT = 6
"""So many colours mark groups; a word beside them does, too."""

PICTURE_STYLE = Path(__file__).with_name("picture.css").read_text()

_NO_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

Point = tuple[float, float]


def render_svg(picture: Picture) -> str:
    """The SVG of a picture, with its style."""
    return _Drawing(picture).whole(f"<style>\n{PICTURE_STYLE}{picture.style}</style>")


def render_svg_fragment(picture: Picture) -> str:
    """The same for a page that has the style in its own sheet, where a policy allows no other."""
    return _Drawing(picture).whole()


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

    def whole(self, style: str = "") -> str:
        width, height = self._size()
        start = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_n(width)} {_n(height)}" width="{_n(width)}" '
            f'height="{_n(height)}" role="img" aria-labelledby="title desc">'
        )
        parts = [start, f'<title id="title">{_text(self.picture.title)}</title>']
        parts.append(f'<desc id="desc">{_text(self.picture.description)}</desc>')
        parts += filter(None, (style, f'<rect class="page" width="{_n(width)}" height="{_n(height)}"/>'))
        parts += (*self._words(), *self._lines(), *map(self._box, self.picture.boxes), "</svg>")
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
        """Boxes stand in the middle of their layer's height."""
        return self.top + self.at.tops[box.layer] + (self.at.heights[box.layer] - box.height) / 2

    def _words(self) -> Iterator[str]:
        yield _said("title", MARGIN, MARGIN + LINE * 0.8, self.picture.title)
        for at, note in enumerate(self.picture.notes, 2):
            yield _said("quiet", MARGIN, MARGIN + LINE * (at - 0.2), note)
        for layer, name in enumerate(self.picture.layers[: len(self.at.tops)]):
            middle = self.top + self.at.tops[layer] + self.at.heights[layer] / 2
            for line, word in enumerate(name.split("\n")):
                yield _said("quiet", MARGIN, middle + LINE * (line - (name.count("\n")) / 2 + 0.3), word)

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
        parts.append(_said("name", x + PAD, down, box.heading))
        for line in box.lines:
            down += LINE
            parts.append(_said("text", x + PAD, down, line))
        down += LINE
        if box.group:
            parts.append(_said("group", x + PAD, down, box.group))
        if box.count:
            parts.append(_said("count", x + box.width - PAD, down, box.count, "end"))
        return "".join(parts) + "</g>"

    def _ports(self) -> dict[tuple[int, bool], float]:
        """Where lines begin and end: side by side, in the order of where they come from, so that they do not cross."""
        ends: dict[tuple[str, bool], list[tuple[float, int]]] = {}
        for number, way in enumerate(self.at.ways):
            ends.setdefault((way[0], True), []).append((self.at.middles[way[1]], number))
            ends.setdefault((way[-1], False), []).append((self.at.middles[way[-2]], number))
        found: dict[tuple[int, bool], float] = {}
        for (key, is_start), lines in ends.items():
            step = min(24.0, self.boxes[key].width * 0.7 / len(lines))
            for at, (_, number) in enumerate(sorted(lines)):
                found[number, is_start] = self.at.middles[key] + step * (at - (len(lines) - 1) / 2)
        return found

    def _lines(self) -> Iterator[str]:
        for number, edge in enumerate(self.picture.edges):
            points = self._points(number, edge)
            kind = f" {edge.kind}" if edge.kind else ""
            yield f'<path class="line{kind}" d="{_path(points, ARROW if edge.head == "end" else 0.0)}"/>'
            if edge.head:
                (x, y), down = (points[-1], ARROW) if edge.head == "end" else (points[0], -ARROW)
                yield f'<path class="head{kind}" d="M{_n(x)} {_n(y)}l-4 {_n(down)}h8z"/>'
            if edge.label:
                yield _said(f"label{kind}", *self._free(points, edge.label), edge.label, "middle")
            yield from _beside(edge, points)

    def _free(self, points: Sequence[Point], label: str) -> Point:
        """A place on the first curve of a line where no other label stands: the middle, or away from it."""
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
        """A line from below to above: through each layer that it passes it goes straight."""
        way, shift = self.at.ways[number], MARGIN + self.side
        source, target = self.boxes[edge.source], self.boxes[edge.target]
        points = [(shift + self.ports[number, True], self.upper(source))]
        for layer, place in enumerate(way[1:-1], source.layer + 1):
            x, top = shift + self.at.middles[place], self.top + self.at.tops[layer]
            points += ((x, top + self.at.heights[layer]), (x, top))
        points.append((shift + self.ports[number, False], self.upper(target) + target.height))
        return points


def _beside(edge: Edge, points: Sequence[Point]) -> Iterator[str]:
    """Words at both ends, right of the line."""
    (x, y), (to_x, to_y) = points[0], points[-1]
    if edge.beside_source:
        yield _said("label", x + 7, y - 5, edge.beside_source)
    if edge.beside_target:
        yield _said("label", to_x + 7, to_y + LINE * 0.8, edge.beside_target)


def _path(points: Sequence[Point], arrow: float) -> str:
    """Curves between layers; the last one ends upright, below the head of the arrow, if it has one there."""
    (x, y), *rest = points
    said = f"M{_n(x)} {_n(y)}"
    last = len(rest) - 1
    for at, (to_x, to_y) in enumerate(rest):
        end = to_y + arrow if at == last else to_y
        bend = (y + end) / 2
        said += f"C{_n(x)} {_n(bend)} {_n(to_x)} {_n(bend)} {_n(to_x)} {_n(end)}"
        x, y = to_x, to_y
    return said


def _on_curve(start: Point, end: Point, part: float) -> Point:
    (x, y), (to_x, to_y), rest = start, end, 1 - part
    across = rest**3 + 3 * rest**2 * part
    up = rest**3 * y + 3 * rest * part * (y + to_y) / 2 + part**3 * to_y
    return across * x + (1 - across) * to_x, up


def _said(kind: str, x: float, y: float, words: str, anchor: str = "") -> str:
    end = f' text-anchor="{anchor}"' if anchor else ""
    return f'<text class="{kind}" x="{_n(x)}" y="{_n(y)}"{end}>{_text(words)}</text>'


def _text(words: str) -> str:
    return escape(escape_bidi(_NO_XML.sub("\ufffd", words)))


def _natural(group: str) -> list[tuple[int, str]]:
    """`group 10` behind `group 9`."""
    return [
        (int(part), "") if part.isascii() and part.isdigit() else (-1, part)
        for part in re.split(r"([0-9]+)", group)
    ]


def _n(value: float) -> str:
    """A number in as few characters as it needs."""
    return f"{value + 0.0:.1f}".removesuffix(".0")

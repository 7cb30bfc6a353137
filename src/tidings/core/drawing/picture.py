"""Pictures of boxes in layers with lines between them, and their layout after Sugiyama.

A line has a dummy vertex in each layer that it crosses. Sweeps up and down sort each layer by the barycentre of the
neighbours, and the order with the fewest crossings wins. Then each box moves as close to the middle of its neighbours
as the order and the gaps allow.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from random import Random

LINE, PAD, CHARACTER = 18.0, 12.0, 7.9
"""Height of a line, padding of a box, width of a character: monospace fonts need 0.605 of their size."""

WIDEST, MOST_LINES = 38, 3
"""Maximum characters in a line of a box, and lines; the tooltip has the whole text."""


@dataclass(frozen=True, slots=True)
class Box:
    """A box with a title, some text, and a count; boxes of one `group` share a mark."""

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
    """A line from a box up to another, with a `label` at its middle.

    `kind` is a CSS class, `head` is the end with the arrow (`end` is up, `start` is down, or empty), and
    `beside_source` and `beside_target` are texts at the ends.
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
    """Boxes, lines, and names of layers from the bottom up; `style` is additional CSS.

    `room` multiplies the gaps between boxes: labels need more.
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
    """Count the columns of a text in a monospace font: East Asian characters take two."""
    return sum(
        0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
    )


def shorten_text(text: str, most: int) -> str:
    """Shorten a text in its middle: both ends of a URI are informative."""
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
    """Wrap a text at spaces; shorten words that are too long, and text beyond the last line."""
    lines: list[str] = []
    for word in text.split():
        if lines and measure_text(f"{lines[-1]} {word}") <= WIDEST:
            lines[-1] += f" {word}"
        else:
            lines.append(shorten_text(word, WIDEST))
    if len(lines) > MOST_LINES:
        lines = [*lines[: MOST_LINES - 1], shorten_text(f"{lines[MOST_LINES - 1]} …", WIDEST)]
    return tuple(lines)


STARTS, SWEEPS, MOVES = 12, 24, 120
"""Number of initial orders, of sweeps from each, and of moves of boxes."""

GAP, ROW_GAP, THIN = 28.0, 64.0, 14.0
"""Gap between boxes, gap between layers, width of a line that crosses a layer."""

LayerOrder = list[list[str]]
Neighbours = Mapping[str, Sequence[str]]
DesiredPosition = tuple[float, float]
"""Desired middle of a box, and its weight."""


@dataclass(frozen=True, slots=True)
class LayeredLayout:
    """Middles of boxes, tops and heights of layers, and for each line its boxes and dummy vertices."""

    middles: Mapping[str, float]
    tops: tuple[float, ...]
    heights: tuple[float, ...]
    ways: tuple[tuple[str, ...], ...]
    order: tuple[tuple[str, ...], ...]


def compute_layout(boxes: Sequence[Box], edges: Sequence[Edge], room: float = 1.0) -> LayeredLayout:
    """Compute the positions of boxes; lines must lead up."""
    layer_of = {box.key: box.layer for box in boxes}
    ways = tuple(_way(edge, at, layer_of) for at, edge in enumerate(edges))
    below, above = _neighbours(ways)
    order = minimize_crossings(_first_order(boxes, ways), below, above)
    widths = {box.key: box.width for box in boxes}
    middles = _middles(order, below, above, widths, room * GAP)
    tops, heights = _rows(boxes, len(order), room * ROW_GAP)
    return LayeredLayout(middles, tops, heights, ways, tuple(map(tuple, order)))


def _way(edge: Edge, number: int, layer_of: Mapping[str, int]) -> tuple[str, ...]:
    """Return the boxes of a line, with a dummy vertex in each layer between them."""
    passed = range(layer_of[edge.source] + 1, layer_of[edge.target])
    return (edge.source, *(f"\0{number}/{layer}" for layer in passed), edge.target)


def _neighbours(ways: Iterable[Sequence[str]]) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    below: dict[str, list[str]] = {}
    above: dict[str, list[str]] = {}
    for way in ways:
        for lower, upper in pairwise(way):
            below.setdefault(upper, []).append(lower)
            above.setdefault(lower, []).append(upper)
    return below, above


def _first_order(boxes: Sequence[Box], ways: Sequence[Sequence[str]]) -> LayerOrder:
    order: LayerOrder = [[] for _ in range(max((box.layer for box in boxes), default=-1) + 1)]
    for box in boxes:
        order[box.layer].append(box.key)
    start = {box.key: box.layer for box in boxes}
    for way in ways:
        for step, place in enumerate(way[1:-1], start[way[0]] + 1):
            order[step].append(place)
    return order


def minimize_crossings(order: LayerOrder, below: Neighbours, above: Neighbours) -> LayerOrder:
    """Find an order with few crossings from several initial orders: one may end in a local minimum."""
    best, fewest = order, count_crossings(order, above)
    random = Random(0)  # so that the same input gives the same picture
    for start in range(STARTS):
        initial = (
            [list(layer) for layer in order]
            if start == 0
            else [random.sample(layer, len(layer)) for layer in order]
        )
        swept = _sweep_repeatedly(initial, below, above)
        if (crossings := count_crossings(swept, above)) < fewest:
            best, fewest = swept, crossings
        if fewest == 0:
            break
    return best


def _sweep_repeatedly(order: LayerOrder, below: Neighbours, above: Neighbours) -> LayerOrder:
    """Sweep up and down, and return the order with the fewest crossings on the way."""
    best, fewest = order, count_crossings(order, above)
    for sweep in range(SWEEPS):
        if fewest == 0:
            break
        order = _sweep(order, below, above, upwards=sweep % 2 == 0)
        order = _swap_adjacent(order, below, above)
        if (crossings := count_crossings(order, above)) < fewest:
            best, fewest = order, crossings
    return best


def _sweep(order: LayerOrder, below: Neighbours, above: Neighbours, upwards: bool) -> LayerOrder:
    """Sort each layer by the barycentres of its neighbours in the previous layer."""
    swept = [list(layer) for layer in order]
    towards = below if upwards else above
    steps = range(1, len(swept)) if upwards else range(len(swept) - 2, -1, -1)
    for number in steps:
        places = {key: place for place, key in enumerate(swept[number - 1 if upwards else number + 1])}
        swept[number] = _sort_by_barycentre(swept[number], towards, places)
    return swept


def _sort_by_barycentre(layer: Sequence[str], towards: Neighbours, places: Mapping[str, int]) -> list[str]:
    """Sort a layer; boxes without neighbours keep their place."""
    middles = {
        key: sum(places[each] for each in near) / len(near)
        if (near := towards.get(key, ()))
        else float(place)
        for place, key in enumerate(layer)
    }
    return sorted(layer, key=lambda key: middles[key])


def _swap_adjacent(order: LayerOrder, below: Neighbours, above: Neighbours) -> LayerOrder:
    """Swap adjacent boxes where that saves a crossing: barycentres alone stop at ties."""
    swapped = [list(layer) for layer in order]
    for number, layer in enumerate(swapped):
        down = {key: place for place, key in enumerate(swapped[number - 1])} if number else {}
        up = (
            {key: place for place, key in enumerate(swapped[number + 1])} if number + 1 < len(swapped) else {}
        )
        for i in range(len(layer) - 1):
            left, right = layer[i], layer[i + 1]
            crossings = _crossings_between(left, right, below, down) + _crossings_between(
                left, right, above, up
            )
            if (
                _crossings_between(right, left, below, down) + _crossings_between(right, left, above, up)
                < crossings
            ):
                layer[i], layer[i + 1] = right, left
    return swapped


def _crossings_between(left: str, right: str, towards: Neighbours, places: Mapping[str, int]) -> int:
    """Count the crossings of the lines of two boxes in one layer."""
    ends = [places[each] for each in towards.get(right, ())]
    return sum(1 for each in towards.get(left, ()) for end in ends if places[each] > end)


def count_crossings(order: Sequence[Sequence[str]], above: Neighbours) -> int:
    """Count the pairs of lines that cross."""
    crossings = 0
    for lower, upper in pairwise(order):
        places = {key: at for at, key in enumerate(upper)}
        for i, left in enumerate(lower):
            crossings += sum(_crossings_between(left, right, above, places) for right in lower[i + 1 :])
    return crossings


def _middles(
    order: LayerOrder, below: Neighbours, above: Neighbours, widths: Mapping[str, float], gap: float
) -> dict[str, float]:
    middles: dict[str, float] = {}
    for layer in order:
        middles |= zip(layer, _place_boxes(layer, [(0.0, 1.0)] * len(layer), widths, gap), strict=True)
    for sweep in range(MOVES):
        for layer in order if sweep % 2 == 0 else reversed(order):
            desired = [_desired_position(key, below, above, middles) for key in layer]
            middles |= zip(layer, _place_boxes(layer, desired, widths, gap), strict=True)
    left = min((middles[key] - widths.get(key, THIN) / 2 for key in middles), default=0.0)
    return {key: round(middle - left, 1) for key, middle in middles.items()}


def _desired_position(
    key: str, below: Neighbours, above: Neighbours, middles: Mapping[str, float]
) -> DesiredPosition:
    """Return where the neighbours pull a box. Dummy vertices pull eight times: lines should cross layers straight."""
    near = [*below.get(key, ()), *above.get(key, ())]
    if not near:
        return middles[key], 1.0
    weights = [8.0 if each[0] == "\0" or key[0] == "\0" else 1.0 for each in near]
    total = sum(weights)
    return sum(middles[each] * weight for each, weight in zip(near, weights, strict=True)) / total, total


def _place_boxes(
    layer: Sequence[str], desired: Sequence[DesiredPosition], widths: Mapping[str, float], gap: float
) -> list[float]:
    """Compute the middles closest to the desired ones (least squares) that keep the order and the gaps.

    After subtracting the widths to the left, the positions only have to be monotonic: that is isotonic regression, by
    pooling adjacent violators. Weights are needed for convergence: without them, a position that is closer for one
    layer would be farther for the next.
    """
    offsets, offset, previous_half = list[float](), 0.0, None
    for key in layer:
        half = widths.get(key, THIN) / 2
        offset += 0.0 if previous_half is None else previous_half + gap + half
        offsets.append(offset)
        previous_half = half
    pools: list[tuple[float, float, int]] = []
    for (target, weight), offset in zip(desired, offsets, strict=True):
        mean, count = target - offset, 1
        while pools and pools[-1][0] > mean:
            other, heavy, other_count = pools.pop()
            mean = (mean * weight + other * heavy) / (weight + heavy)
            weight, count = weight + heavy, count + other_count
        pools.append((mean, weight, count))
    means = [mean for mean, _, count in pools for _ in range(count)]
    return [mean + offset for mean, offset in zip(means, offsets, strict=True)]


def _rows(boxes: Sequence[Box], layers: int, gap: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return tops and heights of layers; the last layer is at the top."""
    heights = [
        max((box.height for box in boxes if box.layer == layer), default=0.0) for layer in range(layers)
    ]
    tops: list[float] = [0.0] * layers
    y = 0.0
    for layer in reversed(range(layers)):
        tops[layer] = y
        y += heights[layer] + gap
    return tuple(tops), tuple(heights)

"""Where boxes stand, after Sugiyama: lines that pass a layer have a place in it; the order in each layer follows the
middle of the neighbours' places (barycentre), up and down again, and the order with the fewest crossings counts.

Then each box moves as near to the middle of its neighbours as the order and the space between boxes let it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from random import Random

from tidings.core.drawing.picture import Box, Edge

STARTS, SWEEPS, MOVES = 12, 24, 120
"""How often layers are put in order, from how many beginnings, and how often boxes are moved to where they stay."""

GAP, ROW_GAP, THIN = 28.0, 64.0, 14.0
"""Space between boxes, between layers, and what a line needs that passes a layer."""

LayerOrder = list[list[str]]
Neighbours = Mapping[str, Sequence[str]]
DesiredPosition = tuple[float, float]
"""Where a box wants to stand, and how much."""


@dataclass(frozen=True, slots=True)
class LayeredLayout:
    """The middles of boxes, the heights of layers' upper ends, and the places through which each line goes."""

    middles: Mapping[str, float]
    tops: tuple[float, ...]
    heights: tuple[float, ...]
    ways: tuple[tuple[str, ...], ...]
    order: tuple[tuple[str, ...], ...]


def compute_layout(boxes: Sequence[Box], edges: Sequence[Edge], room: float = 1.0) -> LayeredLayout:
    """Places for boxes of which lines lead up only; `room` is how many times the usual space is between them."""
    layer_of = {box.key: box.layer for box in boxes}
    ways = tuple(_way(edge, at, layer_of) for at, edge in enumerate(edges))
    below, above = _neighbours(ways)
    order = minimize_crossings(_first_order(boxes, ways), below, above)
    widths = {box.key: box.width for box in boxes}
    middles = _middles(order, below, above, widths, room * GAP)
    tops, heights = _rows(boxes, len(order), room * ROW_GAP)
    return LayeredLayout(middles, tops, heights, ways, tuple(map(tuple, order)))


def _way(edge: Edge, at: int, layer_of: Mapping[str, int]) -> tuple[str, ...]:
    """The boxes of a line, and a place in each layer between them."""
    passed = range(layer_of[edge.source] + 1, layer_of[edge.target])
    return (edge.source, *(f"\0{at}/{layer}" for layer in passed), edge.target)


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
    """The order with the fewest crossings that is found from several beginnings: one may end in a corner."""
    best, fewest = order, count_crossings(order, above)
    mixed = Random(0)  # the same rules are the same picture
    for start in range(STARTS):
        begun = (
            [list(layer) for layer in order]
            if start == 0
            else [mixed.sample(layer, len(layer)) for layer in order]
        )
        found = _sweeps(begun, below, above)
        if (now := count_crossings(found, above)) < fewest:
            best, fewest = found, now
        if fewest == 0:
            break
    return best


def _sweeps(order: LayerOrder, below: Neighbours, above: Neighbours) -> LayerOrder:
    """The order with the fewest crossings of all that sweeps up and down come by."""
    best, fewest = order, count_crossings(order, above)
    for sweep in range(SWEEPS):
        if fewest == 0:
            break
        order = _swept(order, below, above, upwards=sweep % 2 == 0)
        order = _exchanged(order, below, above)
        if (now := count_crossings(order, above)) < fewest:
            best, fewest = order, now
    return best


def _swept(order: LayerOrder, below: Neighbours, above: Neighbours, upwards: bool) -> LayerOrder:
    """Each layer in the order of the middles of its neighbours in the layer before."""
    made = [list(layer) for layer in order]
    towards = below if upwards else above
    steps = range(1, len(made)) if upwards else range(len(made) - 2, -1, -1)
    for at in steps:
        places = {key: place for place, key in enumerate(made[at - 1 if upwards else at + 1])}
        made[at] = _by_middle(made[at], towards, places)
    return made


def _by_middle(layer: Sequence[str], towards: Neighbours, places: Mapping[str, int]) -> list[str]:
    """What has no neighbours stays where it is."""
    middles = {
        key: sum(places[each] for each in near) / len(near) if (near := towards.get(key, ())) else float(at)
        for at, key in enumerate(layer)
    }
    return sorted(layer, key=lambda key: middles[key])


def _exchanged(order: LayerOrder, below: Neighbours, above: Neighbours) -> LayerOrder:
    """Two beside each other change places where that saves a crossing: middles alone stop at ties."""
    made = [list(layer) for layer in order]
    for at, layer in enumerate(made):
        down = {key: place for place, key in enumerate(made[at - 1])} if at else {}
        up = {key: place for place, key in enumerate(made[at + 1])} if at + 1 < len(made) else {}
        for i in range(len(layer) - 1):
            one, other = layer[i], layer[i + 1]
            now = _between(one, other, below, down) + _between(one, other, above, up)
            if _between(other, one, below, down) + _between(other, one, above, up) < now:
                layer[i], layer[i + 1] = other, one
    return made


def _between(left: str, right: str, towards: Neighbours, places: Mapping[str, int]) -> int:
    """How many lines of two boxes cross, of which one stands left of the other."""
    ends = [places[each] for each in towards.get(right, ())]
    return sum(1 for each in towards.get(left, ()) for end in ends if places[each] > end)


def count_crossings(order: Sequence[Sequence[str]], above: Neighbours) -> int:
    """How many pairs of lines cross."""
    found = 0
    for lower, upper in pairwise(order):
        places = {key: at for at, key in enumerate(upper)}
        for i, left in enumerate(lower):
            found += sum(_between(left, right, above, places) for right in lower[i + 1 :])
    return found


def _middles(
    order: LayerOrder, below: Neighbours, above: Neighbours, widths: Mapping[str, float], gap: float
) -> dict[str, float]:
    middles: dict[str, float] = {}
    for layer in order:
        middles |= zip(layer, _apart(layer, [(0.0, 1.0)] * len(layer), widths, gap), strict=True)
    for sweep in range(MOVES):
        for layer in order if sweep % 2 == 0 else reversed(order):
            wanted = [_pulled(key, below, above, middles) for key in layer]
            middles |= zip(layer, _apart(layer, wanted, widths, gap), strict=True)
    left = min((middles[key] - widths.get(key, THIN) / 2 for key in middles), default=0.0)
    return {key: round(middle - left, 1) for key, middle in middles.items()}


def _pulled(key: str, below: Neighbours, above: Neighbours, middles: Mapping[str, float]) -> DesiredPosition:
    """A place on a line pulls eight times: lines should be straight where they pass layers."""
    near = [*below.get(key, ()), *above.get(key, ())]
    if not near:
        return middles[key], 1.0
    weights = [8.0 if each[0] == "\0" or key[0] == "\0" else 1.0 for each in near]
    total = sum(weights)
    return sum(middles[each] * weight for each, weight in zip(near, weights, strict=True)) / total, total


def _apart(
    layer: Sequence[str], wanted: Sequence[DesiredPosition], widths: Mapping[str, float], gap: float
) -> list[float]:
    """The middles nearest to the wanted ones (least squares) that keep the order and the space between.

    Without the widths before it, each place only has to stand no further left than the one before. So those that would
    are pooled, and get the mean of what they want (pool adjacent violators). Weights count in it: without them no move
    were the last, since what is nearer for one layer would be further for the next.
    """
    offsets, at, before = list[float](), 0.0, None
    for key in layer:
        half = widths.get(key, THIN) / 2
        at += 0.0 if before is None else before + gap + half
        offsets.append(at)
        before = half
    pools: list[tuple[float, float, int]] = []
    for (want, weight), offset in zip(wanted, offsets, strict=True):
        mean, count = want - offset, 1
        while pools and pools[-1][0] > mean:
            other, heavy, more = pools.pop()
            mean = (mean * weight + other * heavy) / (weight + heavy)
            weight, count = weight + heavy, count + more
        pools.append((mean, weight, count))
    means = [mean for mean, _, count in pools for _ in range(count)]
    return [mean + offset for mean, offset in zip(means, offsets, strict=True)]


def _rows(boxes: Sequence[Box], layers: int, gap: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Upper ends and heights of layers; the last layer is at the top."""
    heights = [max((box.height for box in boxes if box.layer == at), default=0.0) for at in range(layers)]
    tops: list[float] = [0.0] * layers
    y = 0.0
    for at in reversed(range(layers)):
        tops[at] = y
        y += heights[at] + gap
    return tuple(tops), tuple(heights)

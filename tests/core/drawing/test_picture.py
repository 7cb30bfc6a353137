"""Layered pictures: boxes do not overlap, text fits, few lines cross, and the SVG is well-formed."""

from __future__ import annotations

import re
from itertools import combinations, pairwise

from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from tidings.core.drawing.picture import (
    CHARACTER,
    GAP,
    MOST_LINES,
    PAD,
    WIDEST,
    Box,
    Edge,
    Picture,
    compute_layout,
    count_crossings,
    measure_text,
    shorten_text,
    wrap_text,
)
from tidings.core.drawing.svg import render_svg

SVG = "{http://www.w3.org/2000/svg}"


def box(key: str, layer: int, text: str = "text", group: str | None = None) -> Box:
    return Box(key, layer, "join" if group else "named", key, text, "1 result", group)


@st.composite
def pictures(draw: st.DrawFn) -> Picture:
    words = st.text(max_size=60)
    sizes = draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    boxes = [
        Box(f"{layer}.{i}", layer, "join", draw(words), draw(words), "9 results", draw(st.none() | words))
        for layer, size in enumerate(sizes)
        for i in range(size)
    ]
    pairs = [(low.key, high.key) for low in boxes for high in boxes if low.layer < high.layer]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=14)) if pairs else []
    edges = tuple(Edge(low, high, draw(st.sampled_from(["", "2,000"]))) for low, high in chosen)
    names = tuple(draw(words) for _ in sizes)
    return Picture(draw(words), draw(words), names, tuple(boxes), edges, (draw(words),))


def upper_neighbours(ways: tuple[tuple[str, ...], ...]) -> dict[str, list[str]]:
    above: dict[str, list[str]] = {}
    for way in ways:
        for low, high in pairwise(way):
            above.setdefault(low, []).append(high)
    return above


@given(pictures())
def test_compute_layout_boxes_never_overlap(picture: Picture) -> None:
    layout = compute_layout(picture.boxes, picture.edges)
    spans = {
        each.key: (layout.middles[each.key] - each.width / 2, layout.middles[each.key] + each.width / 2)
        for each in picture.boxes
    }
    for one, other in combinations(picture.boxes, 2):
        if one.layer == other.layer:
            left, right = sorted((spans[one.key], spans[other.key]))
            assert right[0] - left[1] >= GAP - 0.2
    assert min(left for left, _ in spans.values()) >= -0.1
    assert all(
        top >= above + height
        for (above, height), top in zip(
            zip(layout.tops[1:], layout.heights[1:], strict=True), layout.tops, strict=False
        )
    )
    for way, edge in zip(layout.ways, picture.edges, strict=True):
        assert (way[0], way[-1]) == (edge.source, edge.target)


@given(pictures())
def test_compute_layout_never_adds_crossings(picture: Picture) -> None:
    layout = compute_layout(picture.boxes, picture.edges)
    above = upper_neighbours(layout.ways)
    places = {key: (layer, i) for layer, keys in enumerate(layout.order) for i, key in enumerate(keys)}
    pieces = [piece for way in layout.ways for piece in pairwise(way)]
    crossings = sum(
        1
        for (a, b), (c, d) in combinations(pieces, 2)
        if places[a][0] == places[c][0] and (places[a][1] - places[c][1]) * (places[b][1] - places[d][1]) < 0
    )
    assert count_crossings(layout.order, above) == crossings
    original = [
        [each.key for each in picture.boxes if each.layer == layer] for layer in range(len(layout.order))
    ]
    for layer, keys in enumerate(layout.order):
        original[layer] += sorted(
            set(keys) - set(original[layer]), key=lambda key: int(key[1:].partition("/")[0])
        )
    assert crossings <= count_crossings(original, above)


def test_compute_layout_reversed_rows_have_no_crossings() -> None:
    """The boxes of each layer are connected to those above in reverse order."""
    boxes = [box(f"{layer}{i}", layer) for layer in range(3) for i in range(6)]
    edges = [Edge(f"{layer}{i}", f"{layer + 1}{5 - i}") for layer in range(2) for i in range(6)]
    layout = compute_layout(boxes, edges)
    assert count_crossings(layout.order, upper_neighbours(layout.ways)) == 0
    for edge in edges:
        assert abs(layout.middles[edge.source] - layout.middles[edge.target]) < 0.2


def test_box_text_fits_width() -> None:
    for text in (
        "memory > 64",
        "serverHost contains 'uni-passau.de'",
        "x" * 200,
        "数" * 50,
        " ".join(["word"] * 60),
    ):
        long_box = box("k", 0, text, "group 1")
        assert len(long_box.lines) <= MOST_LINES and all(
            measure_text(line) <= WIDEST for line in long_box.lines
        )
        assert all(measure_text(line) * CHARACTER + 2 * PAD <= long_box.width for line in long_box.lines)
    assert wrap_text("a b") == ("a b",) and wrap_text("") == ()
    assert shorten_text("abcdefghij", 5) == "ab…ij" and shorten_text("abc", 3) == "abc"
    assert measure_text("数e\u0301") == 3


@given(pictures())
def test_render_svg_any_text_is_well_formed(picture: Picture) -> None:
    root = etree.fromstring(render_svg(picture).encode())
    assert root.get("role") == "img"
    for name in root.get("aria-labelledby", "").split():
        assert root.xpath(f"//*[@id='{name}']")
    width, height = float(root.get("width")), float(root.get("height"))
    rects = [each for each in root.iter(f"{SVG}rect") if each.get("class") == "box"]
    assert len(rects) == len(picture.boxes)
    for each in rects:
        assert 0 <= float(each.get("x")) <= width - float(each.get("width"))
        assert 0 <= float(each.get("y")) <= height - float(each.get("height"))
    assert not list(root.iter(f"{SVG}script"))


def test_render_svg_lines_end_at_boxes() -> None:
    svg = render_svg(
        Picture(
            "t", "d", ("a", "b", "c"), (box("low", 0), box("mid", 1), box("high", 2)), (Edge("low", "high"),)
        )
    )
    root = etree.fromstring(svg.encode())
    low, mid, high = [each for each in root.iter(f"{SVG}rect") if each.get("class") == "box"]
    (line,) = [each.get("d") for each in root.iter(f"{SVG}path") if each.get("class") == "line"]
    (head,) = [each.get("d") for each in root.iter(f"{SVG}path") if each.get("class") == "head"]
    numbers = [float(each) for each in re.findall(r"-?[0-9.]+", line)]
    assert numbers[1] == float(low.get("y"))
    ends = [float(each) for each in re.findall(r"-?[0-9.]+", head)[:2]]
    assert abs(ends[1] - float(high.get("y")) - float(high.get("height"))) < 0.11
    left, right = float(mid.get("x")), float(mid.get("x")) + float(mid.get("width"))
    passing = [
        x
        for x, y in zip(numbers[::2], numbers[1::2], strict=True)
        if float(mid.get("y")) <= y <= float(mid.get("y")) + float(mid.get("height"))
    ]
    assert passing and all(x < left or x > right for x in passing)


def test_render_svg_is_deterministic() -> None:
    picture = Picture(
        "t", "d", ("a", "b"), (box("low", 0), box("high", 1, group="group 1")), (Edge("low", "high", "3"),)
    )
    assert render_svg(picture) == render_svg(picture)
    assert "prefers-color-scheme: dark" in render_svg(picture)

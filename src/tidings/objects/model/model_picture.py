"""Diagram of a model: changes flow upwards along its lines, from changed objects to subscribers.

Subscribers and implicit associations have one colour, propagating associations another; labels repeat this.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from tidings.core.drawing.picture import Box, Edge, Picture
from tidings.core.suggest import did_you_mean
from tidings.core.text import plural
from tidings.errors import InputError, NotFound
from tidings.objects.model.class_model import Association, Model, ModelClass
from tidings.objects.model.summary import describe_marks, list_marks

MAX_CLASSES = 60
"""In larger models, classes without marked associations are left out; if that is not enough, `--class` is required."""

SPACING = 1.6
"""Wider than the default, because lines have names."""

PICTURE_TITLE = "Who is notified of a change"
MODEL_STYLE = Path(__file__).with_name("model.css").read_text()


def build_model_picture(model: Model, names: Collection[str] = ()) -> Picture:
    """Build the picture of a model, or of some classes and their neighbours."""
    classes = _select_classes(model, names)
    lines = [each for each in _lines(model) if {each.start, each.end} <= classes]
    upwards = list(_orient_lines(lines))
    layers = _layers(classes, upwards)
    loops = [each for each in lines if each.start == each.end]
    boxes = tuple(
        _box(model, each, layers[each.name], loops) for each in model.classes.values() if each.name in classes
    )
    edges = tuple(_edge(line, is_reversed) for line, is_reversed in upwards)
    hidden = len(model.classes) - len(classes)
    notes = (_counts(model), *_legend(lines), *(f"{each} more are not drawn." for each in [hidden] if each))
    described = " ".join((*notes, *_sentences(model)))
    return Picture(PICTURE_TITLE, described, (), boxes, edges, notes, MODEL_STYLE, SPACING)


def _counts(model: Model) -> str:
    counts = f"{plural(len(model.classes), 'class')}, {plural(len(model.associations), 'association')}"
    implicit = sum(each.implicit is not None for each in model.associations)
    propagating = sum(each.propagates is not None for each in model.associations)
    return f"{counts}: {implicit} implicit, {propagating} propagating. Changes follow the arrows."


@dataclass(frozen=True, slots=True)
class _Line:
    """A line that should point upwards from one class to another."""

    start: str
    end: str
    kind: str
    label: str = ""
    beside_start: str = ""
    beside_end: str = ""


def _select_classes(model: Model, names: Collection[str]) -> set[str]:
    for name in names:
        if name not in model.classes:
            raise NotFound("no such class", received=name, hint=did_you_mean(name, model.classes))
    if names:
        near = {
            each
            for line in _lines(model)
            for each in (line.start, line.end)
            if {line.start, line.end} & set(names)
        }
        chosen = set(names) | near
    elif len(model.classes) > MAX_CLASSES:
        marked = [each for each in model.associations if list_marks(each)]
        chosen = {name for each in marked for name in (each.source, each.target)}
    else:
        chosen = set(model.classes)
    if len(chosen) > MAX_CLASSES:
        received, hint = f"{len(chosen)} classes", "--class NAME draws a class and its neighbours"
        raise InputError(
            "too many classes for one picture",
            received=received,
            accepted=f"at most {MAX_CLASSES}",
            hint=hint,
        )
    return chosen


def _lines(model: Model) -> list[_Line]:
    """List all lines, marked ones first: these get the direction they should have."""
    inherits = [
        _Line(each.name, parent, "inherits", "is a")
        for each in model.classes.values()
        for parent in each.parents
    ]
    order = {"propagates": 0, "implicit": 1, "plain": 2}
    return sorted((*map(_line, model.associations), *inherits), key=lambda each: order.get(each.kind, 3))


def _line(association: Association) -> _Line:
    kind, towards = "plain", None
    if association.propagates is not None:
        kind, towards = "propagates", association.propagates.towards
    elif association.implicit is not None:
        kind, towards = "implicit", association.implicit.notified
    label = " ".join((association.name, *(f"«{each}»" for each in list_marks(association))))
    ends = (association.source, association.target)
    beside = (str(association.source_cardinality), str(association.target_cardinality))
    if towards is not None and towards.value == "source":
        ends, beside = ends[::-1], beside[::-1]
    return _Line(*ends, kind, label, *beside)


def _orient_lines(lines: list[_Line]) -> Iterator[tuple[_Line, bool]]:
    """Yield lines and whether they are reversed: a line that would close a cycle points downwards."""
    above: dict[str, set[str]] = {}
    for line in lines:
        if line.start == line.end:
            continue
        is_reversed = line.start in _find_reachable(above, line.end)
        low, high = (line.end, line.start) if is_reversed else (line.start, line.end)
        above.setdefault(low, set()).add(high)
        yield line, is_reversed


def _find_reachable(above: dict[str, set[str]], start: str) -> set[str]:
    queue, reachable = [start], {start}
    for reached in queue:  # grows during iteration
        new = above.get(reached, set()) - reachable
        reachable |= new
        queue += new
    return reachable


def _layers(classes: set[str], upwards: list[tuple[_Line, bool]]) -> dict[str, int]:
    """Assign layers as low as possible, each above the starts of its incoming lines."""
    layers = dict.fromkeys(classes, 0)
    pairs = [
        (line.end, line.start) if is_reversed else (line.start, line.end) for line, is_reversed in upwards
    ]
    for _ in classes:
        for low, high in pairs:
            layers[high] = max(layers[high], layers[low] + 1)
    return layers


def _box(model: Model, cls: ModelClass, layer: int, loops: list[_Line]) -> Box:
    """Draw a class; a line to itself is text in its box. Descendants of a subscriber look like subscribers."""
    own = [f"↻ {each.label}" for each in loops if each.start == cls.name]
    text = " · ".join((*(each.name for each in cls.attributes), *own))
    kind = "subscriber" if model.is_subscriber(cls.name) else "class"
    return Box(cls.name, layer, kind, cls.name, text, "«subscriber»" if cls.subscriber else "")


def _edge(line: _Line, is_reversed: bool) -> Edge:
    head = "" if line.kind == "plain" else "start" if is_reversed else "end"
    if is_reversed:
        return Edge(line.end, line.start, line.label, line.kind, head, line.beside_end, line.beside_start)
    return Edge(line.start, line.end, line.label, line.kind, head, line.beside_start, line.beside_end)


def _legend(lines: list[_Line]) -> Iterator[str]:
    kinds = {each.kind for each in lines}
    if "propagates" in kinds:
        yield "«propagates» (orange): a change is also a change of the object at the arrowhead."
    if "implicit" in kinds:
        yield "«implicit» (green): the object at the arrowhead is notified."


def _sentences(model: Model) -> Iterator[str]:
    """Describe the picture for screen readers."""
    for cls in model.classes.values():
        kind = "subscriber" if cls.subscriber else "class"
        above = f", a {cls.parent}" if cls.parent else ""
        attributes = ", ".join(each.name for each in cls.attributes)
        yield f"{cls.name}: {kind}{above}{' with ' if attributes else ''}{attributes}."
    for association in model.associations:
        effects = "".join(f"; {effect}" for effect in describe_marks(association))
        yield f"{association.source} {association.name} {association.target}{effects}."

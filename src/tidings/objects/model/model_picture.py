"""A model as a picture: changes go up along its lines, from what changes to who is told.

Subscribers and implicit associations have one colour, propagating associations another; the words say it, too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from tidings.core.drawing.picture import Box, Edge, Picture
from tidings.core.suggest import did_you_mean
from tidings.core.text import plural
from tidings.errors import Absent, InputError
from tidings.objects.model.class_model import Association, Model, ModelClass
from tidings.objects.model.summary import describe_marks, list_marks

MAX_CLASSES = 60
"""So many classes are drawn at most: beyond, those that no mark touches are left out, then somebody has to choose."""

SPACING = 1.6
"""Lines have names here."""

PICTURE_TITLE = "Whom a change concerns"
MODEL_STYLE = Path(__file__).with_name("model.css").read_text()


def build_model_picture(model: Model, names: Collection[str] = ()) -> Picture:
    """The picture of a model, or of some classes with what they are joined to."""
    classes = _drawn_classes(model, names)
    lines = [each for each in _lines(model) if {each.start, each.end} <= classes]
    upwards = list(_upwards(lines))
    layers = _layers(classes, upwards)
    loops = [each for each in lines if each.start == each.end]
    boxes = tuple(
        _box(model, each, layers[each.name], loops) for each in model.classes.values() if each.name in classes
    )
    edges = tuple(_edge(line, is_turned) for line, is_turned in upwards)
    hidden = len(model.classes) - len(classes)
    notes = (_counts(model), *_legend(lines), *(f"{each} more are not drawn." for each in [hidden] if each))
    described = " ".join((*notes, *_sentences(model)))
    return Picture(PICTURE_TITLE, described, (), boxes, edges, notes, MODEL_STYLE, SPACING)


def _counts(model: Model) -> str:
    said = f"{plural(len(model.classes), 'class')}, {plural(len(model.associations), 'association')}"
    implicit = sum(each.implicit is not None for each in model.associations)
    propagating = sum(each.propagates is not None for each in model.associations)
    return f"{said}: {implicit} implicit, {propagating} propagating. Changes go along the arrows."


@dataclass(frozen=True, slots=True)
class _Line:
    """A line that wants to lead up from one class to another."""

    start: str
    end: str
    kind: str
    label: str = ""
    beside_start: str = ""
    beside_end: str = ""


def _drawn_classes(model: Model, names: Collection[str]) -> set[str]:
    for name in names:
        if name not in model.classes:
            raise Absent("there is no such class", received=name, hint=did_you_mean(name, model.classes))
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
        received, hint = f"{len(chosen)} classes", "--class NAME draws a class and what it is joined to"
        raise InputError(
            "too much for one picture", received=received, accepted=f"at most {MAX_CLASSES}", hint=hint
        )
    return chosen


def _lines(model: Model) -> list[_Line]:
    """Those that say where changes go come first: they get the direction that they want."""
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
        kind, towards = "implicit", association.implicit.told
    label = " ".join((association.name, *(f"«{each}»" for each in list_marks(association))))
    ends = (association.source, association.target)
    beside = (str(association.source_cardinality), str(association.target_cardinality))
    if towards is not None and towards.value == "source":
        ends, beside = ends[::-1], beside[::-1]
    return _Line(*ends, kind, label, *beside)


def _upwards(lines: list[_Line]) -> Iterator[tuple[_Line, bool]]:
    """Lines with whether they are turned: what would close a circle leads down."""
    above: dict[str, set[str]] = {}
    for line in lines:
        if line.start == line.end:
            continue
        is_turned = line.start in _reached(above, line.end)
        low, high = (line.end, line.start) if is_turned else (line.start, line.end)
        above.setdefault(low, set()).add(high)
        yield line, is_turned


def _reached(above: dict[str, set[str]], start: str) -> set[str]:
    waiting, found = [start], {start}
    for each in waiting:  # grows while it is gone through
        new = above.get(each, set()) - found
        found |= new
        waiting += new
    return found


def _layers(classes: set[str], upwards: list[tuple[_Line, bool]]) -> dict[str, int]:
    """As low as possible, above all from which a line leads up."""
    layers = dict.fromkeys(classes, 0)
    pairs = [(line.end, line.start) if turned else (line.start, line.end) for line, turned in upwards]
    for _ in classes:
        for low, high in pairs:
            layers[high] = max(layers[high], layers[low] + 1)
    return layers


def _box(model: Model, cls: ModelClass, layer: int, loops: list[_Line]) -> Box:
    """A line from a class to itself is a word in its box; below a subscriber all are subscribers, and look so."""
    own = [f"↻ {each.label}" for each in loops if each.start == cls.name]
    text = " · ".join((*(each.name for each in cls.attributes), *own))
    kind = "subscriber" if model.is_subscriber(cls.name) else "class"
    return Box(cls.name, layer, kind, cls.name, text, "«subscriber»" if cls.subscriber else "")


def _edge(line: _Line, is_turned: bool) -> Edge:
    head = "" if line.kind == "plain" else "start" if is_turned else "end"
    if is_turned:
        return Edge(line.end, line.start, line.label, line.kind, head, line.beside_end, line.beside_start)
    return Edge(line.start, line.end, line.label, line.kind, head, line.beside_start, line.beside_end)


def _legend(lines: list[_Line]) -> Iterator[str]:
    kinds = {each.kind for each in lines}
    if "propagates" in kinds:
        yield "«propagates» (orange): a change counts as one of what the arrow leads to."
    if "implicit" in kinds:
        yield "«implicit» (green): who the arrow leads to is told."


def _sentences(model: Model) -> Iterator[str]:
    """The picture for those who listen to it."""
    for cls in model.classes.values():
        kind = "subscriber" if cls.subscriber else "class"
        above = f", a {cls.parent}" if cls.parent else ""
        has = ", ".join(each.name for each in cls.attributes)
        yield f"{cls.name}: {kind}{above}{' with ' if has else ''}{has}."
    for each in model.associations:
        does = "".join(f"; {said}" for said in describe_marks(each))
        yield f"{each.source} {each.name} {each.target}{does}."

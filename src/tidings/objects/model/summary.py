"""A model in a line, in lines for people, and as rows for machines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tidings.core.text import plural
from tidings.objects.model.class_model import (
    Association,
    Attribute,
    ChangeKind,
    End,
    MarkLimits,
    Model,
    ModelClass,
)
from tidings.objects.model.table_mapping import LinkTable, MappedModel

TableRow = tuple[str, ...]


def summarize_model(model: Model) -> str:
    """`4 classes, 3 associations: attends implicit, usedIn propagates.`"""
    counts = f"{plural(len(model.classes), 'class')}, {plural(len(model.associations), 'association')}"
    marked = [
        f"{each.name} {' and '.join(list_marks(each))}" for each in model.associations if list_marks(each)
    ]
    return f"{counts}: {', '.join(marked)}." if marked else f"{counts}, none of them marked."


def list_marks(association: Association) -> tuple[str, ...]:
    found = (("implicit", association.implicit), ("propagates", association.propagates))
    return tuple(name for name, mark in found if mark is not None)


def describe_marks(association: Association) -> list[str]:
    """What the marks of an association do, in words."""
    said = []
    if association.implicit is not None:
        told = association.at(association.implicit.told)
        changed = association.at(association.implicit.told.other)
        said.append(f"{told} is told about {changed}{_limited(association.implicit.limits)}")
    if association.propagates is not None:
        towards = association.at(association.propagates.towards)
        near = association.at(association.propagates.towards.other)
        said.append(f"a change of {near} is one of {towards}{_limited(association.propagates.limits)}")
    return said


def _limited(limits: MarkLimits) -> str:
    kinds, attributes = _kinds(limits), sorted(limits.attributes or ())
    said = f" ({', '.join(kinds)} only" if kinds else " ("
    said += f"{'; ' if kinds else ''}updates of {', '.join(attributes)} only" if attributes else ""
    return f"{said})" if kinds or attributes else ""


def _kinds(limits: MarkLimits) -> list[str]:
    """In the order in which kinds are told everywhere."""
    return [each.value for each in ChangeKind if limits.kinds is not None and each in limits.kinds]


def list_class_rows(placed: MappedModel) -> Iterator[TableRow]:
    """Class, what it is, its attributes, its table."""
    for each in placed.model.classes.values():
        attributes = ", ".join(map(_attribute, each.attributes)) or "–"
        yield each.name, _what(each), attributes, placed.tables[each.name].name


def _attribute(each: Attribute) -> str:
    return f"{each.name}: {each.type}" if each.type else each.name


def _what(cls: ModelClass) -> str:
    said = ["subscriber"] * cls.subscriber + [f"is a {each}" for each in cls.parents]
    return ", ".join(said) or "–"


def list_association_rows(placed: MappedModel) -> Iterator[TableRow]:
    """Association, between what, what its marks do, where it lies."""
    for each in placed.model.associations:
        ends = f"{each.source} {each.source_cardinality} → {each.target_cardinality} {each.target}"
        yield each.name, ends, "; ".join(describe_marks(each)) or "–", _lies(placed, each)


def _lies(placed: MappedModel, association: Association) -> str:
    link = placed.link(association)
    if isinstance(link, LinkTable):
        return f"{link.name} ({link.source}, {link.target})"
    return f"{link.table}.{link.column}"


def list_records(placed: MappedModel) -> Iterator[dict[str, Any]]:
    """A class or an association each, for machines."""
    for cls in placed.model.classes.values():
        yield _class_row(placed, cls)
    for association in placed.model.associations:
        yield _association_row(placed, association)


def _class_row(placed: MappedModel, cls: ModelClass) -> dict[str, Any]:
    table = placed.tables[cls.name]
    kept = table.discriminator
    return {
        "class": cls.name,
        "subscriber": cls.subscriber,
        "parent": cls.parent,
        "label": placed.model.label_of(cls.name),
        "attributes": {each.name: each.type for each in cls.attributes},
        "table": table.name,
        "key": table.key,
        "columns": dict(table.columns),
        "parent_key": table.parent_key,
        "discriminator": kept
        and {"column": kept.column, "value": kept.value, **({"table": kept.table} if kept.table else {})},
    }


def _association_row(placed: MappedModel, each: Association) -> dict[str, Any]:
    link = placed.link(each)
    if isinstance(link, LinkTable):
        lies = {"table": link.name, "source_column": link.source, "target_column": link.target}
    else:
        lies = {"table": link.table, "column": link.column, "owner": link.owner.value}
    implicit, propagates = each.implicit, each.propagates
    return {
        "association": each.name,
        "source": each.source,
        "target": each.target,
        "cardinality": f"{each.source_cardinality} {each.target_cardinality}",
        "implicit": implicit and _mark_row("told", implicit.told, implicit.limits),
        "propagates": propagates and _mark_row("towards", propagates.towards, propagates.limits),
        **lies,
    }


def _mark_row(word: str, end: End, limits: MarkLimits) -> dict[str, Any]:
    attributes = None if limits.attributes is None else sorted(limits.attributes)
    return {word: end.value, "attributes": attributes, "kinds": _kinds(limits) or None}

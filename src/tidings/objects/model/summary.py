"""Summaries of a model: one sentence, table rows for people, and records for JSON output."""

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
    marks = (("implicit", association.implicit), ("propagates", association.propagates))
    return tuple(name for name, mark in marks if mark is not None)


def describe_marks(association: Association) -> list[str]:
    """Describe the effects of an association's marks."""
    effects = []
    if association.implicit is not None:
        notified = association.at(association.implicit.notified)
        changed = association.at(association.implicit.notified.other)
        effects.append(
            f"{notified} is notified about {changed}{_describe_limits(association.implicit.limits)}"
        )
    if association.propagates is not None:
        towards = association.at(association.propagates.towards)
        near = association.at(association.propagates.towards.other)
        limits = _describe_limits(association.propagates.limits)
        effects.append(f"a change of {near} is also a change of {towards}{limits}")
    return effects


def _describe_limits(limits: MarkLimits) -> str:
    kinds, attributes = _kinds(limits), sorted(limits.attributes or ())
    parts = [f"{', '.join(kinds)} only"] if kinds else []
    parts += [f"updates of {', '.join(attributes)} only"] if attributes else []
    return f" ({'; '.join(parts)})" if parts else ""


def _kinds(limits: MarkLimits) -> list[str]:
    """List kinds in their canonical order."""
    return [each.value for each in ChangeKind if limits.kinds is not None and each in limits.kinds]


def list_class_rows(mapped: MappedModel) -> Iterator[TableRow]:
    """Yield class, role and parent, attributes, table."""
    for cls in mapped.model.classes.values():
        attributes = ", ".join(map(_describe_attribute, cls.attributes)) or "–"
        yield cls.name, _describe_class(cls), attributes, mapped.tables[cls.name].name


def _describe_attribute(attribute: Attribute) -> str:
    return f"{attribute.name}: {attribute.type}" if attribute.type else attribute.name


def _describe_class(cls: ModelClass) -> str:
    facts = ["subscriber"] * cls.subscriber + [f"is a {each}" for each in cls.parents]
    return ", ".join(facts) or "–"


def list_association_rows(mapped: MappedModel) -> Iterator[TableRow]:
    """Yield association, ends with cardinalities, effects of its marks, storage."""
    for association in mapped.model.associations:
        source = f"{association.source} {association.source_cardinality}"
        ends = f"{source} → {association.target_cardinality} {association.target}"
        yield (
            association.name,
            ends,
            "; ".join(describe_marks(association)) or "–",
            _describe_storage(mapped, association),
        )


def _describe_storage(mapped: MappedModel, association: Association) -> str:
    link = mapped.link(association)
    if isinstance(link, LinkTable):
        return f"{link.name} ({link.source}, {link.target})"
    return f"{link.table}.{link.column}"


def list_records(mapped: MappedModel) -> Iterator[dict[str, Any]]:
    """Yield a record for JSON for each class and association."""
    for cls in mapped.model.classes.values():
        yield _class_record(mapped, cls)
    for association in mapped.model.associations:
        yield _association_record(mapped, association)


def _class_record(mapped: MappedModel, cls: ModelClass) -> dict[str, Any]:
    table = mapped.tables[cls.name]
    discriminator = table.discriminator
    return {
        "class": cls.name,
        "subscriber": cls.subscriber,
        "parent": cls.parent,
        "label": mapped.model.label_of(cls.name),
        "attributes": {each.name: each.type for each in cls.attributes},
        "table": table.name,
        "key": table.key,
        "columns": dict(table.columns),
        "parent_key": table.parent_key,
        "discriminator": discriminator
        and {
            "column": discriminator.column,
            "value": discriminator.value,
            **({"table": discriminator.table} if discriminator.table else {}),
        },
    }


def _association_record(mapped: MappedModel, association: Association) -> dict[str, Any]:
    link = mapped.link(association)
    if isinstance(link, LinkTable):
        storage = {"table": link.name, "source_column": link.source, "target_column": link.target}
    else:
        storage = {"table": link.table, "column": link.column, "owner": link.owner.value}
    implicit, propagates = association.implicit, association.propagates
    return {
        "association": association.name,
        "source": association.source,
        "target": association.target,
        "cardinality": f"{association.source_cardinality} {association.target_cardinality}",
        "implicit": implicit and _mark_record("told", implicit.notified, implicit.limits),
        "propagates": propagates and _mark_record("towards", propagates.towards, propagates.limits),
        **storage,
    }


def _mark_record(word: str, end: End, limits: MarkLimits) -> dict[str, Any]:
    attributes = None if limits.attributes is None else sorted(limits.attributes)
    return {word: end.value, "attributes": attributes, "kinds": _kinds(limits) or None}

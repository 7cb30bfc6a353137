"""A mapped model as small tables for broadcast joins: plans have the same size for all models.

`tables` lists tables of objects, links and watches; `ways` marked associations in the direction of their marks;
`members` which rows make an object a member of a subclass; `above` the ancestors of each class.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidings.objects.model.relational_view import DirectedAssociation, RelationalView
from tidings.objects.model.table_mapping import MappedModel

WATCH_TABLE_NAME = "tidings_watches"
WATCH_COLUMNS = ("subscriber_class", "subscriber_key", "class", "key")
OBJECTS, LINKS, WATCHED = "objects", "links", "watches"
"""Kind of the rows of a table."""

_TEXTS = pa.list_(pa.string())
_SCHEMAS = {
    "tables": pa.schema(
        [
            ("table", pa.string()),
            ("holds", pa.string()),
            ("id_columns", _TEXTS),
            ("family", pa.string()),
            ("topmost", pa.bool_()),
            ("several", pa.bool_()),
            ("columns", pa.list_(pa.struct([("name", pa.string()), ("column", pa.string())]))),
            ("classes", _TEXTS),
            ("subscribers", _TEXTS),
        ]
    ),
    "ways": pa.schema(
        [
            ("way", pa.int32()),
            ("propagates", pa.bool_()),
            ("table", pa.string()),
            ("reference", pa.string()),
            ("near_column", pa.string()),
            ("far_column", pa.string()),
            ("near_family", pa.string()),
            ("far_family", pa.string()),
            ("near_table", pa.string()),
            ("far_table", pa.string()),
            ("association", pa.string()),
            ("forwards", pa.bool_()),
            ("kinds", _TEXTS),
            ("limited_to", _TEXTS),
        ]
    ),
    "members": pa.schema(
        [
            ("table", pa.string()),
            ("column", pa.string()),
            ("value", pa.string()),
            ("class", pa.string()),
            ("family", pa.string()),
            ("rank", pa.int32()),
        ]
    ),
    "above": pa.schema([("class", pa.string()), ("over", pa.string())]),
    "families": pa.schema([("class", pa.string()), ("family", pa.string())]),
    "labels": pa.schema(
        [("table", pa.string()), ("column", pa.string()), ("family", pa.string()), ("rank", pa.int32())]
    ),
}


@dataclass(frozen=True)
class ModelTables:
    """The small tables of a model, as rows and as broadcast data frames."""

    session: SparkSession
    view: RelationalView
    rows: Mapping[str, Sequence[Mapping[str, Any]]]

    @classmethod
    def of(cls, session: SparkSession, mapped: MappedModel) -> ModelTables:
        view = RelationalView(mapped)
        rows = {
            "tables": list(_build_tables(view)),
            "ways": list(_build_ways(view)),
            "members": list(_build_members(view)),
            "above": list(_build_ancestors(view)),
            "families": list(_build_families(view)),
            "labels": list(_build_labels(view)),
        }
        return cls(session, view, rows)

    def frame(self, name: str) -> DataFrame:
        table = pa.Table.from_pylist([dict(row) for row in self.rows[name]], _SCHEMAS[name])
        return F.broadcast(self.session.createDataFrame(table))

    def ways(self, propagates: bool) -> DataFrame:
        return self.frame("ways").where(F.col("propagates") == propagates)


def _build_tables(view: RelationalView) -> Iterator[dict[str, Any]]:
    names = set()
    for rows in view.rows():
        names.add(rows.table)
        columns = [{"name": name, "column": column} for name, column in rows.columns]
        yield {
            "table": rows.table,
            "holds": OBJECTS,
            "id_columns": [rows.key],
            "family": rows.family,
            "topmost": rows.is_topmost,
            "several": rows.has_others,
            "columns": columns,
        }
    yield from _build_link_tables(view, names)
    yield {
        "table": WATCH_TABLE_NAME,
        "holds": WATCHED,
        "id_columns": list(WATCH_COLUMNS),
        "classes": list(view.model.classes),
        "subscribers": [name for name in view.model.classes if view.model.is_subscriber(name)],
    }


def _build_link_tables(view: RelationalView, names: set[str]) -> Iterator[dict[str, Any]]:
    """Yield link tables of marked associations; a link is identified by its two ends."""
    columns: dict[str, list[str]] = {}
    for way in _list_ways(view):
        if way.relation.table not in names:
            columns.setdefault(way.relation.table, []).extend((way.relation.source, way.relation.target))
    for table, ends in columns.items():
        yield {"table": table, "holds": LINKS, "id_columns": list(dict.fromkeys(ends))}


def _list_ways(view: RelationalView) -> list[DirectedAssociation]:
    return [*view.propagating(), *view.implicit()]


def _build_ways(view: RelationalView) -> Iterator[dict[str, Any]]:
    count = len(view.propagating())
    for number, way in enumerate(_list_ways(view)):
        limits = way.limits
        yield {
            "way": number,
            "propagates": number < count,
            "table": way.relation.table,
            "reference": way.relation.reference,
            "near_column": way.near,
            "far_column": way.far,
            "near_family": way.near_family,
            "far_family": way.far_family,
            "near_table": view.mapped.tables[way.near_class].name,
            "far_table": view.mapped.tables[way.far_class].name,
            "association": way.name,
            "forwards": way.forwards,
            "kinds": None if limits.kinds is None else sorted(kind.value for kind in limits.kinds),
            "limited_to": None if limits.attributes is None else sorted(limits.attributes),
        }


def _build_members(view: RelationalView) -> Iterator[dict[str, Any]]:
    """Yield the conditions of subclasses; the deepest class of an object counts."""
    model, tables = view.model, view.mapped.tables
    for index, name in enumerate(model.classes):
        table, family = tables[name], model.family(name)
        discriminator = table.discriminator
        if name == family or (discriminator is not None and discriminator.value is None):
            continue
        yield {
            "table": (discriminator.table if discriminator is not None else None) or table.name,
            "column": None if discriminator is None else discriminator.column,
            "value": None if discriminator is None else str(discriminator.value),
            "class": name,
            "family": family,
            "rank": len(list(model.lineage(name))) * len(model.classes) - index,
        }


def _build_ancestors(view: RelationalView) -> Iterator[dict[str, Any]]:
    for name in view.model.classes:
        for ancestor in view.model.lineage(name):
            yield {"class": name, "over": ancestor.name}


def _build_families(view: RelationalView) -> Iterator[dict[str, Any]]:
    for name in view.model.classes:
        yield {"class": name, "family": view.model.family(name)}


def _build_labels(view: RelationalView) -> Iterator[dict[str, Any]]:
    """Yield the label columns in the table of a class itself; that of the deepest class counts."""
    model, tables = view.model, view.mapped.tables
    for name in model.classes:
        label = model.label_of(name)
        if label is not None and label in tables[name].columns:
            yield {
                "table": tables[name].name,
                "column": tables[name].columns[label],
                "family": model.family(name),
                "rank": len(list(model.lineage(name))),
            }

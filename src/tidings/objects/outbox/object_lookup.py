"""Lookup of objects in the user's tables: by key or label, their labels, and their current values."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tidings.core.suggest import MOST_COMPARED, did_you_mean, printable, shorten_list
from tidings.core.text import plural
from tidings.errors import InputError
from tidings.objects.model.class_model import Model
from tidings.objects.model.relational_view import RelationalView, quote_name
from tidings.objects.model.table_mapping import ClassTable, MappedModel
from tidings.objects.outbox.tables import DatabaseConnection
from tidings.objects.propagation import Object
from tidings.objects.triggers.dialect import Dialect

MAX_KEYS_PER_QUERY = 10_000
"""Maximum number of keys in one query."""


class ObjectLookup(DatabaseConnection):
    """Objects and their labels: `Course:2` is DataStructures."""

    def labels(self, mapped: MappedModel, objects: Collection[Object]) -> Mapping[Object, str]:
        """Return the label of each object, or its key if its class has none; deleted objects are left out."""
        self.require_outbox()
        labels: dict[Object, str] = {}
        for family, keys in _by_family(mapped.model, objects):
            queries = _LabelQueries(RelationalView(mapped), self.dialect, family)
            for key, label in self._select_labels(queries, keys):
                labels[Object(family, key)] = label or key
        return labels

    def _select_labels(self, queries: _LabelQueries, keys: list[str]) -> list[tuple[str, str | None]]:
        parameter = json.dumps(keys)
        try:
            return [
                (key, label) for key, label in self.query(queries.where(queries.has_one_of("$1")), parameter)
            ]
        except (
            self.conversion_error
        ):  # a watch may name an impossible key: Student:abc, where keys are numbers
            return [
                (key, label)
                for key, label in self.query(queries.where(queries.has_one_of_as_text("$1")), parameter)
            ]

    def find(self, mapped: MappedModel, cls: str, key_or_label: str) -> str:
        """Find an object by its key, or by its label if that is unique, and return its key."""
        key = self.find_if_any(mapped, cls, key_or_label)
        if key is not None:
            return key
        queries = _LabelQueries(RelationalView(mapped), self.dialect, mapped.model.family(cls))
        examples = self.query(f"{queries.where(queries.is_a(cls))} LIMIT {MOST_COMPARED + 1}")
        raise _build_unknown_error(
            mapped.model, cls, key_or_label, [str(label) for _, label in examples if label]
        )

    def find_if_any(self, mapped: MappedModel, cls: str, key_or_label: str) -> str | None:
        """Like `find`, but return None if there is no such object; an ambiguous label is rejected."""
        self.require_outbox()
        check_class(mapped.model, cls)
        queries = _LabelQueries(RelationalView(mapped), self.dialect, mapped.model.family(cls))
        for condition in (queries.has_key("$1"), queries.has_label("$1")):
            keys = self._select_keys(queries.where(condition, queries.is_a(cls)), key_or_label)
            if len(keys) == 1:
                return keys[0]
            if keys:
                raise _build_ambiguity_error(cls, key_or_label, keys)
        return None

    def _select_keys(self, statement: str, key_or_label: str) -> list[str]:
        try:
            return [str(key) for key, _ in self.query(statement, key_or_label)]
        except self.conversion_error:  # 'Ada' is not a key where keys are numbers
            return []


def check_class(model: Model, cls: str) -> None:
    """Raise if the model has no such class."""
    if cls not in model.classes:
        names = list(model.classes)
        hint = did_you_mean(cls, names)
        raise InputError(
            "the model has no such class",
            received=printable(cls),
            accepted=shorten_list(names, shown=printable),
            hint=hint,
        )


def _build_ambiguity_error(cls: str, key_or_label: str, keys: list[str]) -> InputError:
    message = f"{plural(len(keys), 'object')} of {printable(cls)} have this label"
    hint = f"their keys are {shorten_list(keys, shown=printable)}"
    return InputError(message, received=printable(key_or_label), accepted="a key", hint=hint)


def _build_unknown_error(model: Model, cls: str, key_or_label: str, labels: list[str]) -> InputError:
    label = model.label_of(cls)
    accepted = "a key" if label is None else f"a key or {printable(label)}"
    hint = did_you_mean(key_or_label, labels)
    return InputError(
        f"there is no such {printable(cls)}", received=printable(key_or_label), accepted=accepted, hint=hint
    )


def _by_family(model: Model, objects: Collection[Object]) -> Iterator[tuple[str, list[str]]]:
    """Yield keys in batches, for the families that the model still has: the outbox may be older."""
    keys: dict[str, set[str]] = {}
    for object in objects:
        keys.setdefault(object.family, set()).add(str(object.key))
    for family in keys.keys() & model.classes.keys():
        sorted_keys = sorted(keys[family])
        for start in range(0, len(sorted_keys), MAX_KEYS_PER_QUERY):
            yield family, sorted_keys[start : start + MAX_KEYS_PER_QUERY]


@dataclass(frozen=True)
class _LabelQueries:
    """Queries for the keys and labels of a family, over its topmost table as `t`."""

    view: RelationalView
    dialect: Dialect
    family: str

    def where(self, *conditions: str) -> str:
        table = quote_name(self.view.mapped.tables[self.family].name)
        columns = f"{self.dialect.key_to_text(self._key)}, {self._label_expression()}"
        return f"SELECT {columns} FROM {table} AS t WHERE {' AND '.join(conditions)}"

    def has_one_of(self, keys: str) -> str:
        key = self.dialect.text_to_key(self.family, "value")
        return f"{self._key} IN (SELECT {key} FROM ({self.dialect.json_values(keys)}) AS listed)"

    def has_one_of_as_text(self, keys: str) -> str:
        """Compare keys as text, which cannot use an index."""
        return f"{self.dialect.key_to_text(self._key)} IN ({self.dialect.json_values(keys)})"

    def has_key(self, key: str) -> str:
        return f"{self._key} = {self.dialect.text_to_key(self.family, key)}"

    def has_label(self, label: str) -> str:
        return f"{self._label_expression()} = {label}"

    def is_a(self, cls: str) -> str:
        return self.view.is_a(cls, self._key) or "1 = 1"

    @property
    def _key(self) -> str:
        return f"t.{quote_name(self.view.mapped.tables[self.family].key)}"

    def _label_expression(self) -> str:
        """Build the expression of a label: subclasses may have their own, and the deepest class counts."""
        descendants = self.view.below(self.family)
        cases = "".join(f" WHEN {self.is_a(cls)} THEN {self._label_of_class(cls)}" for cls in descendants)
        default = self._label_of_class(self.family)
        return f"CASE{cases} ELSE {default} END" if cases else default

    def _label_of_class(self, cls: str) -> str:
        attribute = self.view.model.label_of(cls)
        if attribute is None:
            return self.dialect.to_text("NULL")
        tables = [self.view.mapped.tables[each.name] for each in self.view.model.lineage(cls)]
        table = next(each for each in tables if attribute in each.columns)
        column = quote_name(table.columns[attribute])
        if table.name == tables[-1].name:
            return self.dialect.to_text(f"t.{column}")
        value, key = self.dialect.to_text(f"o.{column}"), f"o.{quote_name(table.key)}"
        return f"(SELECT {value} FROM {quote_name(table.name)} AS o WHERE {key} = {self._key})"


ValuesByKey = Mapping[str, Mapping[str, Any]]
"""By key, the values of attributes by name, for JSON."""


class ValueReader(DatabaseConnection):
    """Reader of the current values of objects."""

    def values(self, mapped: MappedModel, cls: str, keys: Collection[str]) -> ValuesByKey:
        """Read the values of objects of a class; deleted objects, and classes not in the model, have none."""
        values: dict[str, dict[str, Any]] = {}
        if cls in mapped.model.classes:
            parameter, family = json.dumps(sorted(keys)), mapped.model.family(cls)
            for cls_above in mapped.model.lineage(cls):
                for key, *row in self.query(
                    self._build_query(mapped.tables[cls_above.name], family), parameter
                ):
                    columns = mapped.tables[cls_above.name].columns
                    values.setdefault(key, {}).update(zip(columns, row, strict=True))
        return values

    def _build_query(self, table: ClassTable, family: str) -> str:
        key, dialect = f"t.{quote_name(table.key)}", self.dialect
        columns = (
            dialect.key_to_text(key),
            *(dialect.to_json(f"t.{quote_name(each)}") for each in table.columns.values()),
        )
        listed = f"SELECT {dialect.text_to_key(family, 'value')} FROM ({dialect.json_values('$1')}) AS listed"
        return f"SELECT {', '.join(columns)} FROM {quote_name(table.name)} AS t WHERE {key} IN ({listed})"

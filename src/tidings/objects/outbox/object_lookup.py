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
        self.need_outbox()
        found: dict[Object, str] = {}
        for family, keys in _by_family(mapped.model, objects):
            names = _LabelQueries(RelationalView(mapped), self.dialect, family)
            for key, label in self._named(names, keys):
                found[Object(family, key)] = label or key
        return found

    def _named(self, names: _LabelQueries, keys: list[str]) -> list[tuple[str, str | None]]:
        asked = json.dumps(keys)
        try:
            return [(key, label) for key, label in self.ask(names.where(names.has_one_of("$1")), asked)]
        except self.unfit:  # somebody may watch who cannot exist: Student:abc, where keys are numbers
            return [(key, label) for key, label in self.ask(names.where(names.reads_as_one_of("$1")), asked)]

    def find(self, mapped: MappedModel, cls: str, word: str) -> str:
        """Find an object by its key, or by its label if that is unique, and return its key."""
        found = self.find_if_any(mapped, cls, word)
        if found is not None:
            return found
        names = _LabelQueries(RelationalView(mapped), self.dialect, mapped.model.family(cls))
        near = self.ask(f"{names.where(names.is_a(cls))} LIMIT {MOST_COMPARED + 1}")
        raise _unknown(mapped.model, cls, word, [str(label) for _, label in near if label])

    def find_if_any(self, mapped: MappedModel, cls: str, word: str) -> str | None:
        """Like `find`, but return None if there is no such object; an ambiguous label is rejected."""
        self.need_outbox()
        check_class(mapped.model, cls)
        names = _LabelQueries(RelationalView(mapped), self.dialect, mapped.model.family(cls))
        for condition in (names.has_key("$1"), names.has_label("$1")):
            keys = self._keys(names.where(condition, names.is_a(cls)), word)
            if len(keys) == 1:
                return keys[0]
            if keys:
                raise _ambiguous(cls, word, keys)
        return None

    def _keys(self, query: str, word: str) -> list[str]:
        try:
            return [str(key) for key, _ in self.ask(query, word)]
        except self.unfit:  # 'Ada' is no key where keys are numbers
            return []


def check_class(model: Model, cls: str) -> None:
    """Raise if the model has no such class."""
    if cls not in model.classes:
        known = list(model.classes)
        hint = did_you_mean(cls, known)
        raise InputError(
            "the model has no such class",
            received=printable(cls),
            accepted=shorten_list(known, shown=printable),
            hint=hint,
        )


def _ambiguous(cls: str, word: str, keys: list[str]) -> InputError:
    what = f"{plural(len(keys), 'object')} of {printable(cls)} have this label"
    hint = f"their keys are {shorten_list(keys, shown=printable)}"
    return InputError(what, received=printable(word), accepted="a key", hint=hint)


def _unknown(model: Model, cls: str, word: str, labels: list[str]) -> InputError:
    label = model.label_of(cls)
    accepted = "a key" if label is None else f"a key or {printable(label)}"
    hint = did_you_mean(word, labels)
    return InputError(
        f"there is no such {printable(cls)}", received=printable(word), accepted=accepted, hint=hint
    )


def _by_family(model: Model, objects: Collection[Object]) -> Iterator[tuple[str, list[str]]]:
    """Yield keys in batches, for the families that the model still has: the outbox may be older."""
    keys: dict[str, set[str]] = {}
    for each in objects:
        keys.setdefault(each.family, set()).add(str(each.key))
    for family in keys.keys() & model.classes.keys():
        those = sorted(keys[family])
        for at in range(0, len(those), MAX_KEYS_PER_QUERY):
            yield family, those[at : at + MAX_KEYS_PER_QUERY]


@dataclass(frozen=True)
class _LabelQueries:
    """Queries for the keys and labels of a family, over its topmost table as `t`."""

    view: RelationalView
    dialect: Dialect
    family: str

    def where(self, *conditions: str) -> str:
        table = quote_name(self.view.mapped.tables[self.family].name)
        columns = f"{self.dialect.kept(self._key)}, {self._label()}"
        return f"SELECT {columns} FROM {table} AS t WHERE {' AND '.join(conditions)}"

    def has_one_of(self, keys: str) -> str:
        typed = self.dialect.key(self.family, "value")
        return f"{self._key} IN (SELECT {typed} FROM ({self.dialect.listed(keys)}) AS listed)"

    def reads_as_one_of(self, keys: str) -> str:
        """Compare keys as text, which cannot use an index."""
        return f"{self.dialect.kept(self._key)} IN ({self.dialect.listed(keys)})"

    def has_key(self, key: str) -> str:
        return f"{self._key} = {self.dialect.key(self.family, key)}"

    def has_label(self, label: str) -> str:
        return f"{self._label()} = {label}"

    def is_a(self, cls: str) -> str:
        return self.view.is_a(cls, self._key) or "1 = 1"

    @property
    def _key(self) -> str:
        return f"t.{quote_name(self.view.mapped.tables[self.family].key)}"

    def _label(self) -> str:
        """Build the expression of a label: subclasses may have their own, and the deepest class counts."""
        below = self.view.below(self.family)
        cases = "".join(f" WHEN {self.is_a(cls)} THEN {self._value(cls)}" for cls in below)
        last = self._value(self.family)
        return f"CASE{cases} ELSE {last} END" if cases else last

    def _value(self, cls: str) -> str:
        attribute = self.view.model.label_of(cls)
        if attribute is None:
            return self.dialect.shown("NULL")
        tables = [self.view.mapped.tables[each.name] for each in self.view.model.lineage(cls)]
        table = next(each for each in tables if attribute in each.columns)
        column = quote_name(table.columns[attribute])
        if table.name == tables[-1].name:
            return self.dialect.shown(f"t.{column}")
        value, key = self.dialect.shown(f"o.{column}"), f"o.{quote_name(table.key)}"
        return f"(SELECT {value} FROM {quote_name(table.name)} AS o WHERE {key} = {self._key})"


ValuesByKey = Mapping[str, Mapping[str, Any]]
"""By key, the values of attributes by name, for JSON."""


class ValueReader(DatabaseConnection):
    """Reader of the current values of objects."""

    def values(self, mapped: MappedModel, cls: str, keys: Collection[str]) -> ValuesByKey:
        """Read the values of objects of a class; deleted objects, and classes not in the model, have none."""
        found: dict[str, dict[str, Any]] = {}
        if cls in mapped.model.classes:
            asked, family = json.dumps(sorted(keys)), mapped.model.family(cls)
            for each in mapped.model.lineage(cls):
                for key, *row in self.ask(self._query(mapped.tables[each.name], family), asked):
                    names = mapped.tables[each.name].columns
                    found.setdefault(key, {}).update(zip(names, row, strict=True))
        return found

    def _query(self, table: ClassTable, family: str) -> str:
        key, say = f"t.{quote_name(table.key)}", self.dialect
        columns = (say.kept(key), *(say.value(f"t.{quote_name(each)}") for each in table.columns.values()))
        these = f"SELECT {say.key(family, 'value')} FROM ({say.listed('$1')}) AS listed"
        return f"SELECT {', '.join(columns)} FROM {quote_name(table.name)} AS t WHERE {key} IN ({these})"

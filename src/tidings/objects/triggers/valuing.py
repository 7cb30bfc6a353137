"""The values that objects have now, read from the user's own tables."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

from tidings.objects.placing import ClassTable, Placed
from tidings.objects.triggers.asking import Asking
from tidings.objects.triggers.words import quoted

Values = Mapping[str, Mapping[str, Any]]
"""By key, the values of attributes by name, fit for JSON."""


class Valuing(Asking):
    """Rows as objects."""

    def values(self, placed: Placed, cls: str, keys: Collection[str]) -> Values:
        """Of objects of a class. Those that are gone are not in it, and neither is a class that the model has not."""
        found: dict[str, dict[str, Any]] = {}
        if cls in placed.model.classes:
            asked, family = json.dumps(sorted(keys)), placed.model.family(cls)
            for each in placed.model.lineage(cls):
                for key, *row in self.ask(self._query(placed.tables[each.name], family), asked):
                    names = placed.tables[each.name].columns
                    found.setdefault(key, {}).update(zip(names, row, strict=True))
        return found

    def _query(self, table: ClassTable, family: str) -> str:
        key, say = f"t.{quoted(table.key)}", self.dialect
        columns = (say.kept(key), *(say.value(f"t.{quoted(each)}") for each in table.columns.values()))
        these = f"SELECT {say.key(family, 'value')} FROM ({say.listed('$1')}) AS listed"
        return f"SELECT {', '.join(columns)} FROM {quoted(table.name)} AS t WHERE {key} IN ({these})"

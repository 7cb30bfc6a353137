"""Where in a TOML text a setting stands. Python's reader of TOML tells values only, and not where they were."""

from __future__ import annotations

import re

from tidings.errors import Place

_TABLE = re.compile(r"\s*\[\s*([^\[\]]+?)\s*\]")
_KEY = re.compile(r"\s*([A-Za-z0-9_.\"'-]+)\s*=")


def place_of(text: str, path: tuple[str, ...]) -> Place | None:
    """The key of a setting, as `key =` below its `[table]` or as `table.key =`; None where it is written otherwise."""
    table: tuple[str, ...] = ()
    start = 0
    for line in text.splitlines(keepends=True):
        if header := _TABLE.match(line):
            table = _names(header[1])
            if table == path:
                return Place.at(text, start + header.start(1), start + header.end(1))
        elif (key := _KEY.match(line)) and (*table, *_names(key[1])) == path[
            : len(table) + key[1].count(".") + 1
        ]:
            return Place.at(text, start + key.start(1), start + key.end(1))
        start += len(line)
    return None


def _names(dotted: str) -> tuple[str, ...]:
    return tuple(name.strip().strip("\"'") for name in dotted.split("."))

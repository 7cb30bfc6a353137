"""Server-sent events, line by line."""

from __future__ import annotations

import re
from dataclasses import dataclass

_CURSOR = re.compile("[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class Block:
    """What stands between two empty lines: an id, data, or both."""

    id: int
    data: str | None


class EventLines:
    """Gathers lines to blocks. Comments and what is not for notifications say nothing."""

    def __init__(self) -> None:
        self._id: int | None = None
        self._data: list[str] = []

    def take(self, line: str) -> Block | None:
        """The block that ends with this line, if one does."""
        if line:
            name, _, value = line.partition(":")
            self._field(name, value.removeprefix(" "))
            return None
        id, data = self._id, self._data
        self._id, self._data = None, []
        return None if id is None else Block(id, "\n".join(data) if data else None)

    def _field(self, name: str, value: str) -> None:
        if name == "id" and _CURSOR.fullmatch(value):
            self._id = int(value)
        elif name == "data":
            self._data.append(value)

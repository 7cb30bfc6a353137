"""The log of metadata: what was registered and removed, in one order, the same at every provider.

Who applies the same entries in the same order has the same metadata: providers are equal at equal positions. Rules are
not in it: they belong to one provider.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class What(Enum):
    """What an entry does."""

    REGISTER = "register"
    REMOVE = "remove"
    SCHEMA = "schema"


@dataclass(frozen=True, slots=True)
class Draft:
    """An entry that has no place in the log yet. To remove a document takes its URI alone, and a schema has none."""

    what: What
    uri: str = ""
    media_type: str = ""
    body: bytes = b""

    def at(self, position: int) -> Entry:
        return Entry(position, self.what, self.uri, self.media_type, self.body)


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of the log. Positions count from one, without gaps."""

    position: int
    what: What
    uri: str
    media_type: str
    body: bytes

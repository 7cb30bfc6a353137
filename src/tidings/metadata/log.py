"""The log of metadata: what was registered and removed, in one order, the same at every provider.

Who applies the same entries in the same order has the same metadata: providers are equal at equal positions. Rules are
not in it: they belong to one provider.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from tidings.errors import InputError
from tidings.metadata.resources import parse_natural


class Operation(Enum):
    """What an entry does."""

    REGISTER = "register"
    REMOVE = "remove"
    SCHEMA = "schema"


@dataclass(frozen=True, slots=True)
class LogDraft:
    """An entry that has no place in the log yet. To remove a document takes its URI alone, and a schema has none."""

    what: Operation
    uri: str = ""
    media_type: str = ""
    body: bytes = b""

    def at(self, position: int) -> LogEntry:
        return LogEntry(position, self.what, self.uri, self.media_type, self.body)


@dataclass(frozen=True, slots=True)
class LogEntry:
    """An entry of the log. Positions count from one, without gaps."""

    position: int
    what: Operation
    uri: str
    media_type: str
    body: bytes


# Pages of the log, and how they travel: as JSON, bodies as Base64 because they need not be text.


@dataclass(frozen=True, slots=True)
class LogPage:
    """Entries that follow each other, of a log whose first one is at `first` and whose last one is at `head`.

    `provider` is whose log it is, so that somebody else in the same place is noticed.
    """

    provider: str
    first: int
    head: int
    entries: tuple[LogEntry, ...]


def page_to_json(page: LogPage) -> dict[str, Any]:
    """A page as what `json.dumps` takes."""
    entries = [_entry_to_json(each) for each in page.entries]
    return {"provider": page.provider, "first": page.first, "head": page.head, "entries": entries}


def page_from_json(record: Mapping[str, Any]) -> LogPage:
    """The page of `page_to_json`. Anything else is refused."""
    try:
        entries = tuple(map(_entry_from_json, record["entries"]))
        return LogPage(
            str(record["provider"]), parse_natural(record["first"]), parse_natural(record["head"]), entries
        )
    except (KeyError, TypeError, ValueError) as error:
        raise InputError("this is no page of a log", received=repr(record)[:200]) from error


def _entry_to_json(entry: LogEntry) -> dict[str, Any]:
    return {
        "position": entry.position,
        "what": entry.what.value,
        "uri": entry.uri,
        "media_type": entry.media_type,
        "body": b64encode(entry.body).decode(),
    }


def _entry_from_json(record: Mapping[str, Any]) -> LogEntry:
    body = b64decode(record["body"], validate=True)
    position, what = parse_natural(record["position"]), Operation(record["what"])
    return LogEntry(position, what, str(record["uri"]), str(record["media_type"]), body)

"""Entries of the metadata log: registrations, removals and schemas in one total order.

Providers that apply the same entries in the same order have the same metadata: they are equal at equal positions. Rules
are not in the log; they belong to one provider.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

from tidings.errors import InputError
from tidings.metadata.resources import parse_natural


class Operation(Enum):
    """The effect of a log entry."""

    REGISTER = "register"
    REMOVE = "remove"
    SCHEMA = "schema"


@dataclass(frozen=True, slots=True)
class LogDraft:
    """An entry without a position yet. A removal has only a URI; a schema has none."""

    what: Operation
    uri: str = ""
    media_type: str = ""
    body: bytes = b""

    def at(self, position: int) -> LogEntry:
        return LogEntry(position, self.what, self.uri, self.media_type, self.body)


@dataclass(frozen=True, slots=True)
class LogEntry:
    """An entry of the log. Positions start at 1 and have no gaps."""

    position: int
    what: Operation
    uri: str
    media_type: str
    body: bytes


@dataclass(frozen=True, slots=True)
class LogPage:
    """Consecutive entries of a log that starts at `first` and ends at `head`.

    `provider` is the id of the log's owner, so that a follower notices a different provider at the same address.
    """

    provider: str
    first: int
    head: int
    entries: tuple[LogEntry, ...]


def page_to_json(page: LogPage) -> dict[str, Any]:
    """Convert a page to a JSON object. Bodies are Base64: they need not be text."""
    entries = [_entry_to_json(entry) for entry in page.entries]
    return {"provider": page.provider, "first": page.first, "head": page.head, "entries": entries}


def page_from_json(record: Mapping[str, Any]) -> LogPage:
    """Parse the result of `page_to_json`; raise InputError for anything else."""
    try:
        entries = tuple(map(_entry_from_json, record["entries"]))
        first, head = parse_natural(record["first"]), parse_natural(record["head"])
        return LogPage(str(record["provider"]), first, head, entries)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError("not a page of a log", received=repr(record)[:200]) from error


def _entry_to_json(entry: LogEntry) -> dict[str, Any]:
    return asdict(entry) | {"what": entry.what.value, "body": b64encode(entry.body).decode()}


def _entry_from_json(record: Mapping[str, Any]) -> LogEntry:
    body = b64decode(record["body"], validate=True)
    position, operation = parse_natural(record["position"]), Operation(record["what"])
    return LogEntry(position, operation, str(record["uri"]), str(record["media_type"]), body)

"""Pages of the log, and how they travel: as JSON, bodies as Base64 because they need not be text."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tidings.errors import InputError
from tidings.metadata.as_json import natural
from tidings.metadata.log import Entry, What


@dataclass(frozen=True, slots=True)
class Page:
    """Entries that follow each other, of a log whose first one is at `first` and whose last one is at `head`.

    `provider` is whose log it is, so that somebody else in the same place is noticed.
    """

    provider: str
    first: int
    head: int
    entries: tuple[Entry, ...]


def page_to_json(page: Page) -> dict[str, Any]:
    """A page as what `json.dumps` takes."""
    entries = [_entry_to_json(each) for each in page.entries]
    return {"provider": page.provider, "first": page.first, "head": page.head, "entries": entries}


def page_from_json(record: Mapping[str, Any]) -> Page:
    """The page of `page_to_json`. Anything else is refused."""
    try:
        entries = tuple(map(_entry_from_json, record["entries"]))
        return Page(str(record["provider"]), natural(record["first"]), natural(record["head"]), entries)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError("this is no page of a log", received=repr(record)[:200]) from error


def _entry_to_json(entry: Entry) -> dict[str, Any]:
    return {
        "position": entry.position,
        "what": entry.what.value,
        "uri": entry.uri,
        "media_type": entry.media_type,
        "body": b64encode(entry.body).decode(),
    }


def _entry_from_json(record: Mapping[str, Any]) -> Entry:
    body = b64decode(record["body"], validate=True)
    position, what = natural(record["position"]), What(record["what"])
    return Entry(position, what, str(record["uri"]), str(record["media_type"]), body)

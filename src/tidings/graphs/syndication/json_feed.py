"""JSON Feed 1.0 and 1.1."""

from __future__ import annotations

import html
from collections.abc import Iterator
from typing import Any

from tidings.errors import DecodeProblem
from tidings.graphs.syndication.feed import Feed, omitted_from_json
from tidings.graphs.syndication.item_graph import Entry, resolved
from tidings.parsers.strict_json import BATCHED, MOST_VALUES, has_more_values, parse, values_problem

VERSIONS = ("https://jsonfeed.org/version/1", "https://jsonfeed.org/version/1.1")


class JsonFeed:
    """Reader of a JSON Feed."""

    def __init__(self, body: bytes, url: str | None) -> None:
        if has_more_values(body, BATCHED * MOST_VALUES):
            raise values_problem(BATCHED * MOST_VALUES)
        self._document, self._url = parse(body), url
        version = self._document.get("version")
        if version not in VERSIONS:
            received = "no version" if version is None else repr(version)[:80]
            raise DecodeProblem(
                "not a JSON Feed", where="version", received=received, accepted=", ".join(VERSIONS)
            )

    def feed(self) -> Feed:
        feed = self._document
        hubs = (resolved(self._url, _text(hub, "url", "hubs")) for hub in _list(feed, "hubs", dict, ""))
        return Feed(
            title=_text(feed, "title"),
            link=resolved(self._url, _text(feed, "home_page_url")),
            description=_text(feed, "description"),
            language=_text(feed, "language"),
            hubs=tuple(hub for hub in hubs if hub),
            self_link=resolved(self._url, _text(feed, "feed_url")),
            left_out=omitted_from_json(_list(feed, "items", dict, "")),
        )

    def entries(self) -> Iterator[Entry]:
        for place, item in enumerate(_list(self._document, "items", dict, "")):
            yield self._entry(item, f"items[{place}]")

    def _entry(self, item: dict[str, Any], where: str) -> Entry:
        text, marked = _text(item, "content_text", where), _text(item, "content_html", where)
        files = (_text(file, "url", where) for file in _list(item, "attachments", dict, where))
        linked = (resolved(self._url, file) for file in files)
        escaped = html.escape(text, quote=False) if text else None
        link = _text(item, "url", where) or _text(item, "external_url", where)
        return Entry(
            id=_text(item, "id", where),
            link=resolved(self._url, link),
            title=_text(item, "title", where),
            description=_text(item, "summary", where) or text,
            content=marked or escaped,
            published=_text(item, "date_published", where),
            updated=_text(item, "date_modified", where),
            language=_text(item, "language", where),
            creators=_authors(item, where) or _authors(self._document, ""),
            subjects=tuple(dict.fromkeys(_list(item, "tags", str, where))),
            enclosures=tuple(file for file in linked if file),
        )


def _authors(holder: dict[str, Any], where: str) -> tuple[str, ...]:
    """Return the names of authors; 1.0 has one `author`, 1.1 has `authors`."""
    authors, single = _list(holder, "authors", dict, where), holder.get("author")
    authors = authors or ([single] if isinstance(single, dict) else [])
    return tuple(name for author in authors if (name := _text(author, "name", where)))


def _text(holder: dict[str, Any], key: str, where: str = "") -> str | None:
    """Return a string. Early feeds have numbers as ids, and the specification asks readers to accept them."""
    value = holder.get(key)
    if value is None or value == "":
        return None
    if isinstance(value, str):
        return value.strip() or None
    if key == "id" and isinstance(value, int | float):
        return str(value)
    raise _invalid_value(key, where, value, "a string")


def _list(holder: dict[str, Any], key: str, kind: type, where: str) -> list[Any]:
    value = holder.get(key)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(each, kind) for each in value):
        raise _invalid_value(key, where, value, f"an array of {'strings' if kind is str else 'objects'}")
    return value


def _invalid_value(key: str, where: str, value: object, accepted: str) -> DecodeProblem:
    place = f"{where}.{key}" if where else key
    return DecodeProblem("invalid JSON Feed", where=place, received=type(value).__name__, accepted=accepted)

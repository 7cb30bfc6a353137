"""Publications and errors as HTML: indented, with the matching values or the wrong place marked."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from typing import Any

from markupsafe import Markup, escape

from tidings.errors import DecodeProblem, Overloaded, Place
from tidings.model import Publication
from tidings.parsers.parser_pool import isolated
from tidings.parsers.xml_bytes import as_utf8
from tidings.parsers.xml_parser import indented

LONGEST = 200_000
"""Characters of a publication that are shown."""

AROUND, WIDE = 4, 300
"""Lines above and below the place of an error, and characters left and right of it."""

_BETWEEN_TAGS = re.compile(r">\s*\n\s*<")


def highlight_publication(publication: Publication, marked: Collection[str] = ()) -> Markup:
    """Return the body of a publication; values at the JSON pointers in `marked` are highlighted."""
    try:
        text = publication.body.decode()
    except UnicodeDecodeError:
        return Markup.escape(publication.body[:64].hex(" ") + " …")
    if len(text) > LONGEST:
        return Markup.escape(text[:LONGEST]) + Markup("<em>… and so on</em>")
    if publication.media_type.endswith("json"):
        return _json(text, {pointer.lstrip("/").replace("/", ".") for pointer in marked})
    return Markup.escape(_xml(text) if publication.media_type.endswith("xml") else text)


def _json(text: str, paths: Collection[str]) -> Markup:
    """Return JSON with highlighting; invalid or deeply nested text unchanged."""
    try:
        return Markup("").join(_value(json.loads(text.removeprefix("\ufeff")), "", "\n", paths))
    except (ValueError, RecursionError):
        return Markup.escape(text)


def _value(value: Any, path: str, line: str, paths: Collection[str]) -> Iterator[Markup]:
    """Yield the parts of a value. The items of a list have the path of the list, as in predicates."""
    if not isinstance(value, dict | list) or not value:
        is_marked = path in paths or path.removeprefix("data.") in paths
        kind = "mark" if is_marked else "span"
        said = json.dumps(value, ensure_ascii=False)
        yield Markup(f'<{kind} class="{_kind(value)}">{escape(said)}</{kind}>')
        return
    opened, closed = "{}" if isinstance(value, dict) else "[]"
    inner = f"{line}  "
    yield Markup(opened)
    for at, (name, one) in enumerate(_members(value)):
        yield Markup("," if at else "") + Markup(inner)
        if name is not None:
            yield Markup(f'<span class="key">{escape(json.dumps(name, ensure_ascii=False))}</span>: ')
        below = path if name is None else f"{path}.{name}".lstrip(".")
        yield from _value(one, below, inner, paths)
    yield Markup(f"{line}{closed}")


def _members(value: dict[str, Any] | list[Any]) -> Iterator[tuple[str | None, Any]]:
    if isinstance(value, dict):
        yield from value.items()
    else:
        yield from ((None, one) for one in value)


def _kind(value: Any) -> str:
    if isinstance(value, str):
        return "string"
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else "word"


def _xml(text: str) -> str:
    """Return XML indented, unless it has lines already; invalid XML unchanged."""
    if _BETWEEN_TAGS.search(text) or "<!" in text:
        return text
    try:
        return isolated(indented, as_utf8(text.encode()))
    except (DecodeProblem, Overloaded):
        return text


def highlight_place(place: Place) -> Markup:
    """Return the text of an error with the place marked; of a long text only its surroundings."""
    lines = place.text.split("\n")
    at, start = place.line - 1, place.column - 1
    line = lines[at] if at < len(lines) else ""
    end = start + max(1, place.length)
    head = "\n".join([*lines[max(0, at - AROUND) : at], line[max(0, start - WIDE) : start]])
    tail = "\n".join([line[end : end + WIDE], *lines[at + 1 : at + 1 + AROUND]])
    return Markup("{}<mark>{}</mark>{}").format(head, line[start:end] or " ", tail)

"""Preparation of JSON-LD for the parser: strict JSON, and contexts from local files.

Nothing is fetched. A context named by its address is replaced by a bundled one or one from the folder of
`TIDINGS_JSONLD_CONTEXTS`; any other is refused by name. Contexts inside a publication are limited: one that belongs to
a term is read again for each object below that term, and a few thousand terms, each defined by the next, overflow the
parser's stack.
"""

from __future__ import annotations

import codecs
import json
import os
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from tidings.core.suggest import printable
from tidings.errors import DecodeProblem, SetupError
from tidings.graphs.rdf.rdf_errors import Limits, at_most
from tidings.parsers.strict_json import parse_value

FOLDER = "TIDINGS_JSONLD_CONTEXTS"
"""Environment variable with a folder of additional contexts."""

INDEX = "contexts.json"
"""In each folder: the addresses of each context file, `{"mine.jsonld": ["https://example.org/context"]}`."""

_BUNDLED = Path(__file__).parent / "contexts"


def prepared(body: bytes, limits: Limits) -> bytes:
    """Return the publication with its contexts inserted, for the parser."""
    text = body.removeprefix(codecs.BOM_UTF8)
    value = parse_value(text)
    holders = list(_holders(value))
    terms = sum(len(context) for holder in holders for context in _context_objects(holder["@context"]))
    at_most("context_terms", terms, limits)
    named = [_put_in_place(holder) for holder in holders]
    if any(holder is not value for holder in holders):
        _limit_work(value, holders, limits)
    _limit_text(value, holders, limits)
    return json.dumps(value, ensure_ascii=False).encode() if any(named) else text


def _holders(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the objects with a context. The content of a literal (`@value`) is data, even if it resembles a context."""
    yield from (inner for inner in _objects(value) if "@context" in inner)


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    waiting = [value]
    while waiting:
        here = waiting.pop()
        if isinstance(here, dict):
            yield here
            waiting.extend(inner for key, inner in here.items() if key != "@value")
        elif isinstance(here, list):
            waiting.extend(here)


def _context_objects(context: Any) -> list[dict[str, Any]]:
    several = context if isinstance(context, list) else [context]
    return [each for each in several if isinstance(each, dict)]


def _limit_work(value: Any, holders: list[dict[str, Any]], limits: Limits) -> None:
    terms = sum(len(context) for holder in holders for context in _context_objects(holder["@context"]))
    at_most("context_work", terms * sum(1 for _ in _objects(value)), limits)


def _limit_text(value: Any, holders: list[dict[str, Any]], limits: Limits) -> None:
    """Limit expanded text: the parser expands all names before the first edge, with a long @vocab in each."""
    texts = (
        len(text) for holder in holders for inner in _objects(holder["@context"]) for text in _strings(inner)
    )
    longest = max(texts, default=0)
    names = sum(len(inner) + sum(1 for _ in _strings(inner)) for inner in _objects(value)) if longest else 0
    at_most("text", longest * names, limits, where="@context")


def _strings(inner: dict[str, Any]) -> Iterator[str]:
    for value in inner.values():
        several = value if isinstance(value, list) else (value,)
        yield from (text for text in several if isinstance(text, str))


def _put_in_place(holder: dict[str, Any]) -> bool:
    """Replace addresses by their contexts; return whether there were any."""
    context = holder["@context"]
    several = context if isinstance(context, list) else [context]
    for entry in several:
        if isinstance(entry, dict) and "@import" in entry:
            raise DecodeProblem(
                "@import in a context is not accepted", accepted="contexts one after the other"
            )
    made = [_context(entry) if isinstance(entry, str) else entry for entry in several]
    holder["@context"] = made if isinstance(context, list) else made[0]
    return any(isinstance(entry, str) for entry in several)


def _context(address: str) -> Any:
    bundled = contexts(os.environ.get(FOLDER, ""))
    if address not in bundled:
        message = "an unknown context; contexts are not fetched"
        hint = f"include the context in the publication, or add it to the folder in {FOLDER}"
        accepted = ", ".join(sorted(bundled))
        raise DecodeProblem(
            message, where="@context", received=printable(address), accepted=accepted, hint=hint
        )
    return bundled[address]


@lru_cache(maxsize=4)
def contexts(folder: str) -> Mapping[str, Any]:
    """Return the local contexts by address: bundled ones, and those of a folder, which have priority."""
    return dict(_contexts_in(_BUNDLED)) | (dict(_contexts_in(Path(folder))) if folder else {})


def _contexts_in(folder: Path) -> Iterator[tuple[str, Any]]:
    for file, addresses in _read(folder / INDEX).items():
        document = _read(folder / file)
        if "@context" not in document:
            raise SetupError("not a context", where=str(folder / file), accepted='{"@context": {...}}')
        for inner in _objects(document["@context"]):
            if "@import" in inner:
                raise SetupError("@import in a context is not accepted", where=str(folder / file))
        yield from ((address, document["@context"]) for address in addresses)


def _read(file: Path) -> dict[str, Any]:
    try:
        value = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        accepted = f"a folder with {INDEX} and the files that it names"
        raise SetupError(f"a context cannot be read: {error}", where=str(file), accepted=accepted) from None
    if not isinstance(value, dict):
        raise SetupError("a context cannot be read", where=str(file), accepted="a JSON object")
    return value

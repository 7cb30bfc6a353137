"""Many metadata documents, wherever they stand: the files of a folder, or a document a line.

    {"uri": "http://example.org/doc.rdf", "media_type": "text/turtle", "body": "<#host> a ..."}

A line may leave its media type out if the end of the URI says it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from urllib.parse import quote

from tidings.errors import InputError
from tidings.interfaces.cli import inputs
from tidings.metadata.log import Draft, What
from tidings.publications.rdf_media_types import FEEDS, SUFFIXES, graph_media_type_of

AT_ONCE = 1_000
"""How many documents go into the log in one transaction."""
LINE = '{"uri": ..., "media_type": ..., "body": ...}'
ENDINGS = ", ".join(ending for ending, kind in SUFFIXES.items() if kind not in FEEDS)


@dataclass(frozen=True, slots=True)
class Given:
    """A document, or why there is none; and where it stands."""

    where: str
    document: Draft | InputError


def batches(place: str, base: str | None) -> Iterator[list[Given]]:
    """The documents of a folder, whose URIs begin with `base`, or of lines, in batches as they come."""
    if inputs.is_several(place):
        if base is not None:
            raise InputError("--base is for the files of a folder: lines have their URIs")
        for lines in inputs.batches(place):
            yield from _in_batches(Given(line.where, _of_line(line.body)) for line in lines)
    else:
        yield from _in_batches(_of_folder(Path(place), base))


def _in_batches(given: Iterable[Given]) -> Iterator[list[Given]]:
    rest = iter(given)
    while batch := list(islice(rest, AT_ONCE)):
        yield batch


def _of_folder(folder: Path, base: str | None) -> Iterator[Given]:
    if not folder.is_dir():
        accepted = "a folder, a .jsonl file (.ndjson, .jsonl.gz), or - for standard input"
        raise InputError(f"no folder '{folder}'", accepted=accepted)
    if base is None:
        raise InputError(
            "what are the documents of a folder called?",
            accepted="--base IRI, to which the path in it is added",
        )
    for path in sorted(folder.rglob("*")):
        media_type = graph_media_type_of(path.name)
        if path.is_file() and media_type is not None and media_type not in FEEDS:
            yield Given(str(path), _of_file(path, base, folder, media_type))


def _of_file(path: Path, base: str, folder: Path, media_type: str) -> Draft | InputError:
    uri = base + quote(path.relative_to(folder).as_posix())
    try:
        return Draft(What.REGISTER, uri, media_type, path.read_bytes())
    except OSError as problem:
        return InputError("the file cannot be read", received=problem.strerror or str(problem))


def _of_line(line: bytes) -> Draft | InputError:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as problem:
        return InputError(f"this line is no JSON: {problem}", accepted=LINE)
    fields = [record.get(name) for name in ("uri", "media_type", "body")] if isinstance(record, dict) else []
    match fields:
        case [str(uri), str() | None as media_type, str(body)]:
            return _draft(uri, media_type or graph_media_type_of(uri), body)
        case _:
            received = line[:80].decode("utf-8", "replace")
            return InputError("this line is no document", received=received, accepted=LINE)


def _draft(uri: str, media_type: str | None, body: str) -> Draft | InputError:
    if media_type is None:
        accepted = f"a media_type, or a URI that ends in {ENDINGS}"
        return InputError("no idea what is in this document", received=uri, accepted=accepted)
    # Half a surrogate pair is no UTF-8: whoever reads the bytes says so.
    return Draft(What.REGISTER, uri, media_type, body.encode("utf-8", "surrogatepass"))

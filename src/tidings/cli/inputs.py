"""Input of commands: an argument, a file, or lines of a file or of standard input."""

from __future__ import annotations

import gzip
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from tidings.errors import InputError

LINE_SUFFIXES = (".jsonl", ".ndjson")
COMPRESSED_SUFFIXES = tuple(f"{ending}.gz" for ending in LINE_SUFFIXES)
"""The same as those of Spark jobs, whose modules are too heavy to import here."""
JSON, XML = "application/json", "application/xml"
ACCEPTED = (
    "a JSON object, an XML document, a .json, .xml or .jsonl file (.ndjson, .jsonl.gz), a graph (.ttl, .nt, .rdf, "
    ".jsonld, .trig, .nq), a feed (.rss, .atom, .jsonfeed), or - for standard input"
)
DAMAGED = "the events before the damage are published"
CHUNK = 1 << 20
LONGEST_LINE = 64 << 20
"""The longest line in bytes: a longer one is refused before it fills the memory."""


@dataclass(frozen=True, slots=True)
class InputLine:
    """A line and its place."""

    where: str
    body: bytes


def is_line_input(source: str) -> bool:
    """Return whether the input is read line by line."""
    return source == "-" or source.endswith(LINE_SUFFIXES + COMPRESSED_SUFFIXES)


def read_one(source: str) -> tuple[bytes, str]:
    """Read one publication, from the argument itself or from a file; return its bytes and its media type."""
    from tidings.kinds import find_media_type

    if source.lstrip()[:1] in ("{", "[", '"', "<"):
        return source.encode("utf-8", "surrogateescape"), XML if source.lstrip()[:1] == "<" else JSON

    path = _find_file(source)
    media_type = find_media_type(path.name)
    if media_type is None:
        raise InputError(f"the media type of '{source}' is unknown", accepted=ACCEPTED)
    return path.read_bytes(), media_type


def read_line_batches(
    source: str, accepted: str = ACCEPTED, damaged: str = DAMAGED
) -> Iterator[list[InputLine]]:
    """Read lines of a file or of standard input, in batches as they arrive; empty lines are counted and skipped.

    `accepted` and `damaged` are parts of the errors for a file that is missing or damaged.
    """
    if source == "-":
        yield from _read_batches("standard input", sys.stdin.buffer)
    elif source.endswith(COMPRESSED_SUFFIXES):
        with gzip.open(_find_file(source, accepted)) as stream:
            yield from _stop_at_damage(source, damaged, _read_batches(source, stream))
    else:
        with _find_file(source, accepted).open("rb") as stream:
            yield from _read_batches(source, stream)


def _stop_at_damage(name: str, damaged: str, batches: Iterator[list[InputLine]]) -> Iterator[list[InputLine]]:
    """Yield batches until the file is damaged; the ones before the damage are processed."""
    try:
        yield from batches
    except (gzip.BadGzipFile, EOFError, zlib.error) as problem:
        raise InputError("the file is damaged", where=name, hint=f"{problem}; {damaged}") from problem


def _read_batches(name: str, stream: BinaryIO | gzip.GzipFile) -> Iterator[list[InputLine]]:
    number, incomplete = 0, b""
    while chunk := stream.read1(CHUNK):  # type: ignore[union-attr]  # returns the available bytes: do not wait for a slow producer
        *lines, incomplete = (incomplete + chunk).split(b"\n")
        yield _number_lines(name, lines, number)
        number += len(lines)
        if len(incomplete) > LONGEST_LINE:
            raise InputError(
                f"a line of more than {LONGEST_LINE >> 20} MB", where=f"{name}, line {number + 1}"
            )
    yield _number_lines(name, [incomplete], number)


def _number_lines(name: str, lines: list[bytes], lines_before: int) -> list[InputLine]:
    numbered = enumerate(lines, lines_before + 1)
    return [InputLine(f"{name}, line {number}", line) for number, line in numbered if line.strip()]


def _find_file(source: str, accepted: str = ACCEPTED) -> Path:
    path = Path(source)
    if not path.is_file():
        raise InputError(f"no file '{source}'", accepted=accepted)
    return path


def read_graph_file(file: Path) -> tuple[bytes, str]:
    """Read an RDF file; return its bytes and its media type."""
    from tidings.graphs.rdf.media_types import graph_media_type_of

    media_type = graph_media_type_of(file.name)
    if media_type is None:
        accepted = "a .rdf, .ttl, .nt, .owl or .jsonld file"
        raise InputError(f"the media type of '{file}' is unknown", accepted=accepted)
    if not file.is_file():
        raise InputError(f"no file '{file}'")
    return file.read_bytes(), media_type

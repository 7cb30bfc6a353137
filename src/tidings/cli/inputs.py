"""What somebody wants to publish, wherever it stands: in the argument, in a file, on standard input."""

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
"""As for the jobs on Spark, whose modules are too heavy to be asked here."""
JSON, XML = "application/json", "application/xml"
ACCEPTED = (
    "a JSON object, an XML document, a .json, .xml or .jsonl file (.ndjson, .jsonl.gz), a graph (.ttl, .nt, .rdf, "
    ".jsonld, .trig, .nq), a feed (.rss, .atom, .jsonfeed), or - for standard input"
)
DAMAGED = "the events before the damage are published"
CHUNK = 1 << 20
LONGEST_LINE = 64 << 20
"""A line longer than this is refused before it fills the memory."""


@dataclass(frozen=True, slots=True)
class InputLine:
    """One of several, and where it stands."""

    where: str
    body: bytes


def is_line_input(what: str) -> bool:
    """Whether it is read line by line."""
    return what == "-" or what.endswith(LINE_SUFFIXES + COMPRESSED_SUFFIXES)


def read_one(what: str) -> tuple[bytes, str]:
    """The bytes of one publication, the argument itself or a file's; and its media type."""
    from tidings.kinds import find_media_type

    if what.lstrip()[:1] in ("{", "[", '"', "<"):
        return what.encode("utf-8", "surrogateescape"), XML if what.lstrip()[:1] == "<" else JSON

    path = _file(what)
    media_type = find_media_type(path.name)
    if media_type is None:
        raise InputError(f"no idea what is in '{what}'", accepted=ACCEPTED)
    return path.read_bytes(), media_type


def read_line_batches(
    what: str, accepted: str = ACCEPTED, damaged: str = DAMAGED
) -> Iterator[list[InputLine]]:
    """The lines of a file or of standard input, in batches as they come; empty lines count but are left out.

    `accepted` and `damaged` are what is said where there is no such file, and where it ends in damage.
    """
    if what == "-":
        yield from _batches("standard input", sys.stdin.buffer)
    elif what.endswith(COMPRESSED_SUFFIXES):
        with gzip.open(_file(what, accepted)) as stream:
            yield from _stop_at_damage(what, damaged, _batches(what, stream))
    else:
        with _file(what, accepted).open("rb") as stream:
            yield from _batches(what, stream)


def _stop_at_damage(name: str, damaged: str, found: Iterator[list[InputLine]]) -> Iterator[list[InputLine]]:
    """The same, until the file turns out to be damaged; what came before it has been taken."""
    try:
        yield from found
    except (gzip.BadGzipFile, EOFError, zlib.error) as problem:
        raise InputError("the file is damaged", where=name, hint=f"{problem}; {damaged}") from problem


def _batches(name: str, stream: BinaryIO | gzip.GzipFile) -> Iterator[list[InputLine]]:
    number, rest = 0, b""
    while chunk := stream.read1(CHUNK):  # type: ignore[union-attr]  # what is there now: a slow producer is not waited for
        *lines, rest = (rest + chunk).split(b"\n")
        yield _numbered(name, lines, number)
        number += len(lines)
        if len(rest) > LONGEST_LINE:
            raise InputError(
                f"a line of more than {LONGEST_LINE >> 20} MB", where=f"{name}, line {number + 1}"
            )
    yield _numbered(name, [rest], number)


def _numbered(name: str, lines: list[bytes], before: int) -> list[InputLine]:
    numbered = enumerate(lines, before + 1)
    return [InputLine(f"{name}, line {number}", line) for number, line in numbered if line.strip()]


def _file(what: str, accepted: str = ACCEPTED) -> Path:
    path = Path(what)
    if not path.is_file():
        raise InputError(f"no file '{what}'", accepted=accepted)
    return path

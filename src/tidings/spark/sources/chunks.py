"""Chunks of publication files, which tasks read independently of each other.

    events/              a.jsonl, 20 MB        chunk 0: a.jsonl, bytes 0 to 8 M, from line 1
      a.jsonl      ->    b/c.json, b/d.json    chunk 1: a.jsonl, bytes 8 M to 16 M, from line 61,729
      b/c.json                                 chunk 2: a.jsonl, the rest
      b/d.json                                 chunk 3: b/c.json and b/d.json, one document each

An event without an id is named by its file and line, so line numbers must be known before tasks begin: planning reads
every byte once and counts line ends, at the speed of memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass
from itertools import accumulate
from pathlib import Path

import numpy as np
import numpy.typing as npt
from pyarrow import fs

from tidings.spark.sources.files import (
    COMPRESSED_SUFFIXES,
    Location,
    PublicationFile,
    explain_unreadable,
    list_publications,
)

SMALLEST_CHUNK, LARGEST_CHUNK = 4 << 20, 128 << 20
READ_BYTES = 1 << 20
DOCUMENTS = 2_000
LINE_END = ord("\n")


@dataclass(frozen=True, slots=True)
class Piece:
    """A byte range of a file: lines from `first_line` on, or one document if that is 0.

    `lines` is 0 for a compressed file, whose number of lines is unknown until it is read. An unreadable file has one
    piece, with the reason in `problem`.
    """

    path: str
    name: str
    start: int
    end: int
    first_line: int = 0
    lines: int = 1
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Chunk:
    """The pieces that one task reads."""

    pieces: tuple[Piece, ...]

    @property
    def size(self) -> int:
        return sum(piece.end - piece.start for piece in self.pieces)

    def to_json(self) -> str:
        return json.dumps([astuple(piece) for piece in self.pieces])

    @classmethod
    def from_json(cls, text: str | bytes) -> Chunk:
        return cls(tuple(Piece(*fields) for fields in json.loads(text)))


@dataclass(frozen=True, slots=True)
class ChunkList:
    """A file of consecutive chunks with their offsets, from which each task reads its own chunk."""

    uri: str
    starts: tuple[int, ...]

    @classmethod
    def write(cls, place: Location, chunks: Iterable[Chunk]) -> ChunkList:
        texts = [chunk.to_json().encode() for chunk in chunks]
        with place.files.open_output_stream(place.path) as file:
            file.write(b"".join(texts))
        return cls(place.uri, tuple(accumulate((len(text) for text in texts), initial=0)))

    def read(self, number: int) -> Chunk:
        place, start, end = Location(self.uri), self.starts[number], self.starts[number + 1]
        with place.files.open_input_file(place.path) as file:
            return Chunk.from_json(file.read_at(end - start, start))


def plan_chunks(place: str | Path, cores: int = 1) -> list[Chunk]:
    """Divide a file, or all files of a folder, into chunks in the order of names and lines.

    Each core gets the same number of chunks, so that all finish at the same time. There are only as many as keep
    chunks below LARGEST_CHUNK, about a second of work: starting a task costs some hundredths of a second, and the
    matches of each task repeat the ids of the subscriptions.
    """
    location = Location.of(place)
    listed = list_publications(place)
    total = sum(file.info.size for file in listed)
    rounds = max(1, -(-total // (cores * LARGEST_CHUNK)))
    size = max(total // (cores * rounds) + 1, SMALLEST_CHUNK)
    chunks: list[Chunk] = []
    documents: list[Piece] = []
    for file in listed:
        if file.problem or not file.has_lines:
            documents.append(document_piece(file))
        else:
            chunks.extend(Chunk((piece,)) for piece in _cut_lines(location.files, file.info, file.name, size))
    return chunks + list(_group_documents(documents, size))


def _cut_lines(files: fs.FileSystem, info: fs.FileInfo, name: str, size: int) -> list[Piece]:
    try:
        return list(cut_line_pieces(files, info, name, size))
    except OSError as problem:
        return [unreadable_piece(files, info, name, problem)]


def document_piece(file: PublicationFile) -> Piece:
    """Return the piece for a file that is one document."""
    return Piece(file.info.path, file.name, 0, file.info.size, problem=file.problem)


def unreadable_piece(files: fs.FileSystem, info: fs.FileInfo, name: str, problem: OSError) -> Piece:
    """Return the piece for a file that could not be opened."""
    return Piece(info.path, name, 0, info.size, problem=explain_unreadable(files, info.path, problem))


def cut_line_pieces(files: fs.FileSystem, info: fs.FileInfo, name: str, size: int) -> Iterator[Piece]:
    """Cut a file at line ends into pieces of about `size` bytes; a compressed file stays whole."""
    if name.endswith(COMPRESSED_SUFFIXES):
        yield Piece(info.path, name, 0, info.size, 1, 0)
        return
    start, line, lines, at, last = 0, 1, 0, 0, b""
    with files.open_input_stream(info.path) as stream:
        while data := stream.read(min(size, READ_BYTES)):
            cut = data.rfind(b"\n") + 1
            lines += count_line_ends(data)
            at += len(data)
            last = data
            if cut and at - start >= size:
                end = at - len(data) + cut
                yield Piece(info.path, name, start, end, line, lines)
                start, line, lines = end, line + lines, 0
    if at > start:
        yield Piece(info.path, name, start, at, line, lines + (not last.endswith(b"\n")))


def count_line_ends(data: bytes | memoryview | npt.NDArray[np.uint8]) -> int:
    """Return the number of line ends."""
    return int(np.count_nonzero(np.frombuffer(data, np.uint8) == LINE_END))


def _group_documents(documents: Iterable[Piece], max_bytes: int) -> Iterator[Chunk]:
    group: list[Piece] = []
    size = 0
    for piece in documents:
        if group and (size + piece.end > max_bytes or len(group) == DOCUMENTS):
            yield Chunk(tuple(group))
            group, size = [], 0
        group.append(piece)
        size += piece.end
    if group:
        yield Chunk(tuple(group))

"""Blocks: the publications of a chunk, read in parts that fit into a processor's cache."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import fs

from tidings.events.json_batch_decoder import split_lines
from tidings.kinds import JSON, media_type_of
from tidings.spark.sources.chunks import LINE_END, Chunk, Piece, count_line_ends
from tidings.spark.sources.files import COMPRESSED_SUFFIXES, explain_unreadable

BLOCK_BYTES = 2 << 20


@dataclass(frozen=True, slots=True)
class Block:
    """Publications of one media type, `buffer[starts[i]:ends[i]]`, with their files and lines."""

    buffer: npt.NDArray[np.uint8]
    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    files: tuple[str, ...]
    lines: npt.NDArray[np.int64] | None = None
    media_type: str = JSON

    def names(self) -> Any:
        """Return the names of the documents: `file:line` for lines, otherwise the file."""
        if self.lines is None:
            return pa.array(self.files, pa.string())
        return pc.binary_join_element_wise(self.files[0], pa.array(self.lines).cast(pa.string()), ":")

    @property
    def line_count(self) -> int:
        """The number of lines in this block, including empty ones."""
        return count_line_ends(self.buffer) + (len(self.buffer) > 0 and self.buffer[-1] != LINE_END)

    def body(self, i: int) -> bytes:
        """Return the bytes of a document."""
        body: bytes = self.buffer[self.starts[i] : self.ends[i]].tobytes()
        return body

    def place(self, i: int) -> dict[str, object]:
        """Return the file and line of a document, for reports."""
        if self.lines is None:
            return {"file": self.files[i]}
        return {"file": self.files[0], "line": int(self.lines[i])}


@dataclass(frozen=True, slots=True)
class UnreadableFile:
    """A file that cannot be read, or not to its end, and why. The blocks before it are valid."""

    file: str
    reason: str


def read_blocks(files: fs.FileSystem, chunk: Chunk) -> Iterator[Block | UnreadableFile]:
    """Read the documents of a chunk in blocks of some megabytes; report unreadable files."""
    if chunk.pieces[0].first_line:
        for piece in chunk.pieces:
            yield from _read_line_blocks(files, piece)
    else:
        yield from _read_document_blocks(files, chunk.pieces)


def _read_line_blocks(files: fs.FileSystem, piece: Piece) -> Iterator[Block | UnreadableFile]:
    number = piece.first_line
    try:
        for data in _read_whole_lines(files, piece):
            buffer = np.frombuffer(data, np.uint8)
            lines = split_lines(buffer)
            yield Block(buffer, lines.starts, lines.ends, (piece.name,), lines.numbers + (number - 1))
            number += lines.breaks
    except OSError as problem:
        yield UnreadableFile(piece.name, explain_unreadable(files, piece.path, problem))


def _read_whole_lines(files: fs.FileSystem, piece: Piece) -> Iterator[bytes | memoryview]:
    """Read a piece in parts that end at line ends; the last part may lack one."""
    if piece.name.endswith(COMPRESSED_SUFFIXES):
        with files.open_input_stream(piece.path, compression="gzip") as stream:
            yield from _join_at_lines(stream)
    else:
        with files.open_input_file(piece.path) as file:
            yield from _cut_at_lines(file, piece.start, piece.end)


def _cut_at_lines(file: Any, at: int, end: int) -> Iterator[memoryview]:
    """Read a seekable file in parts that end at line ends.

    Bytes after the last line end of a part are read again with the next part: less than one line, and no parts have to
    be joined. For a line longer than a part the part grows. A file that has become shorter ends early.
    """
    size = BLOCK_BYTES
    while at < end:
        wanted = min(size, end - at)
        data = file.read_at(wanted, at)
        last = len(data) < wanted or at + wanted == end
        cut = len(data) if last else data.rfind(b"\n") + 1
        if cut:
            yield memoryview(data)[:cut]
        elif last:
            return
        at, size = at + cut, BLOCK_BYTES if cut else 2 * size


def _join_at_lines(stream: Any) -> Iterator[bytes]:
    """Read parts of a stream that is not seekable."""
    rest: list[bytes] = []
    while data := stream.read(BLOCK_BYTES):
        cut = data.rfind(b"\n") + 1
        if cut:
            yield b"".join([*rest, data[:cut]])
            rest = []
        rest.append(data[cut:])
    if last := b"".join(rest):
        yield last


def _read_document_blocks(files: fs.FileSystem, pieces: Iterable[Piece]) -> Iterator[Block | UnreadableFile]:
    for media_type, group in groupby(pieces, key=lambda piece: media_type_of(piece.name)):
        yield from _read_one_media_type(files, group, media_type)


def _read_one_media_type(
    files: fs.FileSystem, pieces: Iterable[Piece], media_type: str
) -> Iterator[Block | UnreadableFile]:
    bodies: list[bytes] = []
    names: list[str] = []
    size = 0
    for piece in pieces:
        body = _read_document(files, piece)
        if isinstance(body, UnreadableFile):
            yield body
            continue
        bodies.append(body)
        names.append(piece.name)
        size += len(bodies[-1])
        if size >= BLOCK_BYTES:
            yield build_block(bodies, names, media_type)
            bodies, names, size = [], [], 0
    if bodies:
        yield build_block(bodies, names, media_type)


def _read_document(files: fs.FileSystem, piece: Piece) -> bytes | UnreadableFile:
    if piece.problem:
        return UnreadableFile(piece.name, piece.problem)
    try:
        with files.open_input_stream(piece.path) as stream:
            return bytes(stream.read())
    except OSError as problem:
        return UnreadableFile(piece.name, explain_unreadable(files, piece.path, problem))


def build_block(bodies: list[bytes], names: list[str], media_type: str) -> Block:
    """Build a block of publications of one media type."""
    ends = np.cumsum([len(body) for body in bodies]).astype(np.int64)
    starts = np.concatenate([np.zeros(1, np.int64), ends[:-1]])
    return Block(np.frombuffer(b"".join(bodies), np.uint8), starts, ends, tuple(names), media_type=media_type)


def count_lines(files: fs.FileSystem, piece: Piece) -> int:
    """Return the number of lines of a piece; read it if planning could not count them."""
    if piece.lines:
        return piece.lines
    return sum(count_line_ends(data) + (data[-1] != LINE_END) for data in _read_whole_lines(files, piece))

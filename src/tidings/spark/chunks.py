"""Publication files, cut into chunks that tasks can read on their own.

    events/              a.jsonl, 20 MB        chunk 0: a.jsonl, bytes 0 to 8 M, from line 1
      a.jsonl      ->    b/c.json, b/d.json    chunk 1: a.jsonl, bytes 8 M to 16 M, from line 61,729
      b/c.json                                 chunk 2: a.jsonl, the rest
      b/d.json                                 chunk 3: b/c.json and b/d.json, a document each

A `.jsonl` or `.ndjson` file has an event a line; any other file is one document. Files and folders whose names
begin with a dot or an underscore are left alone. Line numbers have to be known before tasks begin, because an event
without an id is called by its file and line: so planning reads every byte once and counts line ends, at the
speed of memory.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import fs

from tidings.errors import InputError
from tidings.publications.json_lines import split_lines

LINES = (".jsonl", ".ndjson")
COMPRESSED = tuple(f"{ending}.gz" for ending in LINES)
SMALLEST_CHUNK, LARGEST_CHUNK = 4 << 20, 128 << 20
CHUNKS_A_CORE = 2
BLOCK_BYTES = 1 << 20
DOCUMENTS = 2_000
_LINE_END = ord("\n")


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes of a file: `lines` lines from `first_line` on, or, if that is 0, one document.

    How many lines a compressed file has is not known (0) before somebody reads it. Of a file that could not be
    looked at there is one piece, which says why.
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
    """What one task reads."""

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
    """Chunks in a file, one after the other, that any task can read its own from: it knows where each begins."""

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


@dataclass(frozen=True, slots=True)
class Block:
    """Documents read together: `buffer[starts[i]:ends[i]]`, and what each is called if it has no id."""

    buffer: npt.NDArray[np.uint8]
    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    files: tuple[str, ...]
    lines: npt.NDArray[np.int64] | None = None

    def names(self) -> Any:
        """The names of the documents: `file:line` where there are lines, the file elsewhere."""
        if self.lines is None:
            return pa.array(self.files, pa.string())
        return pc.binary_join_element_wise(self.files[0], pa.array(self.lines).cast(pa.string()), ":")

    @property
    def line_count(self) -> int:
        """How many lines of the file these are, empty ones too."""
        return _line_ends(self.buffer) + (len(self.buffer) > 0 and self.buffer[-1] != _LINE_END)

    def place(self, i: int) -> dict[str, object]:
        """Where a document stands, for people."""
        if self.lines is None:
            return {"file": self.files[i]}
        return {"file": self.files[0], "line": int(self.lines[i])}


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A file that cannot be read, or not to its end, and why. What came before it counts."""

    file: str
    reason: str


@dataclass(frozen=True, slots=True)
class Location:
    """A file or folder on some file system: a path, or a URI such as s3://bucket/events."""

    uri: str

    @classmethod
    def of(cls, place: str | Path) -> Location:
        text = str(place)
        return cls(text if "://" in text else Path(text).absolute().as_uri())

    @property
    def files(self) -> fs.FileSystem:
        return _opened(self.uri)[0]

    @property
    def path(self) -> str:
        return _opened(self.uri)[1]

    def info(self) -> fs.FileInfo:
        """What stands there, if anything does."""
        with _reaching(self.uri):
            return self.files.get_file_info(self.path)

    def inside(self, recursive: bool = False) -> list[fs.FileInfo]:
        """What is in the folder; nothing if there is none."""
        selector = fs.FileSelector(self.path, recursive=recursive, allow_not_found=True)
        with _reaching(self.uri):
            return list(self.files.get_file_info(selector))


@lru_cache(maxsize=16)
def _opened(uri: str) -> tuple[fs.FileSystem, str]:
    with _reaching(uri):
        files, path = fs.FileSystem.from_uri(uri)
    return files, path


@contextmanager
def _reaching(uri: str) -> Iterator[None]:
    """An address that nobody understands or that leads nowhere is a mistake of the person who gave it."""
    shown = re.sub(r"//[^/@]*@", "//", uri)  # keys of object stores may stand before the @
    try:
        yield
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as problem:
        raise InputError(
            "this is no address of files",
            received=f"'{shown}'",
            accepted="a path, or an address that pyarrow knows, such as s3://bucket/folder",
            hint=_first_line(problem).replace(uri, shown),
        ) from problem
    except OSError as problem:
        hint = _first_line(problem).replace(uri, shown)
        raise InputError("this place cannot be reached", where=shown, hint=hint) from problem


def _first_line(problem: Exception) -> str:
    return str(problem).split("\n", 1)[0]


def plan(place: str | Path, cores: int = 1) -> list[Chunk]:
    """The chunks of a file or of everything in a folder, in the order of names and lines.

    A few for each core, so that no core waits long for the last one; no more than that, because starting a task costs
    some hundredths of a second, and each one's matches come with the ids of the subscriptions once more.
    """
    location = Location.of(place)
    listed = list_publications(place)
    total = sum(info.size for info, _ in listed)
    size = min(max(total // (cores * CHUNKS_A_CORE) + 1, SMALLEST_CHUNK), LARGEST_CHUNK)
    chunks: list[Chunk] = []
    documents: list[Piece] = []
    for info, name in listed:
        if name.endswith(LINES + COMPRESSED):
            chunks.extend(Chunk((piece,)) for piece in _cut(location.files, info, name, size))
        else:
            documents.append(Piece(info.path, name, 0, info.size))
    return chunks + list(_grouped(documents, size))


def listing(location: Location) -> list[tuple[fs.FileInfo, str]]:
    """The files of a folder and what they are called: their path inside it. Hidden ones are left out."""
    prefix = location.path.rstrip("/") + "/"
    found = [(info, info.path.removeprefix(prefix)) for info in location.inside(recursive=True)]
    files = sorted(((i, name) for i, name in found if i.is_file and not _hidden(name)), key=_depth_and_name)
    if isinstance(location.files, fs.LocalFileSystem):
        files = _once(files)
    return sorted(files, key=lambda one: one[1])


def _depth_and_name(file: tuple[fs.FileInfo, str]) -> tuple[int, str]:
    return file[1].count("/"), file[1]


def _once(files: list[tuple[fs.FileInfo, str]]) -> list[tuple[fs.FileInfo, str]]:
    """Each file once, under its shortest name, also where a link leads back to a folder above."""
    folders: dict[str, str] = {}
    known: dict[tuple[str, str], tuple[fs.FileInfo, str]] = {}
    for info, name in files:
        parent = info.path.removesuffix(info.base_name)
        if parent not in folders:
            folders[parent] = os.path.realpath(parent)
        real = folders[parent]
        known.setdefault((real, info.base_name), (info, name))
    return list(known.values())


def list_publications(place: str | Path) -> list[tuple[fs.FileInfo, str]]:
    """The files to read, and what they are called; it is an error if there are none."""
    location, given = Location.of(place), str(place)
    info = location.info()
    if info.type == fs.FileType.NotFound:
        raise InputError("there are no publications: neither a file nor a folder", received=given)
    if info.is_file:
        return [(info, info.base_name)]
    files = listing(location)
    if not files:
        raise InputError(
            "the folder has no publications", where=given, accepted="*.jsonl, or a document a file"
        )
    return files


def _hidden(name: str) -> bool:
    return any(part.startswith((".", "_")) for part in name.split("/"))


def _cut(files: fs.FileSystem, info: fs.FileInfo, name: str, size: int) -> list[Piece]:
    try:
        return list(line_pieces(files, info, name, size))
    except OSError as problem:
        return [unreadable(files, info, name, problem)]


def unreadable(files: fs.FileSystem, info: fs.FileInfo, name: str, problem: OSError) -> Piece:
    """What stands for a file that could not be looked at."""
    return Piece(info.path, name, 0, info.size, problem=why_unreadable(files, info.path, problem))


def why_unreadable(files: fs.FileSystem, path: str, problem: OSError) -> str:
    """Why a file cannot be read. If its file system does not answer, the file is not to blame: that is raised."""
    if files.get_file_info(path).type == fs.FileType.NotFound:
        return "the file was gone before it was read"
    return f"the file cannot be read: {_first_line(problem)}"


def line_pieces(files: fs.FileSystem, info: fs.FileInfo, name: str, size: int) -> Iterator[Piece]:
    """A file of lines in pieces of about `size` bytes, cut at line ends. A compressed one cannot be cut."""
    if name.endswith(COMPRESSED):
        yield Piece(info.path, name, 0, info.size, 1, 0)
        return
    start, line, lines, at, last = 0, 1, 0, 0, b""
    with files.open_input_stream(info.path) as stream:
        while data := stream.read(min(size, BLOCK_BYTES)):
            cut = data.rfind(b"\n") + 1
            lines += _line_ends(data)
            at += len(data)
            last = data
            if cut and at - start >= size:
                end = at - len(data) + cut
                yield Piece(info.path, name, start, end, line, lines)
                start, line, lines = end, line + lines, 0
    if at > start:
        yield Piece(info.path, name, start, at, line, lines + (not last.endswith(b"\n")))


def count_lines(files: fs.FileSystem, piece: Piece) -> int:
    """How many lines a piece has, if planning could not tell."""
    if piece.lines:
        return piece.lines
    return sum(_line_ends(data) + (data[-1] != _LINE_END) for data in _whole_lines(files, piece))


def _line_ends(data: bytes | memoryview | npt.NDArray[np.uint8]) -> int:
    return int(np.count_nonzero(np.frombuffer(data, np.uint8) == _LINE_END))


def _grouped(documents: Iterable[Piece], most: int) -> Iterator[Chunk]:
    group: list[Piece] = []
    size = 0
    for piece in documents:
        if group and (size + piece.end > most or len(group) == DOCUMENTS):
            yield Chunk(tuple(group))
            group, size = [], 0
        group.append(piece)
        size += piece.end
    if group:
        yield Chunk(tuple(group))


def read(files: fs.FileSystem, chunk: Chunk) -> Iterator[Block | Unreadable]:
    """The documents of a chunk, in blocks of some megabytes, and which files could not be read."""
    if chunk.pieces[0].first_line:
        for piece in chunk.pieces:
            yield from _lines(files, piece)
    else:
        yield from _documents(files, chunk.pieces)


def _lines(files: fs.FileSystem, piece: Piece) -> Iterator[Block | Unreadable]:
    number = piece.first_line
    try:
        for data in _whole_lines(files, piece):
            buffer = np.frombuffer(data, np.uint8)
            lines = split_lines(buffer)
            yield Block(buffer, lines.starts, lines.ends, (piece.name,), lines.numbers + (number - 1))
            number += lines.breaks
    except OSError as problem:
        yield Unreadable(piece.name, why_unreadable(files, piece.path, problem))


def _whole_lines(files: fs.FileSystem, piece: Piece) -> Iterator[bytes | memoryview]:
    """The bytes of a piece in parts that end at line ends, so that no line is torn; the last one ends as it does."""
    if piece.name.endswith(COMPRESSED):
        with files.open_input_stream(piece.path, compression="gzip") as stream:
            yield from _joined_at_lines(stream)
    else:
        with files.open_input_file(piece.path) as file:
            yield from _cut_at_lines(file, piece.start, piece.end)


def _cut_at_lines(file: Any, at: int, end: int) -> Iterator[memoryview]:
    """Parts of a file that can be read anywhere: what is behind the last line end of one is read again for the next.

    That is less than a line, and nothing has to be put together. A line that is longer than a part asks for a larger
    one. A file that became shorter ends where it ends.
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


def _joined_at_lines(stream: Any) -> Iterator[bytes]:
    """Parts of a stream that can only be read once."""
    rest: list[bytes] = []
    while data := stream.read(BLOCK_BYTES):
        cut = data.rfind(b"\n") + 1
        if cut:
            yield b"".join([*rest, data[:cut]])
            rest = []
        rest.append(data[cut:])
    if last := b"".join(rest):
        yield last


def _documents(files: fs.FileSystem, pieces: Iterable[Piece]) -> Iterator[Block | Unreadable]:
    bodies: list[bytes] = []
    names: list[str] = []
    size = 0
    for piece in pieces:
        body = _document(files, piece)
        if isinstance(body, Unreadable):
            yield body
            continue
        bodies.append(body)
        names.append(piece.name)
        size += len(bodies[-1])
        if size >= BLOCK_BYTES:
            yield _together(bodies, names)
            bodies, names, size = [], [], 0
    if bodies:
        yield _together(bodies, names)


def _document(files: fs.FileSystem, piece: Piece) -> bytes | Unreadable:
    if piece.problem:
        return Unreadable(piece.name, piece.problem)
    try:
        with files.open_input_stream(piece.path) as stream:
            return bytes(stream.read())
    except OSError as problem:
        return Unreadable(piece.name, why_unreadable(files, piece.path, problem))


def _together(bodies: list[bytes], names: list[str]) -> Block:
    ends = np.cumsum([len(body) for body in bodies]).astype(np.int64)
    starts = np.concatenate([np.zeros(1, np.int64), ends[:-1]])
    return Block(np.frombuffer(b"".join(bodies), np.uint8), starts, ends, tuple(names))

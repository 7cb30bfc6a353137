"""Streaming source for a folder: `session.readStream.format("tidings_folder")`.

New files are recorded, in the order of their arrival, in a list in the checkpoint folder:

    {"first": 0, "path": "/in/a.jsonl", "name": "a.jsonl", "start": 0, "end": 1048540, "first_line": 1, "lines": 9213}

So every line has a position, like a publication in the journal, and a batch is a range of positions. An entry of the
list is durable before an offset refers to it. A file is read as it was when first seen: write it elsewhere and move it
into the folder. An unreadable file has one position, and the reason in its entry; lines that have disappeared when
their batch is read are reported, too. Nothing that was seen is lost silently.
"""

from __future__ import annotations

import json
import os
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import monotonic
from typing import Any

from pyarrow import fs
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from tidings.kinds import media_type_of
from tidings.spark.sources.admission_control import Offset
from tidings.spark.sources.blocks import Block, UnreadableFile, count_lines, read_blocks
from tidings.spark.sources.chunks import Chunk, Piece, cut_line_pieces, document_piece, unreadable_piece
from tidings.spark.sources.files import Location, PublicationFile, list_files
from tidings.spark.sources.position_reader import (
    JOURNAL_COLUMNS,
    JournalRow,
    PositionRange,
    PositionReader,
    build_record_batches,
)

PIECE_BYTES = 1 << 20
LISTING_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class ListedPiece:
    """A piece of a file, and the position that precedes its first line."""

    first: int
    piece: Piece

    @property
    def last(self) -> int:
        return self.first + self.piece.lines


class FileList:
    """The list of files seen so far. One process writes it; any number of processes may read it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read_to = 0
        self.entries: list[ListedPiece] = []
        self.names: set[str] = set()

    @property
    def last(self) -> int:
        return self.entries[-1].last if self.entries else 0

    def refresh(self) -> None:
        """Read new entries. An incomplete last line is ignored: no offset refers to it yet."""
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            file.seek(self._read_to)
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        self._read_to += len(whole)
        for line in whole.splitlines():
            fields = json.loads(line)
            self._record(ListedPiece(fields.pop("first"), Piece(**fields)))

    def add(self, pieces: list[Piece]) -> None:
        """Append pieces to the list, durably."""
        entries = []
        first = self.last
        for piece in pieces:
            entries.append(ListedPiece(first, piece))
            first += piece.lines
        lines = [json.dumps({"first": entry.first, **asdict(entry.piece)}) + "\n" for entry in entries]
        self._append("".join(lines).encode())
        for entry in entries:
            self._record(entry)

    def between(self, after: int, upto: int) -> Iterator[ListedPiece]:
        """Yield the entries with positions in a range."""
        start = max(0, bisect_right(self.entries, after, key=lambda entry: entry.first) - 1)
        for entry in self.entries[start:]:
            if entry.first >= upto:
                return
            if entry.last > after:
                yield entry

    def _append(self, data: bytes) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("r+b" if self._path.exists() else "wb") as file:
            file.seek(self._read_to)
            file.truncate()
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        self._read_to += len(data)

    def _record(self, entry: ListedPiece) -> None:
        self.entries.append(entry)
        self.names.add(entry.piece.name)


@dataclass
class FileRange(PositionRange):
    """A range of positions with its entries, so that tasks do not read the whole list."""

    listed: tuple[ListedPiece, ...]


class FolderReader(PositionReader):
    """Reader for the files of a folder."""

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        self._folder = Location.of(options["folder"])
        self._list = Path(options["list"])
        self._files: FileList | None = None
        self._next_listing = 0.0

    def head(self) -> int:
        known = self._known_files()
        if monotonic() >= self._next_listing:
            self._discover(known)
            self._next_listing = monotonic() + LISTING_SECONDS
        return known.last

    def ranges(self, start: Offset, end: Offset) -> Sequence[PositionRange]:
        known, ranges = self._known_files(), super().ranges(start, end)
        return [
            FileRange(part.after, part.upto, tuple(known.between(part.after, part.upto))) for part in ranges
        ]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return build_record_batches(self.rows(partition))

    def rows(self, part: FileRange) -> Iterator[JournalRow]:
        """Yield the rows of a range."""
        for listed in part.listed:
            first, last = max(part.after, listed.first) + 1, min(part.upto, listed.last)
            yield from _read_publications(self._folder.files, listed, first, last)

    def _known_files(self) -> FileList:
        if self._files is None:
            self._files = FileList(self._list)
            self._files.refresh()
        return self._files

    def _discover(self, known: FileList) -> None:
        new = [file for file in list_files(self._folder) if file.name not in known.names]
        for file in sorted(new, key=lambda file: (file.info.mtime_ns or 0, file.name)):
            try:
                pieces = list(_cut_pieces(self._folder.files, file))
            except FileNotFoundError:
                continue  # removed after it was listed: treated as never seen
            except OSError as problem:
                pieces = [unreadable_piece(self._folder.files, file.info, file.name, problem)]
            known.add(pieces)


class FolderSource(DataSource):  # type: ignore[misc]
    """The format `tidings_folder`.

    Options are those of the journal, `folder`, and `list`, the path of the list.
    """

    @classmethod
    def name(cls) -> str:
        return "tidings_folder"

    def schema(self) -> str:
        return JOURNAL_COLUMNS

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        return FolderReader(self.options)


def _cut_pieces(files: fs.FileSystem, file: PublicationFile) -> Iterator[Piece]:
    """Cut a file into pieces; an empty file gets one without lines, so that it is listed."""
    if file.problem or not file.has_lines:
        yield document_piece(file)
        return
    has_pieces = False
    for piece in cut_line_pieces(files, file.info, file.name, PIECE_BYTES):
        has_pieces = True
        yield replace(piece, lines=count_lines(files, piece))
    if not has_pieces:
        yield Piece(file.info.path, file.name, 0, 0, 1, 0)


def _read_publications(
    files: fs.FileSystem, listed: ListedPiece, first: int, last: int
) -> Iterator[JournalRow]:
    """Read the publications from `first` to `last`; end with a problem row at an unreadable one."""
    piece, done = listed.piece, listed.first
    problem = "the file has fewer lines than when it was first seen"
    for block in read_blocks(files, Chunk((piece,))):
        if isinstance(block, UnreadableFile):
            problem = block.reason
            break
        for place, name, body in _bodies(piece, block):
            if first <= listed.first + place <= last:
                id = None if piece.first_line else name
                yield listed.first + place, id, name, media_type_of(piece.name), body, None
        done += block.line_count if piece.first_line else 1
        if done >= last:
            return
    lost = max(first, done + 1)
    if lost <= last:
        yield _build_problem_row(listed, lost, last, problem)


def _build_problem_row(listed: ListedPiece, first: int, last: int, problem: str) -> JournalRow:
    """Return the row for unreadable positions, at the first one; its problem names the lines."""
    piece = listed.piece
    if not piece.first_line:
        return first, None, piece.name, media_type_of(piece.name), None, problem
    before = piece.first_line - listed.first - 1
    lines = f"lines {before + first} to {before + last}"
    name, why = f"{piece.name}:{before + first}", f"{problem}: {lines} are lost"
    return first, None, name, media_type_of(piece.name), None, why


def _bodies(piece: Piece, block: Block) -> Iterator[tuple[int, str, bytes]]:
    """Yield the place in the piece, the name and the body of each publication."""
    places = [1] if block.lines is None else (block.lines - piece.first_line + 1).tolist()
    for place, name, start, end in zip(
        places, block.names().to_pylist(), block.starts, block.ends, strict=True
    ):
        yield place, name, block.buffer[start:end].tobytes()

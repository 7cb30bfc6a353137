"""The files of one task of the batch job: its matches, and what it refused; and the report that names them."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePath, PurePosixPath
from typing import Any, BinaryIO
from uuid import uuid4

import numpy as np
import numpy.typing as npt
from pyarrow import fs

from tidings.errors import InputError, PublicationError
from tidings.matching.parquet import Dictionary, GrowingColumn, KnownColumn, ParquetFile
from tidings.model import Reject
from tidings.spark.sources.blocks import Block
from tidings.spark.sources.files import Location

MATCH_COLUMNS = ("publication", "subscription")
"""The columns of the result."""

ROW_GROUP = 1 << 24
"""Rows after which a row group ends. Encoded they take about three bytes each until then; and each group has ids."""

TIMED_STEPS = ("scan", "decode", "match", "write")
"""What a task's time goes into: reading and cutting into lines; events; pairs; files."""

Numbers = npt.NDArray[np.int32]


@dataclass(slots=True)
class ChunkReport:
    """What became of a chunk: counts, seconds of CPU by part, and the files with its matches and its rejects."""

    chunk: int
    bytes: int
    events: int = 0
    matches: int = 0
    rejects: int = 0
    matches_file: str = ""
    rejects_file: str = ""
    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(TIMED_STEPS, 0.0))


class ChunkOutput:
    """The files of one task: they begin to exist with the first row group or reject, and end with the context."""

    def __init__(self, results: Location, report: ChunkReport, subscriptions: Dictionary) -> None:
        self.report = report
        self.key = uuid.uuid4().hex[:12]
        self._results = results
        self._known = subscriptions
        self._files = ExitStack()
        self._matches: ParquetFile | None = None
        self._rejects: Any = None
        self._begin_group()

    def __enter__(self) -> ChunkOutput:
        return self

    def __exit__(self, *failure: object) -> None:
        if failure[0] is None:
            self._end_group()
            if self._matches is not None:
                self._matches.close()
        self._files.close()

    def write(self, ids: Any, publications: Numbers, subscriptions: Numbers) -> None:
        """Add pairs: publications, as places among the ids of their block, and subscriptions."""
        if len(publications):
            self._publications.add(ids, publications)
            self._subscriptions.add(subscriptions)
        if self._publications.rows >= ROW_GROUP:
            self._end_group()
            self._begin_group()

    def refuse(self, block: Block, ids: Any, rejects: Iterable[tuple[int, PublicationError]]) -> None:
        """Add the publications that could not be used, a line each."""
        for i, problem in rejects:
            self._reject(ids[i].as_py(), block.place(i), problem)

    def refuse_pair(
        self, block: Block, ids: Any, place: int, subscription: str, problem: PublicationError
    ) -> None:
        """Add a pair of a publication and a subscription of which it is unknown whether it matches."""
        located = problem.with_where(f"subscription {subscription}")
        self._reject(ids[place].as_py(), {**block.place(place), "subscription": subscription}, located)

    def refuse_file(self, file: str, problem: PublicationError) -> None:
        """Add a file that could not be read, not to its end, or not be taken apart."""
        self._reject(file, {"file": file}, problem)

    def _reject(self, id: str, place: dict[str, object], problem: PublicationError) -> None:
        line = {"what": "publication", "id": id, **place, "reason": problem.headline()}
        self._reject_file().write(json.dumps({**line, "facts": problem.facts()}).encode() + b"\n")
        self.report.rejects += 1

    def _begin_group(self) -> None:
        self._publications, self._subscriptions = GrowingColumn(), KnownColumn(self._known)

    def _end_group(self) -> None:
        if self._publications.rows:
            self._matches_file().write([self._publications.encode(), self._subscriptions.encode()])
            self.report.matches += self._publications.rows

    def _matches_file(self) -> ParquetFile:
        if self._matches is None:
            self.report.matches_file = f"part-{self.report.chunk:05d}-{self.key}.parquet"
            self._matches = ParquetFile(self._open(self.report.matches_file), MATCH_COLUMNS)
        return self._matches

    def _reject_file(self) -> Any:
        if self._rejects is None:
            self.report.rejects_file = f"rejects-{self.report.chunk:05d}-{self.key}.jsonl"
            self._rejects = self._open(self.report.rejects_file)
        return self._rejects

    def _open(self, name: str) -> Any:
        stream = self._results.files.open_output_stream(f"{self._results.path}/{name}")
        return self._files.enter_context(stream)


# Where the batch job's result comes about: a working folder beside it, moved into place when all tasks are done.


SHOWN_REJECTS = 20


def check_target_free(out: Location, given: str | Path, force: bool) -> None:
    """Refuse to write over something, unless that is wanted."""
    info = out.info()
    there = [] if info.type == fs.FileType.NotFound or info.is_file else list_names(out)
    if info.is_file or (there and not (force and _is_result(there))):
        raise InputError(
            "the result would overwrite what is there",
            where=str(given),
            accepted="a folder that is new or empty, or with --force an earlier result",
            hint=_way_out(info.is_file, there),
        )


def _way_out(is_file: bool, there: Sequence[str]) -> str:
    if is_file:
        return "it is a file; choose another name"
    return "choose another name, or use --force" if _is_result(there) else "choose another name"


def _is_result(there: Sequence[str]) -> bool:
    """Whether a folder has nothing but what this job writes: only that may be replaced."""
    return bool(there) and all(name == "_SUCCESS" or name.endswith(".parquet") for name in there)


def check_separate(out: str | Path, others: Sequence[str | Path]) -> None:
    """Refuse a result that would stand on, in or around what it is made from: replacing it would delete that."""
    place = _resolved(out)
    for other in others:
        if _resolved(other).is_relative_to(place) or place.is_relative_to(_resolved(other)):
            raise InputError(
                "the result and what it is made from would stand in one place",
                where=str(out),
                received=str(other),
                accepted="a folder of its own",
            )


def _resolved(place: str | Path) -> PurePath:
    """A place without links and detours; an address is taken as it is."""
    return PurePosixPath(str(place)) if "://" in str(place) else Path(place).resolve()


def check_rejects_file(path: Path | None) -> None:
    """Refuse a place where no file can be written: finding that out at the end would be late."""
    if path is None:
        return
    there = next(place for place in (path.absolute(), *path.absolute().parents) if place.exists())
    if path.parts[:1] and path.parts[0].endswith(":"):
        raise _no_place(path, "it is an address; the rejects go to a file on this machine")
    if path.is_dir():
        raise _no_place(path, "it is a folder")
    if there != path.absolute() and not there.is_dir():
        raise _no_place(path, f"{there} is no folder")
    if not os.access(there, os.W_OK):
        raise _no_place(path, f"{there} cannot be written to")


def _no_place(path: Path, hint: str) -> InputError:
    return InputError(
        "the rejects cannot be written there", received=f"'{path}'", accepted="a file", hint=hint
    )


def list_names(folder: Location) -> list[str]:
    """What is in a folder; nothing if there is none."""
    return sorted(info.base_name for info in folder.inside())


@contextmanager
def working_folder(out: Location) -> Iterator[Location]:
    """A folder beside the result, gone in the end, whatever happens."""
    parent, _, name = out.uri.rstrip("/").rpartition("/")
    work = Location(f"{parent}/.{name}-{uuid4().hex[:8]}")
    work.files.create_dir(work.path)
    try:
        yield work
    finally:
        work.files.delete_dir(work.path)


def publish_result(work: Location, out: Location, reports: Sequence[ChunkReport], force: bool) -> None:
    """Move the files of the reports into the result; `_SUCCESS` comes last and says that it is whole."""
    files, names = out.files, [report.matches_file for report in reports if report.matches_file]
    files.create_dir(out.path)
    if force:
        files.delete_dir_contents(out.path)
    if not names:
        names = ["part-00000-empty.parquet"]
        with files.open_output_stream(f"{work.path}/{names[0]}") as file:
            ParquetFile(file, MATCH_COLUMNS).close()
    for name in names:
        files.move(f"{work.path}/{name}", f"{out.path}/{name}")
    files.open_output_stream(f"{out.path}/_SUCCESS").close()


def write_rejects(
    path: Path | None, subscriptions: Sequence[Reject], work: Location, reports: Sequence[ChunkReport]
) -> tuple[Reject, ...]:
    """Write all rejects to the file, if one is wanted, and give the first few."""
    examples = list(subscriptions[:SHOWN_REJECTS])
    with _reject_file(path) as write:
        for reject in subscriptions:
            write(_reject_line(reject))
        for report in reports:
            if report.rejects_file:
                with work.files.open_input_stream(f"{work.path}/{report.rejects_file}") as lines:
                    data = lines.read()
                write(data)
                wanted = SHOWN_REJECTS - len(examples)
                examples.extend(map(_reject_of, data.splitlines()[: max(wanted, 0)]))
    return tuple(examples)


@contextmanager
def _reject_file(path: Path | None) -> Iterator[Callable[[bytes], object]]:
    if path is None:
        yield len
        return
    with _rejects_opened(path) as file:
        yield file.write


def _rejects_opened(path: Path) -> BinaryIO:
    """The file for the rejects. If the place went bad while the job ran, its result stands all the same."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("wb")
    except OSError as problem:
        raise _no_place(path, f"{problem.strerror}; the result itself is complete") from problem


def _reject_line(reject: Reject) -> bytes:
    place: dict[str, object] = {name: reject.facts[name] for name in ("file", "line") if name in reject.facts}
    line = {"what": reject.what, "id": reject.id, **place, "reason": reject.reason, "facts": reject.facts}
    return json.dumps(line).encode() + b"\n"


def _reject_of(line: bytes) -> Reject:
    fields = json.loads(line)
    place: dict[str, object] = {name: fields[name] for name in ("file", "line") if name in fields}
    return Reject(fields["what"], fields["id"], fields["reason"], {**fields["facts"], **place})

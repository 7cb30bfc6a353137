"""Output of the batch job: files and report of each task, the result, the rejects file."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePath, PurePosixPath
from typing import Any, BinaryIO, NamedTuple
from uuid import uuid4

import numpy as np
import numpy.typing as npt
from pyarrow import fs

from tidings.errors import InputError, PublicationError
from tidings.matching.parquet import Dictionary, GrowingColumn, KnownColumn, ParquetFile
from tidings.model import Reject
from tidings.spark.sources.blocks import Block
from tidings.spark.sources.files import Location

PUBLICATION, SUBSCRIPTION = "publication", "subscription"
MATCH_COLUMNS = (PUBLICATION, SUBSCRIPTION)
"""The columns of the result of a batch job."""

ROW_GROUP = 1 << 24
"""Rows per row group. An encoded row takes about three bytes of memory; each group repeats the ids."""

TIMED_STEPS = ("scan", "decode", "match", "write")
"""Timed steps of a task: reading and splitting into lines, decoding, matching, writing files."""

Numbers = npt.NDArray[np.int32]


@dataclass(slots=True)
class ChunkReport:
    """Result of a chunk: counts, CPU seconds by step, and the files of its matches and rejects."""

    chunk: int
    bytes: int
    events: int = 0
    matches: int = 0
    rejects: int = 0
    matches_file: str = ""
    rejects_file: str = ""
    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(TIMED_STEPS, 0.0))


class SubscriptionColumn(NamedTuple):
    """A column that depends on the subscription: subscription i has `strings[places[i]]`, else `strings[i]`."""

    name: str
    strings: Dictionary
    places: Numbers | None = None


class ChunkOutput:
    """Writer of the files of one task, created with the first row group or reject."""

    def __init__(self, results: Location, report: ChunkReport, *columns: SubscriptionColumn) -> None:
        self.report = report
        self.key = uuid.uuid4().hex[:12]
        self._results = results
        self._columns = columns
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
        """Add pairs of publications, as indexes into the ids of their block, and subscriptions."""
        if len(publications):
            self._publications.add(ids, publications)
            for encoder in self._encoders:
                encoder.add(subscriptions)
        if self._publications.rows >= ROW_GROUP:
            self._end_group()
            self._begin_group()

    def refuse(self, block: Block, ids: Any, rejects: Iterable[tuple[int, PublicationError]]) -> None:
        """Add rejected publications, one line each."""
        for i, problem in rejects:
            self.reject(ids[i].as_py(), block.place(i), problem)

    def refuse_pair(
        self, block: Block, ids: Any, place: int, subscription: str, problem: PublicationError
    ) -> None:
        """Add an undecided pair of a publication and a subscription."""
        self.reject(ids[place].as_py(), block.place(place), problem, subscription)

    def refuse_file(self, file: str, problem: PublicationError) -> None:
        """Add a file that could not be read, not to its end, or not be split."""
        self.reject(file, {"file": file}, problem)

    def reject(
        self, id: str, place: dict[str, object], problem: PublicationError, subscription: str | None = None
    ) -> None:
        """Add a rejected publication, or its undecided pair with a subscription."""
        if subscription is not None:
            place, problem = (
                {**place, "subscription": subscription},
                problem.with_where(f"subscription {subscription}"),
            )
        line = {"what": "publication", "id": id, **place, "reason": problem.headline()}
        self._reject_file().write(json.dumps({**line, "facts": problem.facts()}).encode() + b"\n")
        self.report.rejects += 1

    def _begin_group(self) -> None:
        self._publications = GrowingColumn()
        self._encoders = [KnownColumn(column.strings, column.places) for column in self._columns]

    def _end_group(self) -> None:
        if self._publications.rows:
            subscriptions = [encoder.encode() for encoder in self._encoders]
            self._matches_file().write([self._publications.encode(), *subscriptions])
            self.report.matches += self._publications.rows

    def _matches_file(self) -> ParquetFile:
        if self._matches is None:
            self.report.matches_file = f"part-{self.report.chunk:05d}-{self.key}.parquet"
            names = (PUBLICATION, *(column.name for column in self._columns))
            self._matches = ParquetFile(self._open(self.report.matches_file), names)
        return self._matches

    def _reject_file(self) -> Any:
        if self._rejects is None:
            self.report.rejects_file = f"rejects-{self.report.chunk:05d}-{self.key}.jsonl"
            self._rejects = self._open(self.report.rejects_file)
        return self._rejects

    def _open(self, name: str) -> Any:
        stream = self._results.files.open_output_stream(f"{self._results.path}/{name}")
        return self._files.enter_context(stream)


# The result of the batch job: written to a working folder beside it, moved into place when all tasks have finished.


SHOWN_REJECTS = 20
DELETE_ATTEMPTS = 5


def check_target_free(out: Location, given: str | Path, force: bool, option: str = "--force") -> None:
    """Raise `InputError` if the result would overwrite files; `force`, set by `option`, allows an earlier result."""
    info = out.info()
    names = [] if info.type == fs.FileType.NotFound or info.is_file else list_names(out)
    if info.is_file or (names and not (force and _is_result(names))):
        raise InputError(
            "the result would overwrite existing files",
            where=str(given),
            accepted=f"a folder that is new or empty, or with {option} an earlier result",
            hint=_suggest_target(info.is_file, names, option),
        )


def _suggest_target(is_file: bool, names: Sequence[str], option: str) -> str:
    if is_file:
        return "it is a file; choose another name"
    return f"choose another name, or use {option}" if _is_result(names) else "choose another name"


def _is_result(names: Sequence[str]) -> bool:
    """Return whether a folder has only files that a batch job or Spark writes: only those may be replaced."""
    return bool(names) and all(
        name == "_SUCCESS" or name.endswith((".parquet", ".crc")) or name.startswith("part-")
        for name in names
    )


def check_separate(out: str | Path, others: Sequence[str | Path]) -> None:
    """Raise `InputError` if result and input overlap: replacing one would delete the other."""
    place = _resolve(out)
    for other in others:
        if _resolve(other).is_relative_to(place) or place.is_relative_to(_resolve(other)):
            raise InputError(
                "the result and its input would be in the same place",
                where=str(out),
                received=str(other),
                accepted="a separate folder",
            )


def _resolve(place: str | Path) -> PurePath:
    """Resolve links and relative parts of a path; a URI stays as it is."""
    return PurePosixPath(str(place)) if "://" in str(place) else Path(place).resolve()


def check_rejects_file(path: Path | None) -> None:
    """Raise `InputError` before the job begins if the rejects file cannot be written."""
    if path is None:
        return
    existing = next(place for place in (path.absolute(), *path.absolute().parents) if place.exists())
    if path.parts[:1] and path.parts[0].endswith(":"):
        raise _unwritable_rejects(path, "it is a URI; the rejects file has to be on this machine")
    if path.is_dir():
        raise _unwritable_rejects(path, "it is a folder")
    if existing != path.absolute() and not existing.is_dir():
        raise _unwritable_rejects(path, f"{existing} is not a folder")
    if not os.access(existing, os.W_OK):
        raise _unwritable_rejects(path, f"{existing} is not writable")


def _unwritable_rejects(path: Path, hint: str) -> InputError:
    return InputError(
        "the rejects file cannot be written", received=f"'{path}'", accepted="a file", hint=hint
    )


def list_names(folder: Location) -> list[str]:
    """List the names in a folder; return nothing if it does not exist."""
    return sorted(info.base_name for info in folder.inside())


@contextmanager
def working_folder(out: Location) -> Iterator[Location]:
    """Provide a folder beside the result, and delete it in any case."""
    parent, _, name = out.uri.rstrip("/").rpartition("/")
    work = Location(f"{parent}/.{name}-{uuid4().hex[:8]}")
    work.files.create_dir(work.path)
    try:
        yield work
    finally:
        _delete_folder(work)


def _delete_folder(folder: Location) -> None:
    """Delete a folder in which tasks that Spark has cancelled may still create their last files."""
    for attempts_left in reversed(range(DELETE_ATTEMPTS)):
        try:
            folder.files.delete_dir(folder.path)
        except OSError:
            if not attempts_left:
                raise
        else:
            return


def publish_result(
    work: Location,
    out: Location,
    reports: Sequence[ChunkReport],
    force: bool,
    columns: Sequence[str] = MATCH_COLUMNS,
) -> None:
    """Move the files of the reports into the result; `_SUCCESS`, the last, marks it as complete."""
    files, names = out.files, [report.matches_file for report in reports if report.matches_file]
    files.create_dir(out.path)
    if force:
        files.delete_dir_contents(out.path)
    if not names:
        names = ["part-00000-empty.parquet"]
        with files.open_output_stream(f"{work.path}/{names[0]}") as file:
            ParquetFile(file, columns).close()
    for name in names:
        files.move(f"{work.path}/{name}", f"{out.path}/{name}")
    files.open_output_stream(f"{out.path}/_SUCCESS").close()


def write_rejects(
    path: Path | None, subscriptions: Sequence[Reject], work: Location, reports: Sequence[ChunkReport]
) -> tuple[Reject, ...]:
    """Write all rejects to the file, if there is one, and return the first few."""
    examples = list(subscriptions[:SHOWN_REJECTS])
    with _reject_writer(path) as write:
        for reject in subscriptions:
            write(format_reject(reject))
        for report in reports:
            if report.rejects_file:
                with work.files.open_input_stream(f"{work.path}/{report.rejects_file}") as lines:
                    data = lines.read()
                write(data)
                wanted = SHOWN_REJECTS - len(examples)
                examples.extend(map(_parse_reject, data.splitlines()[: max(wanted, 0)]))
    return tuple(examples)


@contextmanager
def _reject_writer(path: Path | None) -> Iterator[Callable[[bytes], object]]:
    if path is None:
        yield len
        return
    with open_rejects(path) as file:
        yield file.write


def open_rejects(path: Path) -> BinaryIO:
    """Open the rejects file; a failure now leaves the result complete, and the error says so."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("wb")
    except OSError as problem:
        raise _unwritable_rejects(path, f"{problem.strerror}; the result itself is complete") from problem


def format_reject(reject: Reject) -> bytes:
    """Return the line of the rejects file for a reject."""
    place: dict[str, object] = {name: reject.facts[name] for name in ("file", "line") if name in reject.facts}
    line = {"what": reject.what, "id": reject.id, **place, "reason": reject.reason, "facts": reject.facts}
    return json.dumps(line).encode() + b"\n"


def _parse_reject(line: bytes) -> Reject:
    fields = json.loads(line)
    place: dict[str, object] = {name: fields[name] for name in ("file", "line") if name in fields}
    return Reject(fields["what"], fields["id"], fields["reason"], {**fields["facts"], **place})

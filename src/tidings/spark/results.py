"""Where the batch job's result comes about: a working folder beside it, moved into place when all tasks are done."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePath, PurePosixPath
from typing import BinaryIO
from uuid import uuid4

from pyarrow import fs

from tidings.errors import InputError
from tidings.matching.parquet import ParquetFile
from tidings.model import Reject
from tidings.spark.locations import Location
from tidings.spark.output import MATCHES, Report

SHOWN_REJECTS = 20


def check_free(out: Location, given: str | Path, force: bool) -> None:
    """Refuse to write over something, unless that is wanted."""
    info = out.info()
    there = [] if info.type == fs.FileType.NotFound or info.is_file else names(out)
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


def check_apart(out: str | Path, others: Sequence[str | Path]) -> None:
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


def check_rejects(path: Path | None) -> None:
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


def names(folder: Location) -> list[str]:
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


def publish(work: Location, out: Location, reports: Sequence[Report], force: bool) -> None:
    """Move the files of the reports into the result; `_SUCCESS` comes last and says that it is whole."""
    files, names = out.files, [report.matches_file for report in reports if report.matches_file]
    files.create_dir(out.path)
    if force:
        files.delete_dir_contents(out.path)
    if not names:
        names = ["part-00000-empty.parquet"]
        with files.open_output_stream(f"{work.path}/{names[0]}") as file:
            ParquetFile(file, MATCHES).close()
    for name in names:
        files.move(f"{work.path}/{name}", f"{out.path}/{name}")
    files.open_output_stream(f"{out.path}/_SUCCESS").close()


def write_rejects(
    path: Path | None, subscriptions: Sequence[Reject], work: Location, reports: Sequence[Report]
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

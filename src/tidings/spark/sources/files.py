"""Files of publications in a folder, and what they are called.

A `.jsonl` or `.ndjson` file has an event a line; any other file is one document. Files and folders whose names
begin with a dot or an underscore are left alone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from pyarrow import fs

from tidings.errors import InputError

# Places of files: paths, and addresses that pyarrow knows.


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

    @property
    def for_spark(self) -> str:
        """The address as Spark wants it: Hadoop takes a path as it is written, and %20 for three characters."""
        return f"file://{self.path}" if self.uri.startswith("file:") else self.uri

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
    except UnicodeDecodeError as problem:
        raise InputError("this name is not UTF-8", received=f"'{shown}'", accepted="UTF-8") from problem
    except OSError as problem:
        hint = _first_line(problem).replace(uri, shown)
        raise InputError("this place cannot be reached", where=shown, hint=hint) from problem


def _first_line(problem: Exception) -> str:
    return str(problem).split("\n", 1)[0]


def explain_unreadable(files: fs.FileSystem, path: str, problem: OSError) -> str:
    """Why a file cannot be read. If its file system does not answer, the file is not to blame: that is raised."""
    if files.get_file_info(path).type == fs.FileType.NotFound:
        return "the file was gone before it was read"
    return f"the file cannot be read: {_first_line(problem)}"


LINE_SUFFIXES = (".jsonl", ".ndjson")
COMPRESSED_SUFFIXES = tuple(f"{ending}.gz" for ending in LINE_SUFFIXES)
MISNAMED = "the file cannot be read: its name is not UTF-8"


class PublicationFile(NamedTuple):
    """A file of publications, what it is called, and why it cannot be opened, if that is known already."""

    info: fs.FileInfo
    name: str
    problem: str = ""

    @property
    def has_lines(self) -> bool:
        return self.name.endswith(LINE_SUFFIXES + COMPRESSED_SUFFIXES)


def list_files(location: Location) -> list[PublicationFile]:
    """The files of a folder and what they are called: their path inside it. Hidden ones are left out."""
    prefix = location.path.rstrip("/") + "/"
    infos = location.inside(recursive=True)
    named = [info for info in infos if _is_named(info)]
    found = [PublicationFile(info, info.path.removeprefix(prefix)) for info in named]
    files = sorted(
        (file for file in found if file.info.is_file and not _hidden(file.name)), key=_depth_and_name
    )
    if isinstance(location.files, fs.LocalFileSystem):
        files = _once(files)
        if len(named) < len(infos):
            files.extend(_misnamed(location.path))
    return sorted(files, key=lambda file: file.name)


def _is_named(info: fs.FileInfo) -> bool:
    try:
        return bool(info.path)
    except UnicodeDecodeError:
        return False


def _misnamed(folder: str) -> Iterator[PublicationFile]:
    """The files that pyarrow cannot name, and so cannot open: their names are not UTF-8. Shown with escapes."""
    seen, prefix = set(), folder.rstrip("/") + "/"
    for place, folders, names in os.walk(folder, followlinks=True):
        seen.add(os.path.realpath(place))
        folders[:] = [name for name in folders if os.path.realpath(f"{place}/{name}") not in seen]
        for name in names:
            inside = f"{place}/{name}".removeprefix(prefix)
            shown = os.fsencode(inside).decode(errors="backslashreplace")
            if shown != inside and not _hidden(shown):
                yield PublicationFile(fs.FileInfo(shown, fs.FileType.File, size=0), shown, MISNAMED)


def _depth_and_name(file: PublicationFile) -> tuple[int, str]:
    return file.name.count("/"), file.name


def _once(files: list[PublicationFile]) -> list[PublicationFile]:
    """Each file once, under its shortest name, also where a link leads back to a folder above."""
    folders: dict[str, str] = {}
    known: dict[tuple[str, str], PublicationFile] = {}
    for file in files:
        parent = file.info.path.removesuffix(file.info.base_name)
        if parent not in folders:
            folders[parent] = os.path.realpath(parent)
        known.setdefault((folders[parent], file.info.base_name), file)
    return list(known.values())


def list_publications(place: str | Path) -> list[PublicationFile]:
    """The files to read, and what they are called; it is an error if there are none."""
    location, given = Location.of(place), str(place)
    info = location.info()
    if info.type == fs.FileType.NotFound:
        raise InputError("there are no publications: neither a file nor a folder", received=given)
    if info.is_file:
        return [PublicationFile(info, info.base_name)]
    files = list_files(location)
    if not files:
        raise InputError(
            "the folder has no publications", where=given, accepted="*.jsonl, or a document a file"
        )
    return files


def _hidden(name: str) -> bool:
    return any(part.startswith((".", "_")) for part in name.split("/"))

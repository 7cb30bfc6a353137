"""Places of files: paths, and addresses that pyarrow knows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import pyarrow as pa
from pyarrow import fs

from tidings.errors import InputError


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


def why_unreadable(files: fs.FileSystem, path: str, problem: OSError) -> str:
    """Why a file cannot be read. If its file system does not answer, the file is not to blame: that is raised."""
    if files.get_file_info(path).type == fs.FileType.NotFound:
        return "the file was gone before it was read"
    return f"the file cannot be read: {_first_line(problem)}"

"""Segments of an index on their way from the driver to executors: content-addressed, cached once per host.

    driver                                             executor
    describe_index(index) -> IndexManifest  ─plan──>   SegmentCache.open(manifest, source) -> Index
    SegmentSource: inline, Spark files or a URI        <cache>/segments/<digest>/   mapped by all Python workers

A manifest travels inside the plan; it names segments by the digest of their content, so executors fetch each segment
once, whatever index version refers to it. Segment files that only compaction needs stay behind.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import json
import os
import shutil
import stat
import tarfile
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from pyspark import SparkFiles

from tidings.core.atomic_files import private_folder
from tidings.errors import SetupError
from tidings.matching.index.index import Index
from tidings.matching.index.versions import Marks, Part
from tidings.spark.sources.files import Location

MATCHING_FILES = ("arrays.bin", "segment.json", "subscriptions.arrow")
"""Files of a segment that matching needs. The others are for lookups by id and for compaction."""

CACHE_VARIABLE = "TIDINGS_SEGMENT_CACHE"
CACHE_BYTES_VARIABLE = "TIDINGS_SEGMENT_CACHE_BYTES"
CACHE_BYTES = 10 << 30
READ_BYTES = 1 << 20
OPEN_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class SegmentEntry:
    """A segment of a version: digest of its files, number of subscriptions, and removed rows as int32 bytes."""

    digest: str
    subscriptions: int
    nbytes: int
    removed: bytes = b""


@dataclass(frozen=True, slots=True)
class IndexManifest:
    """One version of an index, as the segments that make it up."""

    segments: tuple[SegmentEntry, ...]

    @property
    def digest(self) -> str:
        content = hashlib.blake2b(digest_size=16)
        for entry in self.segments:
            content.update(f"{entry.digest} {len(entry.removed)} ".encode() + entry.removed)
        return content.hexdigest()

    @property
    def nbytes(self) -> int:
        return sum(entry.nbytes for entry in self.segments)

    def to_json(self) -> str:
        return json.dumps([asdict(entry) | {"removed": entry.removed.hex()} for entry in self.segments])

    @classmethod
    def from_json(cls, text: str | bytes) -> IndexManifest:
        entries = [{**entry, "removed": bytes.fromhex(entry["removed"])} for entry in json.loads(text)]
        return cls(tuple(SegmentEntry(**entry) for entry in entries))

    def split(self, groups: int) -> list[IndexManifest]:
        """Divide the segments into groups of about the same size, the largest segments first."""
        members: list[list[SegmentEntry]] = [[] for _ in range(groups)]
        for entry in sorted(self.segments, key=lambda entry: -entry.nbytes):
            min(members, key=lambda group: sum(each.nbytes for each in group)).append(entry)
        return [IndexManifest(tuple(group)) for group in members if group]


@dataclass(frozen=True, slots=True)
class DescribedIndex:
    """A manifest, and the folder of each of its segments on this machine."""

    manifest: IndexManifest
    folders: Mapping[str, Path]


def describe_index(index: Index) -> DescribedIndex:
    """Compute the manifest of the current version of an index."""
    entries, folders = [], {}
    for name, subscriptions, removed in index.list_segments():
        folder = index.folder / name
        digest, nbytes = _digest_segment(folder, folder.stat().st_mtime_ns)
        entries.append(SegmentEntry(digest, subscriptions, nbytes, np.sort(removed).tobytes()))
        folders[digest] = folder
    return DescribedIndex(IndexManifest(tuple(entries)), folders)


@lru_cache(maxsize=4_096)
def _digest_segment(folder: Path, created: int) -> tuple[str, int]:
    """Return digest and size of a segment. Segments never change, so a digest is computed once."""
    return _digest_files(folder)


def _digest_files(folder: Path) -> tuple[str, int]:
    content, nbytes = hashlib.blake2b(digest_size=16), 0
    for name in MATCHING_FILES:
        with (folder / name).open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            content.update(f"{name} {size} ".encode())
            while data := file.read(READ_BYTES):
                content.update(data)
        nbytes += size
    return content.hexdigest(), nbytes


def archive_segment(folder: Path, target: Path) -> None:
    """Write the files of a segment that matching needs to a tar archive."""
    with tarfile.open(target, "w", format=tarfile.USTAR_FORMAT) as archive:
        for name in MATCHING_FILES:
            archive.add(folder / name, name)


def archive_name(digest: str) -> str:
    """Return the file name of an archive. Not `.tar`: executors would unpack it among the files of other segments."""
    return f"tidings-{digest}.segment"


class SegmentSource(ABC):
    """Where executors get segments from. Instances are pickled into the plan."""

    def find_folder(self, digest: str) -> Path | None:
        """Return the folder of a segment that can be mapped in place, without a copy in the cache."""
        return None

    @abstractmethod
    def fetch(self, digest: str, target: Path) -> None:
        """Write the files of a segment to an empty folder."""


@dataclass(frozen=True, slots=True)
class LocalSegments(SegmentSource):
    """Folders on this machine, for masters whose executors run on it."""

    folders: Mapping[str, str]

    def find_folder(self, digest: str) -> Path | None:
        return Path(self.folders[digest])

    def fetch(self, digest: str, target: Path) -> None:
        raise AssertionError("local segments are mapped in place")


@dataclass(frozen=True, slots=True)
class InlineSegments(SegmentSource):
    """Small segments inside the plan itself: works with every master, and through Spark Connect."""

    archives: Mapping[str, bytes]

    def fetch(self, digest: str, target: Path) -> None:
        _unpack(io.BytesIO(self.archives[digest]), target)


@dataclass(frozen=True, slots=True)
class SparkFileSegments(SegmentSource):
    """Files that the driver has distributed with `SparkContext.addFile` or `SparkSession.addArtifacts`."""

    def fetch(self, digest: str, target: Path) -> None:
        try:
            with Path(SparkFiles.get(archive_name(digest))).open("rb") as file:
                _unpack(file, target)
        except FileNotFoundError as problem:
            raise SetupError(
                "Spark has not delivered a segment of the index to this executor",
                received=str(problem),
                hint="publish the subscriptions to a URI that executors can read: Subscriptions.publish(uri)",
            ) from problem


@dataclass(frozen=True, slots=True)
class RemoteSegments(SegmentSource):
    """Archives below a URI that executors can read: a shared folder, S3, GCS or HDFS."""

    uri: str

    def fetch(self, digest: str, target: Path) -> None:
        location = Location(f"{self.uri}/segments/{archive_name(digest)}")
        with location.files.open_input_file(location.path) as file:
            _unpack(file, target)


def _unpack(file: io.IOBase, target: Path) -> None:
    with tarfile.open(fileobj=file, mode="r:") as archive:
        for name in MATCHING_FILES:
            member = archive.extractfile(name)
            assert member is not None
            with (target / name).open("wb") as copy:
                shutil.copyfileobj(member, copy, READ_BYTES)


class SegmentCache:
    """Segments and assembled indexes in a folder of this host, shared by all Python workers of one user.

    A segment is fetched by one process at a time (file lock), checked against its digest and renamed into place. When
    the cache exceeds its limit, the least recently used segments go, but none of the index that is being opened; files
    that are mapped stay readable on POSIX.
    """

    def __init__(self, folder: Path, limit: int = CACHE_BYTES) -> None:
        self._folder, self._limit = folder, limit

    @classmethod
    def of_host(cls) -> SegmentCache:
        """Return the cache of this host and user: `TIDINGS_SEGMENT_CACHE`, else a private temporary folder."""
        named = os.environ.get(CACHE_VARIABLE)
        folder = Path(named) if named else Path(tempfile.gettempdir(), f"tidings-segments-{os.getuid()}")
        private_folder(folder)
        status = folder.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
            raise SetupError(
                "the segment cache belongs to another user",
                where=str(folder),
                hint=f"set {CACHE_VARIABLE} to a folder of your own on every executor",
            )
        return cls(folder, int(os.environ.get(CACHE_BYTES_VARIABLE, CACHE_BYTES)))

    def open(self, manifest: IndexManifest, source: SegmentSource) -> Index:
        """Open the index of a manifest; fetch the segments that this host does not have yet."""
        for attempts_left in reversed(range(OPEN_ATTEMPTS)):
            try:
                return self._open(manifest, source)
            except FileNotFoundError:  # another process has evicted a segment before it was mapped here
                if not attempts_left:
                    raise
        raise AssertionError("the last attempt raises")

    def _open(self, manifest: IndexManifest, source: SegmentSource) -> Index:
        with tempfile.TemporaryDirectory(prefix="marks-", dir=self._folder) as folder:
            parts = [
                self._part(number, entry, source, folder) for number, entry in enumerate(manifest.segments)
            ]
            self._evict({entry.digest for entry in manifest.segments})
            index = Index(Path(folder), 1, parts)
            index.paths  # noqa: B018 - maps every segment and reads the marks: no file is opened later
            return index

    def _part(self, number: int, entry: SegmentEntry, source: SegmentSource, folder: str) -> Part:
        segment = source.find_folder(entry.digest) or self._fetch(entry, source)
        if not entry.removed:
            return Part(str(segment), entry.subscriptions)
        rows, name = np.frombuffer(entry.removed, np.int32), f"dead-{number}.npy"
        np.save(Path(folder, name), rows)
        return Part(str(segment), entry.subscriptions, (Marks(name, len(rows)),))

    def _fetch(self, entry: SegmentEntry, source: SegmentSource) -> Path:
        folder = self._folder / "segments" / entry.digest
        with _locked(self._folder / f"{entry.digest}.lock"):
            if folder.exists():
                os.utime(folder)
                return folder
            folder.parent.mkdir(exist_ok=True)
            unfinished = Path(tempfile.mkdtemp(prefix="unfinished-", dir=folder.parent))
            try:
                source.fetch(entry.digest, unfinished)
                if _digest_files(unfinished)[0] != entry.digest:
                    raise SetupError("a segment of the index was damaged on its way", where=entry.digest)
                unfinished.rename(folder)
            finally:
                shutil.rmtree(unfinished, ignore_errors=True)
        return folder

    def _evict(self, needed: Collection[str]) -> None:
        segments = [(path.stat().st_mtime, path) for path in (self._folder / "segments").glob("[!u]*")]
        size = {path: sum(file.stat().st_size for file in path.iterdir()) for _, path in segments}
        total = sum(size.values())
        for _, path in sorted(segments):
            if total <= self._limit:
                return
            if path.name in needed:
                continue
            with _locked(self._folder / f"{path.name}.lock"):
                shutil.rmtree(path, ignore_errors=True)
            total -= size[path]


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield

"""What tasks match with: an index version, event schema and taxonomy; fixed, or published at a location.

    <location>/segments/tidings-<digest>.segment
    <location>/versions/00000007.json                  manifest, schema and taxonomy of version 7
    <location>/pins/<query>/<batch>                    the version that a micro-batch uses

A streaming query takes the newest version at the beginning of each micro-batch. The first task of the batch records
it in a file that only one task can create, so all tasks, and a repeated batch, use the same version.
"""

from __future__ import annotations

import json
import os
from base64 import b64decode, b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from errno import ENOMEM
from functools import lru_cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

from pyarrow import fs
from pyspark import TaskContext

from tidings.errors import InputError, SetupError
from tidings.events.schema.files import load_text
from tidings.graphs.rdf.multipart import N_TRIPLES
from tidings.graphs.taxonomy import Taxonomy
from tidings.graphs.taxonomy_files import taxonomy_in
from tidings.kinds import register, registered_addresses
from tidings.matching.index.index import Index
from tidings.spark.dataframe.segments import (
    DescribedIndex,
    IndexManifest,
    RemoteSegments,
    SegmentCache,
    SegmentSource,
    archive_name,
    archive_segment,
)
from tidings.spark.decoder import Decoder
from tidings.spark.sources.files import Location

BATCH_PROPERTY, QUERY_PROPERTY = "streaming.sql.batchId", "sql.streaming.queryId"
"""Local properties that Spark sets for the tasks of a micro-batch."""
KEPT_PINS = 100
"""Micro-batches of a query whose version stays recorded."""


@dataclass(frozen=True, slots=True)
class MatchEnvironment:
    """Everything a task needs to match. Travels inside the plan.

    With `follow`, the newest version at that location is used in each micro-batch of a stream.
    """

    manifest: IndexManifest
    source: SegmentSource
    schema: str | None = None
    taxonomy: bytes | None = None
    follow: str | None = None
    is_group: bool = False
    kinds: tuple[str, ...] = field(default_factory=registered_addresses)

    def split(self, groups: int) -> list[MatchEnvironment]:
        """Divide the segments into groups. A worker then has one group open at a time."""
        if groups < 1:
            raise InputError("groups are counted from one", where="groups", received=str(groups))
        if groups == 1:
            return [self]
        if self.follow is not None:
            raise InputError(
                "a set of subscriptions that may change cannot be divided into groups",
                where="groups",
                hint="fix the version: Subscriptions.at(location, version=...)",
            )
        parts = self.manifest.split(groups) or [self.manifest]
        return [replace(self, manifest=part, is_group=True) for part in parts]

    def open(self, id_field: str) -> tuple[Index, Decoder]:
        """Open index and decoder in a task. Python workers are reused: the last few stay open."""
        environment = self._pinned() if self.follow is not None else self
        key = (environment.manifest.digest, environment.schema, environment.taxonomy, id_field)
        if key not in _opened:
            while len(_opened) >= (1 if self.is_group else OPEN_ENVIRONMENTS):
                del _opened[next(iter(_opened))]
            _opened[key] = environment._open(id_field)
        return _opened[key]

    def _open(self, id_field: str) -> tuple[Index, Decoder]:
        register(*self.kinds)
        index = SegmentCache.of_host().open(self.manifest, self.source)
        schema = load_text(self.schema) if self.schema else None
        return index, Decoder.for_index(index, schema, id_field, taxonomy=partial(_taxonomy, self.taxonomy))

    def _pinned(self) -> MatchEnvironment:
        context = TaskContext.get()
        query = context.getLocalProperty(QUERY_PROPERTY) if context else None
        if context is None or query is None or self.follow is None:
            return self
        location = PublishedSubscriptions(self.follow)
        batch = int(context.getLocalProperty(BATCH_PROPERTY) or 0)
        return _read_version(self.follow, location.pin(query, batch))


@contextmanager
def explain_memory(environment: MatchEnvironment) -> Iterator[None]:
    """Raise `SetupError` if the memory of a Python worker does not suffice."""
    try:
        yield
    except (MemoryError, OSError) as problem:
        if isinstance(problem, OSError) and problem.errno != ENOMEM:
            raise
        raise SetupError(
            "a Python worker has too little memory",
            received=f"an index of {environment.manifest.nbytes:,} bytes",
            hint="divide the index: match(..., groups=...); or raise spark.executor.pyspark.memory",
        ) from problem


OPEN_ENVIRONMENTS = 4
_opened: dict[tuple[str, str | None, bytes | None, str], tuple[Index, Decoder]] = {}


@lru_cache(maxsize=2)
def _taxonomy(body: bytes | None) -> Taxonomy:
    return Taxonomy() if body is None else taxonomy_in(body, N_TRIPLES)


@dataclass(frozen=True, slots=True)
class PublishedSubscriptions:
    """Versions of a set of subscriptions at a URI. One publisher at a time, any number of readers."""

    uri: str
    version: int | None = None

    @classmethod
    def create(cls, location: str | Path) -> PublishedSubscriptions:
        """Return a location that is written to; its folders are created."""
        published = cls(Location.of(location).uri.rstrip("/"))
        for name in ("segments", "versions"):
            place = published._place(name)
            place.files.create_dir(place.path)
        return published

    @classmethod
    def open(cls, location: str | Path, version: int | None = None) -> PublishedSubscriptions:
        """Return a location with published subscriptions, optionally fixed to one version."""
        published = cls(Location.of(location).uri.rstrip("/"), version)
        if version not in (None, *(versions := published.list_versions())) or not versions:
            raise InputError(
                "no such version is published here" if versions else "no subscriptions are published here",
                where=str(location),
                received=None if version is None else f"version {version}",
                accepted=f"versions {versions[0]} to {versions[-1]}" if versions else None,
                hint="Subscriptions.compile(...).publish(location) publishes some",
            )
        return published

    @classmethod
    def is_at(cls, location: str) -> bool:
        """Return whether subscriptions are published at a location."""
        return bool(cls(Location.of(location).uri.rstrip("/")).list_versions())

    def list_versions(self) -> list[int]:
        """List the published versions, oldest first."""
        names = (info.base_name for info in self._place("versions").inside())
        return sorted(int(name.removesuffix(".json")) for name in names if name[0].isdigit())

    def environment(self) -> MatchEnvironment:
        """Return what tasks need: the fixed version, or the newest one and where to look for newer ones."""
        if self.version is not None:
            return _read_version(self.uri, self.version)
        newest = _read_version(self.uri, self.list_versions()[-1])
        return MatchEnvironment(newest.manifest, newest.source, newest.schema, newest.taxonomy, self.uri)

    def add(self, described: DescribedIndex, schema: str | None, taxonomy: bytes | None, keep: int) -> int:
        """Publish a version: send the segments that are not there yet, then list them in a new version file."""
        for digest, folder in described.folders.items():
            self._send(digest, folder)
        versions = self.list_versions()
        version = versions[-1] + 1 if versions else 1
        encoded = b64encode(taxonomy).decode() if taxonomy else None
        content = {"manifest": described.manifest.to_json(), "schema": schema, "taxonomy": encoded}
        self._write(f"versions/{version:08d}.json", json.dumps(content).encode())
        self._collect([*versions, version], max(1, keep))
        return version

    def pin(self, query: str, batch: int) -> int:
        """Return the version that a micro-batch uses: the newest one, as seen by its first task."""
        folder = self._place(f"pins/{query}")
        if not isinstance(folder.files, fs.LocalFileSystem):
            raise SetupError(
                "this file system cannot record which version a micro-batch uses",
                where=self.uri,
                accepted="a folder that all executors share, or Subscriptions.at(uri, version=...)",
            )
        path = Path(folder.path, str(batch))
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._create_pin(path, self.list_versions()[-1])
            for old in path.parent.glob("[0-9]*"):
                if int(old.name) <= batch - KEPT_PINS:
                    old.unlink(missing_ok=True)
        return int(path.read_text())

    @staticmethod
    def _create_pin(path: Path, version: int) -> None:
        """Create the file with its content in one step; the first task to do so wins."""
        unfinished = path.with_name(f".{uuid4().hex}")
        unfinished.write_text(str(version))
        try:
            os.link(unfinished, path)
        except FileExistsError:
            pass
        finally:
            unfinished.unlink()

    def _send(self, digest: str, folder: Path) -> None:
        place = self._place(f"segments/{archive_name(digest)}")
        if place.info().is_file:
            return
        with TemporaryDirectory() as scratch:
            archive = Path(scratch, "segment.tar")
            archive_segment(folder, archive)
            self._write(f"segments/{archive_name(digest)}", archive.read_bytes())

    def _write(self, name: str, content: bytes) -> None:
        """Write a file under a temporary name and rename it, so that readers never see a part of it."""
        target = self._place(name)
        parent, _, base = target.path.rpartition("/")
        unfinished = f"{parent}/.{base}-{uuid4().hex[:8]}"
        with target.files.open_output_stream(unfinished) as file:
            file.write(content)
        target.files.move(unfinished, target.path)

    def _collect(self, versions: list[int], keep: int) -> None:
        """Delete old versions, and segments that none of the others refers to."""
        if len(versions) <= keep:
            return
        for version in versions[:-keep]:
            place = self._place(f"versions/{version:08d}.json")
            place.files.delete_file(place.path)
        kept = {
            archive_name(entry.digest)
            for version in versions[-keep:]
            for entry in _read_version(self.uri, version).manifest.segments
        }
        for info in self._place("segments").inside():
            if info.base_name not in kept:
                self._place("segments").files.delete_file(info.path)

    def _place(self, name: str) -> Location:
        return Location(f"{self.uri}/{name}")


@lru_cache(maxsize=64)
def _read_version(uri: str, version: int) -> MatchEnvironment:
    place = Location(f"{uri}/versions/{version:08d}.json")
    try:
        with place.files.open_input_stream(place.path) as file:
            content = json.loads(file.read())
    except FileNotFoundError as problem:
        raise SetupError(
            f"version {version} of the subscriptions was deleted",
            where=uri,
            hint="publish with a larger keep_versions, or start the query with a new checkpoint",
        ) from problem
    taxonomy = b64decode(content["taxonomy"]) if content["taxonomy"] else None
    manifest = IndexManifest.from_json(content["manifest"])
    return MatchEnvironment(manifest, RemoteSegments(uri), content["schema"], taxonomy)

"""Sets of subscriptions that DataFrames are matched with.

Subscriptions.compile(spark.table("subscriptions"))     a DataFrame with id, text and perhaps subscriber, language
Subscriptions.compile("subscriptions.jsonl")            a file of JSON Lines
Subscriptions.from_index("segments/")                   a compiled index
Subscriptions.from_store("postgresql://...")            the subscriptions of a Tidings store, as of now
subscriptions.publish("s3://bucket/subscriptions")      for executors that do not share a disk with the driver
Subscriptions.at("s3://bucket/subscriptions")           what is published there, also as it changes
"""

from __future__ import annotations

import atexit
import shutil
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from threading import Lock
from typing import TYPE_CHECKING, Any, Union

import pyarrow as pa
import pyarrow.compute as pc

from tidings.errors import InputError
from tidings.events.schema.event_schema import EventSchema
from tidings.events.schema.files import dump, load
from tidings.graphs.taxonomy import Taxonomy, merged
from tidings.graphs.taxonomy_files import dump_taxonomy, taxonomy_in
from tidings.kinds import media_type_of
from tidings.matching.compiler.compilation import compile_many
from tidings.matching.compiler.plan import Compiled
from tidings.matching.index.index import Index
from tidings.model import Reject, Subscription
from tidings.spark.batch.subscription_file import FIELDS, PAUSED, STATE, compile_table, read_subscriptions
from tidings.spark.dataframe.environment import MatchEnvironment, PublishedSubscriptions
from tidings.spark.dataframe.segments import (
    DescribedIndex,
    InlineSegments,
    LocalSegments,
    SegmentSource,
    SparkFileSegments,
    archive_name,
    archive_segment,
    describe_index,
)
from tidings.store.store import open_store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DEFAULTS = {"subscriber": "", "language": "predicates"}
INLINE_BYTES = 4 << 20
"""Indexes up to this size travel inside the plan; larger ones as files that Spark distributes."""

SubscriptionsLike = Union["Subscriptions", "DataFrame", Index, Iterable[Subscription], str, Path]
"""Whatever `match` accepts as subscriptions."""


class Subscriptions:
    """A compiled set of subscriptions. Compile it once and match any number of DataFrames with it.

    `rejects` are the subscriptions that were refused, with reasons; `size` is the number of the others.
    """

    def __init__(
        self,
        index: Index | None,
        rejects: Iterable[Reject] = (),
        schema: str | None = None,
        taxonomy: bytes | None = None,
        location: PublishedSubscriptions | None = None,
    ) -> None:
        self.rejects = tuple(rejects)
        self._index, self._schema, self._taxonomy, self._location = index, schema, taxonomy, location

    @classmethod
    def of(cls, subscriptions: SubscriptionsLike) -> Subscriptions:
        """Return the set for anything that `match` accepts as subscriptions."""
        if isinstance(subscriptions, Subscriptions):
            return subscriptions
        if isinstance(subscriptions, Index):
            return cls.from_index(subscriptions)
        if not isinstance(subscriptions, str | Path):
            return cls.compile(subscriptions)
        text = str(subscriptions)
        if text.startswith(("sqlite:", "postgresql:", "postgresql+")):
            return cls.from_store(text)
        if PublishedSubscriptions.is_at(text):
            return cls.at(text)
        return cls.from_index(text) if "://" not in text and Index.is_in(text) else cls.compile(text)

    @classmethod
    def compile(
        cls,
        subscriptions: DataFrame | Iterable[Subscription] | str | Path,
        schema: EventSchema | str | Path | None = None,
        taxonomies: Iterable[str | Path] = (),
    ) -> Subscriptions:
        """Compile a DataFrame (`id`, `text`, perhaps `subscriber` and `language`), a JSON Lines file, or objects.

        Rows with the `state` paused are skipped, in DataFrames and files.
        With an event schema, or the file of one, texts are checked against it, and events that contradict it are
        rejected. `taxonomies` are RDF files with the classes that graph subscriptions refer to.
        """
        checked = load(schema) if isinstance(schema, str | Path) else schema
        compiled, rejects = _compile(subscriptions, checked)
        index = Index.create(_new_folder("index-"))
        index.add(compiled)
        taxonomy = merged(*map(_read_taxonomy, taxonomies))
        return cls(
            index,
            [*rejects, *compiled.rejects],
            None if checked is None or checked.is_empty else dump(checked),
            dump_taxonomy(taxonomy),
        )

    @classmethod
    def from_index(cls, index: Index | str | Path) -> Subscriptions:
        """Use the current version of an index, or of the index in a folder."""
        return cls(index if isinstance(index, Index) else Index.open(index))

    @classmethod
    def from_store(cls, url: str) -> Subscriptions:
        """Compile the active subscriptions of a Tidings store, with its event schema and taxonomies, as of now."""
        with open_store(url) as store:
            if tables := store.references.load():
                raise InputError(
                    "match does not join reference tables",
                    where=url.rpartition("@")[2],
                    received=", ".join(table.name for table in tables),
                    hint="join them to the events with Spark, and compile the subscriptions from a DataFrame",
                )
            schema, files = store.schemas.load(), store.taxonomies.load()
            compiled = compile_many(store.subscriptions.changes(0).added, schema)
        index = Index.create(_new_folder("index-"))
        index.add(compiled)
        taxonomy = merged(*(taxonomy_in(file.body, file.media_type) for file in files))
        schema_text = None if schema.is_empty else dump(schema)
        return cls(index, compiled.rejects, schema_text, dump_taxonomy(taxonomy))

    @classmethod
    def at(cls, location: str | Path, version: int | None = None) -> Subscriptions:
        """Use what `publish` has written to a location: always the current version, or a fixed one.

        A stream takes the version that is current when a micro-batch begins. A repeated micro-batch gets the version
        of its first attempt.
        """
        return cls(None, location=PublishedSubscriptions.open(location, version))

    def publish(self, location: str | Path, keep_versions: int = 20) -> Subscriptions:
        """Write the set to a URI or folder that all executors can read; only segments that are new there are sent.

        Returns the set at that location. Streams that match with `Subscriptions.at(location)` use it from their next
        micro-batch on. Versions before the last `keep_versions` are deleted.
        """
        described = describe_index(self._opened_index)
        published = PublishedSubscriptions.create(location)
        published.add(described, self._schema, self._taxonomy, keep_versions)
        return Subscriptions(None, self.rejects, location=published)

    @property
    def size(self) -> int:
        """The number of subscriptions."""
        if self._index is not None:
            return self._index.size
        segments = self._location_environment().manifest.segments
        return sum(entry.subscriptions - len(entry.removed) // 4 for entry in segments)

    @property
    def segments(self) -> int:
        """The number of segments of the index."""
        return len(self._opened_index.describe())

    @property
    def nbytes(self) -> int:
        """The size of the index in bytes."""
        return self._opened_index.nbytes

    @property
    def attributes(self) -> tuple[str, ...] | None:
        """The paths of events that subscriptions test; None if the set may change while it is in use."""
        return self._index.paths if self._index is not None else None

    def environment(self, session: SparkSession) -> MatchEnvironment:
        """Return what tasks need to match with this set; distribute large segments with Spark."""
        if self._index is None:
            return self._location_environment()
        described = describe_index(self._index)
        source = _distribute(session, described)
        return MatchEnvironment(described.manifest, source, self._schema, self._taxonomy)

    def rejects_frame(self, session: SparkSession) -> DataFrame:
        """Return the rejected subscriptions as a DataFrame: id, reason."""
        rows = [(reject.id, reject.reason) for reject in self.rejects]
        return session.createDataFrame(rows, "id string, reason string")

    def numbers(self, session: SparkSession) -> DataFrame:
        """Return the subscriptions with their numbers in `match(..., shape="numbers")`: number, id, subscriber."""
        index = self._opened_index
        columns = pa.array(range(len(index.ids)), pa.int32()), index.ids.cast(pa.string()), index.subscribers
        return session.createDataFrame(pa.table(columns, ["number", "id", "subscriber"]))

    def _location_environment(self) -> MatchEnvironment:
        assert self._location is not None
        return self._location.environment()

    @property
    def _opened_index(self) -> Index:
        if self._index is None:
            raise InputError(
                "these subscriptions are published already", accepted="a set that was compiled here"
            )
        return self._index


def _compile(
    subscriptions: DataFrame | Iterable[Subscription] | str | Path, schema: EventSchema | None
) -> tuple[Compiled, Iterable[Reject]]:
    if isinstance(subscriptions, str | Path):
        read = read_subscriptions(subscriptions)
        return compile_table(read.subscriptions, schema), read.rejects
    if not hasattr(subscriptions, "toArrow"):
        return compile_many(subscriptions, schema), ()
    table, rejects = _check_rows(_read_frame(subscriptions))
    return compile_table(table, schema), rejects


def _read_frame(frame: DataFrame) -> pa.Table:
    """Collect a DataFrame of subscriptions, with defaults for columns that it does not have, without paused ones."""
    missing = [name for name in ("id", "text") if name not in frame.columns]
    if missing:
        raise InputError(
            f"the subscriptions have no column {' and no column '.join(missing)}",
            received=", ".join(frame.columns),
            accepted="id, text, and optionally subscriber, language",
            hint="rename columns with .withColumnsRenamed({...})",
        )
    from pyspark.sql import functions as F  # noqa: PLC0415 - classic and Connect have their own

    def column(name: str) -> Any:
        text = F.col(name).cast("string") if name in frame.columns else F.lit(DEFAULTS[name])
        return (F.coalesce(text, F.lit(DEFAULTS[name])) if name in DEFAULTS else text).alias(name)

    if STATE in frame.columns:
        frame = frame.where(F.coalesce(F.col(STATE).cast("string"), F.lit("")) != PAUSED)
    return frame.select(*map(column, FIELDS)).toArrow()


def _check_rows(table: pa.Table) -> tuple[pa.Table, list[Reject]]:
    """Reject rows without id or text, and rows that repeat an id."""
    ids, texts = table["id"].combine_chunks(), table["text"].combine_chunks()
    empty = pc.or_(_is_empty(ids), _is_empty(texts))
    if not pc.any(empty).as_py() and pc.count_distinct(ids).as_py() == len(ids):
        return table, []
    seen: set[str] = set()
    kept, rejects = [], []
    for row, (id, text) in enumerate(zip(ids.to_pylist(), texts.to_pylist(), strict=True)):
        if not id:
            rejects.append(Reject("subscription", f"row {row}", "the column 'id' is null or empty", {}))
        elif not text:
            rejects.append(Reject("subscription", id, "the column 'text' is null or empty", {}))
        elif id in seen:
            rejects.append(Reject("subscription", id, "another row has the same id", {}))
        else:
            seen.add(id)
            kept.append(row)
    return table.take(pa.array(kept, pa.int64())), rejects


def _is_empty(column: Any) -> Any:
    return pc.fill_null(pc.equal(pc.binary_length(column), 0), True)


def _distribute(session: SparkSession, described: DescribedIndex) -> SegmentSource:
    """Choose how segments reach the executors, cheapest first."""
    context = getattr(session, "_sc", None)  # a Connect session has none
    if context is not None and context.master.startswith("local") and "cluster" not in context.master:
        return LocalSegments({digest: str(folder.absolute()) for digest, folder in described.folders.items()})
    archives = _archives(described)
    if described.manifest.nbytes <= INLINE_BYTES:
        return InlineSegments({digest: path.read_bytes() for digest, path in archives.items()})
    for path in archives.values():
        if context is not None:
            context.addFile(str(path))
        elif (session.session_id, path) not in _sent:
            session.addArtifacts(str(path), file=True)
            _sent.add((session.session_id, path))
    return SparkFileSegments()


_sent: set[tuple[str, Path]] = set()
"""Archives that the sessions of Connect servers have: a server refuses to receive one twice."""
_archived: dict[str, Path] = {}
_archive_lock = Lock()


def _archives(described: DescribedIndex) -> dict[str, Path]:
    """Return archives of the segments. Each is written once: Spark refuses a second path for the same file name."""
    with _archive_lock:
        for digest, folder in described.folders.items():
            if digest not in _archived:
                path = _archive_folder() / archive_name(digest)
                archive_segment(folder, path)
                _archived[digest] = path
    return {digest: _archived[digest] for digest in described.folders}


@cache
def _archive_folder() -> Path:
    return _new_folder("segments-")


def _new_folder(prefix: str) -> Path:
    """Create a folder that lives as long as this process: plans refer to files in it."""
    folder = Path(mkdtemp(prefix=f"tidings-{prefix}"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _read_taxonomy(path: str | Path) -> Taxonomy:
    return taxonomy_in(Path(path).read_bytes(), media_type_of(str(path)))

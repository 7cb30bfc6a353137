"""Tables and files that Spark reads and writes: formats, options, addresses.

    Table("table:shop.orders")                       a table of the session's catalog
    Table("orders.parquet")                          a path, its format found by the names of its files
    Table("lake/orders")                             a Delta or Iceberg table, found by its log
    Table("orders/", "delta", {"versionAsOf": "3"})  any format that the session knows, with options
    Table.at("kafka://broker:9092/orders", SOURCE)   a topic

JSON Lines are read as text: Spark's JSON reader turns malformed lines into nulls without a word.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyarrow.fs import FileType
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidings.errors import InputError
from tidings.operations.kafka_address import KAFKA_SCHEME, parse_kafka_address
from tidings.spark.sources.files import LINE_SUFFIXES, Location, list_files

TABLE_PREFIX = "table:"
JSON_LINES = "json"

SUFFIXES = {".parquet": "parquet", ".csv": "csv", ".orc": "orc", ".avro": "avro"}
"""Formats by the names of files. Other files are publications themselves (`sources.files`)."""

LINES = dict.fromkeys(LINE_SUFFIXES, JSON_LINES)
"""Publication files that Spark can read as well."""

SPARK_JSON = ("part-*.json", "part-*.json.*")
"""Names of the JSON Lines that Spark writes."""

LAKE_LOGS = {"_delta_log": "delta", "metadata/version-hint.text": "iceberg"}
"""Formats by a file or folder of their logs. The data files of a table are Parquet, and not all of them are valid."""

DEFAULT_OPTIONS: Mapping[str, Mapping[str, str]] = {"csv": {"header": "true", "inferSchema": "true"}}

KAFKA = "kafka"
WITHOUT_PATH = (KAFKA, "jdbc")
"""Formats whose address is in their options."""

SOURCE, SINK = "subscribe", "topic"
"""The options that name a topic, for reading and for writing."""

FILE_FORMATS = ("parquet", "csv", JSON_LINES, "text", "orc", "avro", "xml", "binaryFile")
"""Formats of plain files. A stream of them needs a schema from the start."""

STREAM_OPTIONS: Mapping[str, Mapping[str, str]] = {
    KAFKA: {"startingOffsets": "earliest", "maxOffsetsPerTrigger": "200000"},
    **{name: {"maxFilesPerTrigger": "1000"} for name in FILE_FORMATS},
}
"""Defaults of streams: a new one reads everything, in micro-batches that end soon enough to be interrupted."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table or a path that Spark reads or writes."""

    address: str
    format: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def at(
        cls, address: str, topic: str, format: str | None = None, options: Mapping[str, str] | None = None
    ) -> Table:
        """Return the table at an address, which may be that of a Kafka topic; `topic` is `SOURCE` or `SINK`."""
        if not address.startswith(KAFKA_SCHEME):
            return cls(address, format, options or {})
        parsed = parse_kafka_address(address)
        if format not in (None, KAFKA):
            raise InputError("a Kafka address has the format kafka", where=parsed.name, received=format)
        if parsed.settings:
            raise InputError(
                "Spark's connector has settings of its own for authentication",
                where=parsed.name,
                received=", ".join(name for name, _ in parsed.settings),
                hint="append them as options: kafka.security.protocol=SASL_SSL, kafka.sasl.jaas.config=...",
            )
        servers = {"kafka.bootstrap.servers": ",".join(parsed.hosts), topic: parsed.topic}
        return cls(parsed.name, KAFKA, {**servers, **(options or {})})

    @property
    def name(self) -> str | None:
        """The name in the catalog, if the address is one."""
        return self.address.removeprefix(TABLE_PREFIX) if self.address.startswith(TABLE_PREFIX) else None

    def read(self, session: SparkSession) -> DataFrame:
        """Return the table as a DataFrame."""
        return self._load(session.read)

    def read_stream(self, session: SparkSession) -> DataFrame:
        """Return the table as a streaming DataFrame, with everything that it has and will have."""
        reader = session.readStream
        known = None if self.name is not None else self._find_readable_format()
        if known in FILE_FORMATS:
            self._check_folder()
            reader = reader.schema(self.read(session).schema)
        return self._load(reader, STREAM_OPTIONS.get(known or "", {}))

    def _load(self, reader: Any, defaults: Mapping[str, str] = {}) -> DataFrame:
        try:
            if self.name is not None:
                return reader.options(**self.options).table(self.name)
            known = self._find_readable_format()
            options = {**DEFAULT_OPTIONS.get(known, {}), **defaults, **self.options}
            return (
                reader.format("text" if known == JSON_LINES else known).options(**options).load(*self._path)
            )
        except (PySparkException, Py4JJavaError) as problem:  # an unknown format has no class of its own
            raise self._explain(problem, "read") from problem

    def _check_folder(self) -> None:
        if not any(sign in self.address for sign in "*?[{") and Location.of(self.address).info().is_file:
            raise InputError(
                "a stream reads the files of a folder",
                where=self.address,
                received="a file",
                hint="name its folder; to match one file, use tidings match",
            )

    def write(self, rows: DataFrame, overwrite: bool) -> None:
        """Write rows to the table, which must not exist unless it may be overwritten; Kafka takes them as messages."""
        self._save(rows, "overwrite" if overwrite else "errorifexists", self.options)

    def append(self, rows: DataFrame, **options: str) -> None:
        """Append rows to the table, which is created if there is none; Kafka takes them as messages."""
        self._save(rows, "append", {**self.options, **options})

    def _save(self, rows: DataFrame, mode: str, options: Mapping[str, str]) -> None:
        known = self.known_format
        is_file = self.name is None and known in FILE_FORMATS
        try:
            with nullcontext(rows) if is_file else _computed(rows) as ready:
                ready, mode = (_as_messages(ready), "append") if known == KAFKA else (ready, mode)
                writer = ready.write.mode(mode).options(**options)
                if self.name is not None:
                    (writer.format(self.format) if self.format else writer).saveAsTable(self.name)
                else:
                    writer.format(known).save(*self._path)
        except AnalysisException as problem:
            raise self._explain(problem, "written") from problem

    @property
    def known_format(self) -> str:
        """The format that the table is written in, unless it is a table of the catalog with a format of its own."""
        return self.format or find_format(self.address, LINES) or "parquet"

    def _find_readable_format(self) -> str:
        found = self.format or find_format(self.address, LINES)
        if found is None:
            raise InputError(
                "the names of the files do not tell their format",
                where=self.address,
                accepted="parquet, csv, json, text, orc, binaryFile, or another format that Spark reads",
                hint="name it with --format; for documents: --format binaryFile --value content --value-format xml",
            )
        return found

    @property
    def _path(self) -> tuple[str, ...]:
        return () if self.known_format in WITHOUT_PATH else (Location.of(self.address).for_spark,)

    def _explain(self, problem: Exception, done: str) -> InputError:
        lines = [line.strip(": ") for line in str(problem).splitlines() if line.strip()]
        message = lines[1] if isinstance(problem, Py4JJavaError) else lines[0]
        return InputError(f"the table cannot be {done}", where=self.address, received=message)


def find_format(address: str, more: Mapping[str, str] = {}) -> str | None:
    """Return the format of a path by the names of its files; None if these do not tell, or differ."""
    if address.startswith(TABLE_PREFIX):
        return None
    place = Location.of(address)
    is_folder = place.info().type == FileType.Directory
    if is_folder and (lake := find_lake_format(place)):
        return lake
    names = [file.name for file in list_files(place)] if is_folder else [address]
    formats = {_format_of_name(name, {**SUFFIXES, **more}) for name in names}
    return formats.pop() if len(formats) == 1 else None


def find_lake_format(folder: Location) -> str | None:
    """Return the format of a table that keeps a log in its folder; None if the folder is no such table."""
    logs = ((Location(f"{folder.uri.rstrip('/')}/{name}"), format) for name, format in LAKE_LOGS.items())
    return next((format for log, format in logs if log.info().type != FileType.NotFound), None)


def is_table(address: str, format: str | None) -> bool:
    """Return whether Spark's readers read an address, rather than the reader of publication files."""
    return format is not None or address.startswith(TABLE_PREFIX) or find_format(address) is not None


def _format_of_name(name: str, suffixes: Mapping[str, str]) -> str | None:
    base = name.rstrip("/").rpartition("/")[2].lower()
    if any(fnmatchcase(base, pattern) for pattern in SPARK_JSON):
        return JSON_LINES
    stem = base.removesuffix(".gz")
    return next((found for suffix, found in suffixes.items() if stem.endswith(suffix)), None)


@contextmanager
def _computed(rows: DataFrame) -> Iterator[DataFrame]:
    """Provide rows that are computed already.

    Connectors such as Kafka's write rows in a plan of their own, for which Spark reports no metrics:
    `Observation.get` would never return.
    """
    cached = rows.persist()
    try:
        cached.count()
        yield cached
    finally:
        cached.unpersist()


def _as_messages(rows: DataFrame) -> DataFrame:
    """Return matches as Kafka messages: keyed by subscriber, so that each one's are in order, with a JSON value."""
    key: Any = F.col("subscriber")
    return rows.select(key.alias("key"), F.to_json(F.struct("*")).alias("value"))

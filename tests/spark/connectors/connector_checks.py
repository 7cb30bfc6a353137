"""Matching between the tables and topics that users have: Delta, Iceberg and Kafka with their real connectors.

Not collected by itself: Spark loads connectors when its JVM starts, and they fit one version of it. `test_versions.py`
runs this module in a process, and with another version in an environment, of its own.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.conftest import QUICK
from tests.spark import workload
from tests.support.packages import cache_folder
from tests.support.paths import ROOT
from tests.support.servers.kafka_broker import Broker
from tests.support.spark_versions import connector_settings, installed
from tidings.spark import Subscriptions, match
from tidings.spark.session import close_session, open_session

needs_delta = pytest.mark.skipif(installed().delta is None, reason="no release of Delta fits this Spark")
needs_iceberg = pytest.mark.skipif(
    installed().iceberg is None, reason="no release of Iceberg fits this Spark"
)

WANTED = workload.subscriptions(40)
EVENT_COLUMNS = "id string, symbol string, price long, seller struct<city: string>, tags array<string>"
MATCH_COLUMNS = "publication string, subscription string, subscriber string"
SUBSCRIPTION_COLUMNS = "id string, subscriber string, language string, text string"
FIRST, SECOND = range(60), range(60, 100)


@dataclass(frozen=True)
class Lake:
    """A folder with tables, and Spark's settings for them."""

    folder: Path
    settings: dict[str, str]

    def path(self, name: str) -> str:
        return str(self.folder / name)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    folder = tmp_path_factory.mktemp("lake")
    own = {"spark.databricks.delta.snapshotPartitions": "2", "spark.sql.warehouse.dir": str(folder / "own")}
    return Lake(folder, connector_settings(installed(), folder) | own)


@pytest.fixture(scope="module")
def spark(lake: Lake) -> Iterator[SparkSession]:
    session = open_session("local[2]", log=lake.folder / "spark.log", **QUICK, **lake.settings)
    yield session
    close_session(session)


def events(numbers: range) -> dict[str, bytes]:
    """Some events of the workload by their ids; each has one."""
    bodies = workload.events(len(numbers), numbers.start)
    rows = {f"e{number}": json.loads(body) for number, body in zip(numbers, bodies, strict=True)}
    return {id: json.dumps({**row, "id": id}).encode() for id, row in rows.items()}


def typed_events(spark: SparkSession, numbers: range) -> DataFrame:
    lines = [(body.decode(),) for body in events(numbers).values()]
    return spark.createDataFrame(lines, "line string").selectExpr(
        f"inline(array(from_json(line, '{EVENT_COLUMNS}')))"
    )


def typed_subscriptions(spark: SparkSession) -> DataFrame:
    rows = [(one.id, one.subscriber, one.language, one.text) for one in WANTED]
    return spark.createDataFrame(rows, SUBSCRIPTION_COLUMNS)


def expected(*numbers: range) -> set[tuple[str, str]]:
    found = {pair for each in numbers for pair in workload.expected(events(each), WANTED)}
    assert found, "the test shows nothing"
    return found


def pairs(matches: DataFrame) -> set[tuple[str, str]]:
    """Return the pairs of a result, each of which is there once."""
    rows = [(row.publication, row.subscription) for row in matches.collect()]
    assert len(rows) == len(set(rows))
    return set(rows)


def run_available(writer: Any, checkpoint: str, start: Any) -> None:
    """Run a stream over what is there now; `start` gets the writer."""
    query = start(writer.option("checkpointLocation", checkpoint).trigger(availableNow=True))
    query.awaitTermination()


def tidings(lake: Lake, *words: str) -> str:
    """Run a command in a process with the connectors; return what it prints."""
    jars = lake.folder / "jars"
    if not jars.exists():
        jars.mkdir()
        for jar in map(Path, lake.settings["spark.jars"].split(",")):
            (jars / jar.name).symlink_to(jar)
    settings = {name: value for name, value in lake.settings.items() if name != "spark.jars"}
    done = run_tidings(settings, *words, "--jars", str(jars))
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def run_tidings(settings: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a process. Its home is another one: Ivy takes what Maven has left there half for complete."""
    conf = [f"--conf={name}={value}" for name, value in settings.items()]
    return subprocess.run(
        [sys.executable, "-m", "tidings", *words, "--master", "local[2]", *conf],
        env=os.environ | {"JAVA_TOOL_OPTIONS": f"-Duser.home={cache_folder()}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


def run_stream(lake: Lake, source: str, sink: str, *words: str) -> None:
    """Match what is new in the source with the subscriptions of a store."""
    home = lake.folder / f"home-{Path(source).name}"
    if not home.exists():
        (lake.folder / "subscriptions.jsonl").write_text(workload.as_lines(WANTED))
        place = ("--file", lake.path("subscriptions.jsonl"), "--home", str(home))
        done = subprocess.run(
            [sys.executable, "-m", "tidings", "subscribe", *place], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
    tidings(lake, "run", "--source", source, "--sink", sink, *words, "--once", "--home", str(home))


@needs_delta
class TestDelta:
    @pytest.fixture(scope="class")
    def tables(self, spark: SparkSession, lake: Lake) -> None:
        """Events and subscriptions; some rows were deleted, and their data files remain."""
        typed_events(spark, range(100, 120)).write.format("delta").save(lake.path("events"))
        spark.sql(f"DELETE FROM delta.`{lake.path('events')}`")
        typed_events(spark, FIRST).write.format("delta").mode("append").save(lake.path("events"))
        typed_subscriptions(spark).write.format("delta").save(lake.path("subscriptions"))

    def test_batch_from_tables_to_a_table(self, spark, lake, tables):
        matches = match(
            spark.read.format("delta").load(lake.path("events")),
            spark.read.format("delta").load(lake.path("subscriptions")),
            explain=True,
        )
        matches.write.format("delta").save(lake.path("matches"))
        assert pairs(spark.read.format("delta").load(lake.path("matches"))) == expected(FIRST)

    def test_table_of_the_catalog(self, spark, tables, lake):
        spark.read.format("delta").load(lake.path("events")).write.format("delta").saveAsTable("events")
        matches = match(spark.table("events"), spark.read.format("delta").load(lake.path("subscriptions")))
        matches.write.format("delta").saveAsTable("matches")
        assert pairs(spark.table("matches")) == expected(FIRST)

    def test_command_finds_the_format_of_the_tables(self, spark, lake, tables):
        places = ("--subscriptions", lake.path("subscriptions"), "--publications", lake.path("events"))
        out = ("--out", lake.path("by-command"), "--out-format", "delta")
        tidings(lake, "match", *places, *out, "--explain", "--keep", "symbol")
        tidings(lake, "match", *places, *out, "--explain", "--keep", "symbol", "--force")
        result = spark.read.format("delta").load(lake.path("by-command"))
        assert result.columns == ["publication", "subscription", "subscriber", "explanation", "symbol"]
        assert pairs(result) == expected(FIRST)
        versions = spark.sql(f"DESCRIBE HISTORY delta.`{lake.path('by-command')}`").count()
        assert versions == 2, "--force adds a version to a table"

    def test_command_fetches_packages(self, spark, lake, tables):
        """As users do it. Resolved packages are kept in a cache that is not the user's."""
        settings = {name: value for name, value in lake.settings.items() if name != "spark.jars"}
        settings["spark.jars.ivy"] = str(cache_folder() / "ivy")
        places = ("--subscriptions", lake.path("subscriptions"), "--publications", lake.path("events"))
        out = ("--out", lake.path("by-packages"), "--out-format", "delta")
        done = run_tidings(settings, "match", *places, *out, "--packages", str(installed().delta))
        if "unresolved dependency" in done.stderr or "download failed" in done.stderr:
            pytest.skip("Spark cannot fetch packages here")
        assert done.returncode == 0, done.stdout + done.stderr
        assert pairs(spark.read.format("delta").load(lake.path("by-packages"))) == expected(FIRST)

    def test_command_streams_from_a_table_to_a_table(self, spark, lake, tables):
        source, target = lake.path("run-events"), lake.path("run-matches")
        typed_events(spark, FIRST).write.format("delta").save(source)
        run_stream(lake, source, target, "--out-format", "delta")
        assert pairs(spark.read.format("delta").load(target)) == expected(FIRST)
        typed_events(spark, SECOND).write.format("delta").mode("append").save(source)
        run_stream(lake, source, target, "--out-format", "delta")
        assert pairs(spark.read.format("delta").load(target)) == expected(FIRST, SECOND)

    def test_stream_from_a_table_to_a_table(self, spark, lake, tables):
        """New rows are matched once, with the subscriptions that are published by then."""
        source, target = lake.path("stream-events"), lake.path("stream-matches")
        typed_events(spark, FIRST).write.format("delta").save(source)
        wanted = Subscriptions.compile(spark.read.format("delta").load(lake.path("subscriptions")))
        wanted.publish(lake.path("published"))
        matches = match(
            spark.readStream.format("delta").load(source), Subscriptions.at(lake.path("published"))
        )

        def run() -> set[tuple[str, str]]:
            writer = matches.writeStream.format("delta")
            run_available(writer, lake.path("checkpoint-delta"), lambda ready: ready.start(target))
            return pairs(spark.read.format("delta").load(target))

        assert run() == expected(FIRST)
        typed_events(spark, SECOND).write.format("delta").mode("append").save(source)
        assert run() == expected(FIRST, SECOND)


@needs_iceberg
class TestIceberg:
    @pytest.fixture(scope="class")
    def tables(self, spark: SparkSession) -> None:
        spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.shop")
        typed_events(spark, FIRST).writeTo("lake.shop.events").create()
        typed_subscriptions(spark).writeTo("lake.shop.subscriptions").create()

    def test_batch_from_tables_to_a_table(self, spark, tables):
        matches = match(spark.table("lake.shop.events"), spark.table("lake.shop.subscriptions"), explain=True)
        matches.writeTo("lake.shop.matches").create()
        assert pairs(spark.table("lake.shop.matches")) == expected(FIRST)

    def test_command_names_tables_of_the_catalog(self, spark, lake, tables):
        places = ("table:lake.shop.subscriptions", "--publications", "table:lake.shop.events")
        tidings(lake, "match", "--subscriptions", *places, "--out", "table:lake.shop.named", "--explain")
        assert pairs(spark.table("lake.shop.named")) == expected(FIRST)

    def test_command_finds_the_format_of_a_folder(self, spark, lake, tables):
        places = (lake.path("shop/subscriptions"), "--publications", lake.path("shop/events"))
        tidings(lake, "match", "--subscriptions", *places, "--out", lake.path("from-iceberg"))
        assert pairs(spark.read.parquet(lake.path("from-iceberg"))) == expected(FIRST)

    def test_command_streams_from_a_table_to_a_table(self, spark, lake, tables):
        typed_events(spark, FIRST).writeTo("lake.shop.run_events").create()
        run_stream(lake, "table:lake.shop.run_events", "table:lake.shop.run_matches")
        assert pairs(spark.table("lake.shop.run_matches")) == expected(FIRST)
        typed_events(spark, SECOND).writeTo("lake.shop.run_events").append()
        run_stream(lake, "table:lake.shop.run_events", "table:lake.shop.run_matches")
        spark.sql("REFRESH TABLE lake.shop.run_matches")
        assert pairs(spark.table("lake.shop.run_matches")) == expected(FIRST, SECOND)

    def test_stream_from_a_table_to_a_table(self, spark, lake, tables):
        typed_events(spark, FIRST).writeTo("lake.shop.stream_events").create()
        wanted = Subscriptions.compile(spark.table("lake.shop.subscriptions"))
        matches = match(spark.readStream.table("lake.shop.stream_events"), wanted)
        spark.sql(f"CREATE TABLE lake.shop.stream_matches ({MATCH_COLUMNS}) USING iceberg")

        def run() -> set[tuple[str, str]]:
            writer = matches.writeStream.format("iceberg")
            run_available(
                writer,
                lake.path("checkpoint-iceberg"),
                lambda ready: ready.toTable("lake.shop.stream_matches"),
            )
            return pairs(spark.table("lake.shop.stream_matches"))

        assert run() == expected(FIRST)
        typed_events(spark, SECOND).writeTo("lake.shop.stream_events").append()
        assert run() == expected(FIRST, SECOND)


class TestKafka:
    @pytest.fixture(scope="class")
    def topics(self, kafka_broker: Broker) -> Broker:
        for topic in ("events", "matches", "by-command"):
            kafka_broker.create(topic, 2)
        return kafka_broker

    @staticmethod
    def read(spark: SparkSession, broker: Broker, topic: str) -> DataFrame:
        reader = spark.read.format("kafka").option("kafka.bootstrap.servers", f"127.0.0.1:{broker.port}")
        return reader.option("subscribe", topic).load()

    @staticmethod
    def send(spark: SparkSession, broker: Broker, numbers: range) -> None:
        rows = spark.createDataFrame(list(events(numbers).items()), "key string, value binary")
        writer = rows.write.format("kafka").option("kafka.bootstrap.servers", f"127.0.0.1:{broker.port}")
        writer.option("topic", "events").save()

    def matches(self, spark: SparkSession, broker: Broker, topic: str) -> DataFrame:
        """Return the matches in a topic, after a check that they are keyed by subscriber."""
        rows = self.read(spark, broker, topic).selectExpr(
            "CAST(key AS string) AS key",
            f"inline(array(from_json(CAST(value AS string), '{MATCH_COLUMNS}')))",
        )
        assert rows.where("key <> subscriber").count() == 0
        return rows

    def test_stream_from_a_topic_to_a_topic(self, spark, lake, topics):
        stream = spark.readStream.format("kafka").option(
            "kafka.bootstrap.servers", f"127.0.0.1:{topics.port}"
        )
        orders = stream.option("subscribe", "events").option("startingOffsets", "earliest").load()
        matches = match(orders, Subscriptions.compile(WANTED))

        def run() -> set[tuple[str, str]]:
            messages = matches.selectExpr("subscriber AS key", "to_json(struct(*)) AS value")
            writer = messages.writeStream.format("kafka").option("topic", "matches")
            writer = writer.option("kafka.bootstrap.servers", f"127.0.0.1:{topics.port}")
            run_available(writer, lake.path("checkpoint-kafka"), lambda ready: ready.start())
            return pairs(self.matches(spark, topics, "matches"))

        self.send(spark, topics, FIRST)
        assert run() == expected(FIRST)
        self.send(spark, topics, SECOND)
        assert run() == expected(FIRST, SECOND)

    def test_command_reads_and_writes_topics(self, spark, lake, topics):
        """After the test of streams, whose events are in the topic."""
        (lake.folder / "subscriptions.jsonl").write_text(workload.as_lines(WANTED))
        server = f"kafka.bootstrap.servers=127.0.0.1:{topics.port}"
        tidings(
            lake,
            "match",
            *("--subscriptions", lake.path("subscriptions.jsonl"), "--publications", "events"),
            *("--format", "kafka", "--option", server, "--option", "subscribe=events"),
            *("--out", "by-command", "--out-format", "kafka", "--out-option", server),
            *("--out-option", "topic=by-command"),
        )
        assert pairs(self.matches(spark, topics, "by-command")) == expected(FIRST, SECOND)


PAGE = ROOT / "docs/dataframes.md"
SECTION = "Delta, Iceberg, Kafka"


def page_programs() -> list[str]:
    """Return the Python blocks of the section of the docs about connectors."""
    section = PAGE.read_text().partition(f"\n## {SECTION}\n")[2].partition("\n## ")[0]
    programs: list[str] = re.findall(r"^```python\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    return programs


@needs_delta
def test_example_of_the_docs(spark, lake, kafka_broker):
    """The blocks of the page, one after the other; only the address of the broker is another one."""
    kafka_broker.create("orders")
    kafka_broker.create("alerts")
    names: dict[str, Any] = {"spark": spark, "lake": lake.path("page")}
    programs = page_programs()
    assert programs
    for program in programs:
        exec(
            compile(program.replace("broker:9092", f"127.0.0.1:{kafka_broker.port}"), str(PAGE), "exec"),
            names,
        )
    try:
        for query in spark.streams.active:
            query.processAllAvailable()
        table = spark.read.format("delta").load(f"{names['lake']}/matches")
        assert pairs(table) == {("o1", "s1"), ("o3", "s2")}
        sent = (
            TestKafka.read(spark, kafka_broker, "alerts").selectExpr("CAST(key AS string) AS key").collect()
        )
        assert sorted(row.key for row in sent) == ["ana", "bo"]
    finally:
        for query in spark.streams.active:
            query.stop()


def test_coordinates_of_the_docs_are_those_that_are_tested():
    version, text = installed(), PAGE.read_text()
    for coordinates in filter(None, (version.kafka, version.delta, version.iceberg)):
        assert coordinates in text

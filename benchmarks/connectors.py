"""`match` in streams from Kafka to Kafka and to Delta, with a real broker and the connectors of the tests.

    Kafka -> numbers -> no-op         matching alone, no writer
    Kafka -> rows -> Kafka            a message per match, keyed by subscriber
    Kafka -> rows -> Delta            a row per match
    rows -> Kafka, no match           Spark's Kafka writer alone, with as many messages
    rows -> Delta, no match           Delta's writer alone, with as many rows

Each run is a streaming query over everything in the topic, in one micro-batch, from its start to its end; the last two
read the matches of a Delta table. The programs run in turns; the first turn does not count. Spark loads connectors
when its JVM starts, so they run in a process of their own.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from benchmarks.dataframes import USER_SETTINGS
from benchmarks.harness import Bench, Disagreement
from benchmarks.pipeline import CORES, Files, build_row
from benchmarks.rows import Row
from benchmarks.scale import Scale
from benchmarks.workloads import Workload, stock
from tests.support.packages import Unavailable
from tests.support.servers.kafka_broker import Broker, find_java, running_broker
from tests.support.spark_versions import connector_settings, find_jars, installed
from tidings.spark import Subscriptions, match
from tidings.spark.session import open_session

NAME = "stock, Kafka and Delta"
SHARE = 10
"""Divisor: the streams match this fraction of the events of the job."""
PARTITIONS = 2
EVENTS = "events"
MESSAGE = "to_json(struct(publication, subscription))"


def run(bench: Bench, scale: Scale) -> None:
    workload = stock(scale.stock, max(1, scale.job_events // SHARE), name=NAME)
    try:
        java = find_java()
        find_jars(installed())
        if installed().delta is None:
            raise Unavailable(f"no release of Delta fits Spark {installed().pyspark}")
    except Unavailable as missing:
        row = build_row(workload, "Kafka -> rows -> Kafka", 1.0, 0)
        bench.keep(replace(row, **NOT_MEASURED, note=f"not available: {missing}"))
        return
    with tempfile.TemporaryDirectory(prefix="tidings-bench-") as folder, running_broker(java) as broker:
        Files.write(workload, Path(folder))
        broker.create(EVENTS, PARTITIONS)
        for row in _measure(bench, workload, Path(folder), broker):
            bench.keep(row)


NOT_MEASURED: dict[str, Any] = {
    "events_per_cpu_second": None,
    "seconds_per_event": None,
    "matches_per_event": None,
}


def _measure(bench: Bench, workload: Workload, folder: Path, broker: Broker) -> Iterator[Row]:
    """Run all programs in turns in another process; yield a row for each."""
    for topic in range(bench.runs + 1):
        for prefix in (Streams.MATCHES, Streams.COPIES):
            broker.create(f"{prefix}-{topic}", PARTITIONS)
    command = [sys.executable, "-m", "benchmarks.connectors", str(folder), str(broker.port), str(bench.runs)]
    seconds: dict[str, list[float]] = {}
    matches: dict[str, int] = {}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            result = json.loads(line)
            seconds.setdefault(result["name"], []).append(result["seconds"])
            matches[result["name"]] = result["matches"]
            bench.say(f"{result['name']} took {result['seconds']:.1f} s")
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    if len(set(matches.values())) != 1:
        raise Disagreement(f"different numbers of matches: {matches}")
    for name, times in seconds.items():
        own = median(times[1:])
        row = build_row(workload, name, own, matches[name])
        rate = len(workload.events) / own
        note = f"{matches[name] / own:,.0f} matches/s"
        yield replace(
            row, events_per_cpu_second=None, seconds_per_event=None, events_per_second=rate, note=note
        )


@dataclass
class Streams:
    """The programs, in a session with connectors."""

    session: SparkSession
    folder: Path
    port: int
    turn: int = 0

    MATCHES = "matches"
    COPIES = "copies"

    def __post_init__(self) -> None:
        self._subscriptions = Subscriptions.from_index(self.folder / "index")

    def programs(self) -> dict[str, Callable[[], Callable[[], int]]]:
        """Return functions that run a query to its end, and return a function that counts the matches."""
        return {
            "Kafka -> numbers -> no-op": self._discard,
            "Kafka -> rows -> Kafka": lambda: self._send(self._rows(), self.MATCHES),
            "Kafka -> rows -> Delta": lambda: self._append(self._rows(), "matches"),
            "rows -> Kafka, no match": lambda: self._send(self._written(), self.COPIES),
            "rows -> Delta, no match": lambda: self._append(self._written(), "copies"),
        }

    def send_events(self) -> None:
        lines = self.session.read.text(str(self.folder / "events.jsonl"))
        lines.write.format("kafka").options(topic=EVENTS, **self._server).save()

    def _orders(self) -> DataFrame:
        stream = self.session.readStream.format("kafka").options(subscribe=EVENTS, **self._server)
        return stream.option("startingOffsets", "earliest").load()

    def _rows(self) -> DataFrame:
        return match(self._orders(), self._subscriptions)

    def _written(self) -> DataFrame:
        return self.session.readStream.format("delta").load(self._place("matches"))

    def _discard(self) -> Callable[[], int]:
        numbers = match(self._orders(), self._subscriptions, shape="numbers")
        self._finish(numbers.writeStream.format("noop"), "numbers")
        delta = self._place("matches")
        return lambda: self.session.read.format("delta").load(delta).count()

    def _send(self, rows: DataFrame, prefix: str) -> Callable[[], int]:
        topic = f"{prefix}-{self.turn}"
        messages = rows.selectExpr("subscriber AS key", f"{MESSAGE} AS value")
        self._finish(messages.writeStream.format("kafka").options(topic=topic, **self._server), topic)
        read = self.session.read.format("kafka").options(subscribe=topic, **self._server)
        return lambda: read.load().count()

    def _append(self, rows: DataFrame, name: str) -> Callable[[], int]:
        place = self._place(name)
        self._finish(rows.writeStream.format("delta").option("path", place), name)
        return lambda: self.session.read.format("delta").load(place).count()

    def _finish(self, writer: Any, name: str) -> None:
        checkpoint = self._place(f"checkpoint-{name}")
        query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
        query.awaitTermination()

    def _place(self, name: str) -> str:
        return str(self.folder / f"turn-{self.turn}" / name)

    @property
    def _server(self) -> dict[str, str]:
        return {"kafka.bootstrap.servers": f"127.0.0.1:{self.port}"}


def main(folder: Path, port: int, runs: int) -> None:
    settings = connector_settings(installed(), folder) | USER_SETTINGS
    session = open_session(f"local[{CORES}]", **settings)
    streams = Streams(session, folder, port)
    streams.send_events()
    for streams.turn in range(runs + 1):
        counts = {}
        seconds = {}
        for name, program in streams.programs().items():
            began = perf_counter()
            counts[name] = program()
            seconds[name] = perf_counter() - began
        for name, count in counts.items():
            line = json.dumps({"name": name, "seconds": seconds[name], "matches": count()})
            sys.stdout.write(line + "\n")
            sys.stdout.flush()
    session.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))

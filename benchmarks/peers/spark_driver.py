"""Process controlled by `spark_join`: loads tables from Parquet files into memory and runs queries.

table <name> <file>    load a table, replacing the one of that name
match <query>          run a query into a sink that drops rows: collecting would cost more than matching
count <query>          count the subscriptions that the query finds for each event
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any, TextIO

from pyspark.sql import DataFrame, SparkSession

from tidings.spark.class_archive import use_archive
from tidings.spark.session import find_java

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "8g",  # a broadcast table of millions of rows
    "spark.sql.shuffle.partitions": "1",  # one core, one partition
    "spark.sql.adaptive.enabled": "false",  # the query says what to broadcast
    "spark.sql.broadcastTimeout": "3600",  # the harness has a shorter limit
}
NANOSECONDS = 1e9


class Driver:
    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._cached: dict[str, DataFrame] = {}
        self.commands: dict[str, Callable[..., dict[str, Any]]] = {
            "table": self._table,
            "match": self._match,
            "count": self._count,
        }

    def _table(self, name: str, path: str) -> dict[str, Any]:
        if name in self._cached:
            self._cached[name].unpersist()
        self._cached[name] = self._session.read.parquet(path).coalesce(1).cache()
        self._cached[name].count()  # caching is lazy
        self._cached[name].createOrReplaceTempView(name)
        return {"seconds": self._last_job_seconds()}

    def _match(self, query: str) -> dict[str, Any]:
        self._session.sql(query).write.format("noop").mode("overwrite").save()
        return {"seconds": self._last_job_seconds()}

    def _count(self, query: str) -> dict[str, Any]:
        rows = self._session.sql(f"select event, count(*) as found from ({query}) x group by event").collect()
        return {"event": [row["event"] for row in rows], "count": [row["found"] for row in rows]}

    def _last_job_seconds(self) -> float:
        """Return the CPU time of the last job's tasks from Spark's status store. A broadcast is an earlier job."""
        context = self._session.sparkContext._jsc.sc()
        context.listenerBus().waitUntilEmpty()
        store = context.statusStore()
        jobs = _items(store.jobsList(None))
        stages = _items(max(jobs, key=lambda job: job.jobId()).stageIds())
        return sum(int(store.lastStageAttempt(stage).executorCpuTime()) for stage in stages) / NANOSECONDS


def _items(sequence: Any) -> list[Any]:
    """Convert a Scala sequence to a list."""
    return [sequence.apply(at) for at in range(sequence.size())]


def main() -> None:
    answers = _own_output()
    driver = Driver(_session())
    for line in sys.stdin:
        command, *words = line.rstrip("\n").split("\t")
        print(json.dumps(driver.commands[command](*words)), file=answers, flush=True)


def _own_output() -> TextIO:
    """Reserve standard output for answers: output of Spark and Java goes to standard error."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return answers


def _session() -> SparkSession:
    os.environ |= {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    builder = SparkSession.builder.master("local[1]").appName("benchmarks")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    options = " ".join(use_archive(find_java()))  # only the start is faster
    builder = builder.config("spark.driver.extraJavaOptions", options)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


if __name__ == "__main__":
    main()

"""Programs that tests run in separate processes, to kill them or because Spark has one mode in a process.

python program.py stream URL HOME MASTER [most]     the stream until it is killed; a line of JSON for each batch
python program.py poisoned URL HOME MASTER          the same with `poison` in its tasks; a line for each failed attempt
python program.py work URL FOLDER MASTER            a batch job and the stream over the contents of the folder
python program.py again FOLDER                      a session after the JVM has died before the first session
MASTER is a master, or `connect` for Spark Connect.
"""

from __future__ import annotations

import json
import logging
import sys
from dataclasses import asdict
from pathlib import Path

from pyspark import SparkContext

from tidings.spark.batch.job import BatchRequest, run_batch_job
from tidings.spark.session import open_session
from tidings.spark.stream.runner import run_stream
from tidings.spark.stream.stream_events import Activity


def print_event(news: object) -> None:
    if isinstance(news, Activity):  # readers of the output wait for results only
        return
    print(json.dumps({type(news).__name__: asdict(news)}), flush=True)  # noqa: T201


def session_of(master: str, log: Path):
    return open_session(remote="local[2]", log=log) if master == "connect" else open_session(master, log=log)


def stream(url: str, home: str, master: str, most: str = "10000") -> None:
    session = session_of(master, Path(home) / "spark.log")
    run_stream(
        session, home, url, most_publications=int(most), metadata_batch=int(most), listener=print_event
    )


def poisoned(url: str, home: str, master: str) -> None:
    import pytest  # noqa: PLC0415 - only this mode needs the tests

    from tests.spark import poison  # noqa: PLC0415
    from tidings.spark.stream import journal_task  # noqa: PLC0415

    logging.basicConfig(stream=sys.stdout, level=logging.WARNING, format="%(message)s")
    poison.poisoned(pytest.MonkeyPatch(), journal_task, "_build_stage", poison.DECODE, poison.EXPLAIN)
    session = session_of(master, Path(home) / "spark.log")
    run_stream(session, home, url, listener=print_event)


def work(url: str, folder: str, master: str) -> None:
    place = Path(folder)
    session = session_of(master, place / "spark.log")
    request = BatchRequest(
        place / "subs.jsonl", place / "events.jsonl", place / "out", place / "rejects.jsonl"
    )
    summary = run_batch_job(session, request)
    print_event(summary)
    print_event(
        run_stream(session, place / "home", url, once=True, listener=print_event, most_publications=40)
    )
    session.stop()


def again(folder: str) -> None:
    SparkContext._ensure_initialized()
    SparkContext._gateway.proc.kill()
    SparkContext._gateway.proc.wait()
    session = open_session("local[1]", log=Path(folder) / "spark.log")
    print(session.range(3).count(), flush=True)  # noqa: T201
    session.stop()


if __name__ == "__main__":
    {"stream": stream, "poisoned": poisoned, "work": work, "again": again}[sys.argv[1]](*sys.argv[2:])

"""A driver that writes matches to a folder, with trouble: `write_program.py retry|wait FOLDER`.

`retry` lets the first attempt of each task fail after it has written and reported everything. Prints the number of
matches, and of files that tasks have written.

`wait` prints `written: FILES` when all tasks have ended, and waits before the commit until it is killed.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark import TaskContext

from tests.spark import workload
from tidings.spark import write_matches
from tidings.spark.batch.output import publish_result
from tidings.spark.dataframe import writer
from tidings.spark.session import open_session
from tidings.spark.sources.files import Location

TASKS = 3


@dataclass(frozen=True)
class FailsOnce(writer.WriteStage):
    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        yield from super().__call__(batches)
        context = TaskContext.get()
        assert context is not None
        if context.attemptNumber() == 0:
            raise RuntimeError("the report was on its way already")


def main(trouble: str, folder: Path) -> None:
    files: list[int] = []

    def publish(work: Location, *rest: Any) -> None:
        files.append(sum(info.base_name.endswith(".parquet") for info in work.inside()))
        if trouble == "wait":
            sys.stdout.write(f"written: {files[0]}\n")
            sys.stdout.flush()
            signal.pause()
        publish_result(work, *rest)

    replaced: Any = writer
    replaced.publish_result = publish
    if trouble == "retry":
        replaced.WriteStage = FailsOnce
    session = open_session("local[2,4]")
    rows = [(f"e{number}", body.decode()) for number, body in enumerate(workload.events(200))]
    events = session.createDataFrame(rows, "id string, value string").repartition(TASKS)
    written = write_matches(events, workload.subscriptions(60), folder / "matches")
    sys.stdout.write(json.dumps({"matches": written.matches, "files": files[0]}) + "\n")
    session.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))

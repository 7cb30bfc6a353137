"""Class data sharing archive for Spark's JVM, which starts in half the time with it.

A JVM that starts Spark reads and verifies some ten thousand classes. When it exits it can write the loaded classes to a
file (class data sharing), which the next JVM maps into memory. The file belongs to one installation and is stored with
it. A JVM for which the file does not fit, because Java or Spark was replaced, starts without it.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyspark

from tidings.errors import SetupError

QUIET_OPTION = "-Xlog:disable"
"""Keeps a JVM that cannot use the archive from printing a warning into the output of a command."""


def archive_file(java: str) -> Path:
    """Return the path of the archive for this Java and this installation of Spark."""
    home = Path(java).resolve().parent.parent
    release = (
        home / "release"
    )  # identifies the Java version; running `java -version` takes a third of a second
    version = release.read_text() if release.exists() else ""
    identity = "\n".join((pyspark.__version__, str(Path(pyspark.__file__).parent), str(home), version))
    name = hashlib.blake2b(identity.encode(), digest_size=8).hexdigest()
    return Path(sys.prefix, "share", "tidings", f"spark-{name}.jsa")


def use_archive(java: str) -> list[str]:
    """Return the JVM options that use the archive, or none if it does not exist."""
    file = archive_file(java)
    return [f"-XX:SharedArchiveFile={file}", QUIET_OPTION] if file.exists() else []


def make_archive(java: str) -> Path:
    """Return the archive; create it if it is missing, by a process that runs typical Spark work."""
    file = archive_file(java)
    if file.exists():
        return file
    file.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=file.parent) as folder:
        unfinished = Path(folder, "classes.jsa")
        # The JVM writes the archive after Python has exited; the pipes close when the JVM exits.
        process = subprocess.run(
            [sys.executable, "-m", __name__, str(unfinished)], capture_output=True, text=True, check=False
        )
        if process.returncode or not unfinished.exists():
            last = (process.stderr.strip() or "nothing was written").splitlines()[-1]
            raise SetupError("Spark's classes cannot be archived", where=java, received=last)
        unfinished.replace(file)
    return file


def _run_typical_work(file: str) -> None:
    """Run what jobs and streams do, so that the archive contains their classes."""
    from tidings.spark.session import open_session  # noqa: PLC0415 - it imports this module

    options = f"-XX:ArchiveClassesAtExit={file} {QUIET_OPTION}"
    more: dict[str, Any] = {"spark.driver.defaultJavaOptions": options}
    session = open_session("local[1]", **more)
    try:
        with TemporaryDirectory() as folder:
            _run_queries(session, Path(folder))
    finally:
        session.stop()


def _run_queries(session: Any, folder: Path) -> None:
    rows = session.range(3).mapInArrow(_identity, "id long")
    rows.write.parquet(str(folder / "rows"))
    table = session.read.parquet(str(folder / "rows"))
    table.join(table.groupBy("id").count(), "id").distinct().collect()
    stream = session.readStream.schema(table.schema).parquet(str(folder / "rows"))
    query = (
        stream.writeStream.foreachBatch(lambda batch, _: batch.mapInArrow(_identity, "id long").collect())
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def _identity(batches: Iterable[object]) -> Iterator[object]:
    yield from batches


if __name__ == "__main__":
    _run_typical_work(sys.argv[1])

"""Spark's classes as an archive that the JVM maps into memory: it starts in half the time.

A JVM that starts Spark reads and checks some ten thousand classes. It can write what it made of them to a file when it
ends (class data sharing), for the next one to map. The file belongs to one installation, so it stands beside that. A
JVM that finds it does not fit, because Java or Spark was exchanged, goes without it.
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
"""Without it a JVM that cannot use an archive says so among what a command prints."""


def archive_file(java: str) -> Path:
    """Where the archive for this Java, this Spark and this place stands, if there is one."""
    home = Path(java).resolve().parent.parent
    release = home / "release"  # says which Java it is; asking `java -version` would take a third of a second
    told = release.read_text() if release.exists() else ""
    named = "\n".join((pyspark.__version__, str(Path(pyspark.__file__).parent), str(home), told))
    name = hashlib.blake2b(named.encode(), digest_size=8).hexdigest()
    return Path(sys.prefix, "share", "tidings", f"spark-{name}.jsa")


def use_archive(java: str) -> list[str]:
    """Options of a JVM that uses the archive; none if there is none."""
    file = archive_file(java)
    return [f"-XX:SharedArchiveFile={file}", QUIET_OPTION] if file.exists() else []


def make_archive(java: str) -> Path:
    """The archive, made if it is not there: by a process that does a little of everything and ends."""
    file = archive_file(java)
    if file.exists():
        return file
    file.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=file.parent) as folder:
        unfinished = Path(folder, "classes.jsa")
        # The pipes end when the JVM does, which writes the archive after Python is gone.
        ended = subprocess.run(
            [sys.executable, "-m", __name__, str(unfinished)], capture_output=True, text=True, check=False
        )
        if ended.returncode or not unfinished.exists():
            last = (ended.stderr.strip() or "nothing was written").splitlines()[-1]
            raise SetupError("Spark's classes cannot be archived", where=java, received=last)
        unfinished.replace(file)
    return file


def _do_a_little(file: str) -> None:
    """What jobs and streams do, so that their classes are among those that are kept."""
    from tidings.spark.session import open_session  # noqa: PLC0415 - it imports this module

    options = f"-XX:ArchiveClassesAtExit={file} {QUIET_OPTION}"
    more: dict[str, Any] = {"spark.driver.defaultJavaOptions": options}
    session = open_session("local[1]", **more)
    try:
        with TemporaryDirectory() as folder:
            _work(session, Path(folder))
    finally:
        session.stop()


def _work(session: Any, folder: Path) -> None:
    rows = session.range(3).mapInArrow(_same, "id long")
    rows.write.parquet(str(folder / "rows"))
    kept = session.read.parquet(str(folder / "rows"))
    kept.join(kept.groupBy("id").count(), "id").distinct().collect()
    stream = session.readStream.schema(kept.schema).parquet(str(folder / "rows"))
    query = (
        stream.writeStream.foreachBatch(lambda batch, _: batch.mapInArrow(_same, "id long").collect())
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def _same(batches: Iterable[object]) -> Iterator[object]:
    yield from batches


if __name__ == "__main__":
    _do_a_little(sys.argv[1])

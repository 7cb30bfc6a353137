"""Restarts of a failed stream, and when the worker gives up."""

from __future__ import annotations

import errno
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException

from tidings.errors import SetupError, StoreError
from tidings.operations.settings import Settings
from tidings.service import stream_worker
from tidings.service.stream_worker import StreamState, StreamWorker
from tidings.service.tidings import Tidings
from tidings.spark.stream.query import explain_failure

RESTARTS = 3
IN_SPARK = """Query tidings terminated with exception: [PYTHON_STREAMING_DATA_SOURCE_RUNTIME_ERROR] Failed when
    head = self.head()
tidings.errors.StoreError: the database reports: connection refused
SQLSTATE: 38000"""
BUSY = """Query tidings terminated with exception: Job aborted due to stage failure: Task 0 in stage 3.0 failed 1 times
org.apache.spark.SparkException: Python worker failed to connect back."""
IN_JAVA = """Query tidings terminated with exception: org.apache.spark.SparkException: Job aborted
Caused by: java.io.IOException: No space left on device"""


class Failing(StreamWorker):
    """A worker whose stream fails with the given errors, and then ends."""

    failures: Iterator[BaseException]
    starts = 0

    def _run_stream(self) -> None:
        self.starts += 1
        for failure in self.failures:
            raise failure


def run_failing(home: Path, failures: list[BaseException]) -> Failing:
    """Run a stream with these failures to its end."""
    settings = Settings.model_validate({"stream": {"restarts": RESTARTS, "max_backoff": 0.001}})
    with Tidings(home) as tidings:
        worker = Failing(tidings, settings, lambda event: None)
        worker.failures = iter(failures)
        worker._run()
    return worker


def test_stream_worker_too_many_own_failures_gives_up(tmp_path: Path) -> None:
    worker = run_failing(tmp_path, [SetupError("Spark does not start")] * 10)
    assert (worker.state, worker.starts) == (StreamState.GIVEN_UP, RESTARTS + 1)


def test_stream_worker_first_failure_restarts_at_once_and_later_ones_back_off(tmp_path: Path) -> None:
    with Tidings(tmp_path) as tidings:
        worker = StreamWorker(tidings, Settings(), lambda event: None)
        pauses = []
        for worker._failures in range(1, 6):
            pauses.append(worker._backoff_seconds())
    assert pauses == [0, 1, 2, 4, 8]


@pytest.mark.parametrize(
    "temporary",
    [
        StoreError("the database reports: database or disk is full"),
        OSError(errno.ENOSPC, "No space left on device"),
        explain_failure(StreamingQueryException(IN_SPARK)),
        explain_failure(StreamingQueryException(IN_JAVA)),
        explain_failure(StreamingQueryException(BUSY)),
    ],
    ids=["store", "disk", "store in Spark", "disk in Spark", "busy machine"],
)
def test_stream_worker_temporary_failures_never_give_up(
    tmp_path: Path, temporary: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    worker = run_failing(tmp_path, [temporary] * 10 + [SetupError("Spark has ended")] * RESTARTS)
    assert (worker.state, worker.starts) == (StreamState.ENDED, 10 + RESTARTS + 1)
    logged = [record for record in caplog.records if record.levelname == "ERROR"]
    assert len(logged) == 10 + RESTARTS and not any(record.exc_info for record in logged)


class Waiting(Failing):
    """A worker that waits an hour before a restart."""

    causes: Iterator[bool]

    def _backoff_seconds(self) -> float:
        return 3_600

    def _persists(self, failure: BaseException) -> bool:
        return next(self.causes)


def test_stream_worker_temporary_failure_restarts_after_its_cause_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_worker, "CHECK_SECONDS", 0.01)
    with Tidings(tmp_path) as tidings:
        worker = Waiting(tidings, Settings(), lambda event: None)
        worker.failures, worker.causes = iter([StoreError("disk is full")]), iter([True, True, False])
        worker._run()
    assert (worker.state, worker.starts) == (StreamState.ENDED, 2)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk that a test can fill."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=20m", "tmpfs", str(place)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("no right to mount a small disk here")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_stream_worker_full_disk_persists_until_space_is_freed(small_disk: Path) -> None:
    full = OSError(errno.ENOSPC, "No space left on device")
    with Tidings(small_disk / "home") as tidings:
        tidings.publish("{}")
        worker = StreamWorker(tidings, Settings(), lambda event: None)
        assert not worker._persists(full)
        ballast = small_disk / "ballast"
        ballast.write_bytes(bytes(shutil.disk_usage(small_disk).free - 100_000))
        assert worker._persists(full)
        ballast.unlink()
        assert not worker._persists(full)

"""When a stream that fails is started again, and when it is given up."""

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
from tidings.spark.stream.query import _explained

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
    """One whose stream fails in ways that a test decides about, and then ends."""

    failures: Iterator[BaseException]
    starts = 0

    def _run(self) -> None:
        self.starts += 1
        for failure in self.failures:
            raise failure


def kept(home: Path, failures: list[BaseException]) -> Failing:
    """What became of a stream with these failures."""
    settings = Settings.model_validate({"stream": {"restarts": RESTARTS, "longest_pause": 0.001}})
    with Tidings(home) as tidings:
        keeper = Failing(tidings, settings, lambda news: None)
        keeper.failures = iter(failures)
        keeper._keep()
    return keeper


def test_its_own_failures_are_enough_at_some_time(tmp_path: Path) -> None:
    keeper = kept(tmp_path, [SetupError("Spark does not start")] * 10)
    assert (keeper.state, keeper.starts) == (StreamState.GIVEN_UP, RESTARTS + 1)


@pytest.mark.parametrize(
    "passing",
    [
        StoreError("the database reports: database or disk is full"),
        OSError(errno.ENOSPC, "No space left on device"),
        _explained(StreamingQueryException(IN_SPARK)),
        _explained(StreamingQueryException(IN_JAVA)),
        _explained(StreamingQueryException(BUSY)),
    ],
    ids=["store", "disk", "store in Spark", "disk in Spark", "busy machine"],
)
def test_what_it_stands_on_is_waited_for(
    tmp_path: Path, passing: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    keeper = kept(tmp_path, [passing] * 10 + [SetupError("Spark has ended")] * RESTARTS)
    assert (keeper.state, keeper.starts) == (StreamState.ENDED, 10 + RESTARTS + 1)
    told = [record for record in caplog.records if record.levelname == "ERROR"]
    assert len(told) == 10 + RESTARTS and not any(record.exc_info for record in told)


class Waiting(Failing):
    """One that would wait an hour before the next start."""

    causes: Iterator[bool]

    def _pause(self) -> float:
        return 3_600

    def _is_there(self, failure: BaseException) -> bool:
        return next(self.causes)


def test_keeper_after_a_failure_that_passes_starts_again_when_its_cause_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_worker, "CHECK_SECONDS", 0.01)
    with Tidings(tmp_path) as tidings:
        keeper = Waiting(tidings, Settings(), lambda news: None)
        keeper.failures, keeper.causes = iter([StoreError("disk is full")]), iter([True, True, False])
        keeper._keep()
    assert (keeper.state, keeper.starts) == (StreamState.ENDED, 2)


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


def test_keeper_on_a_full_disk_sees_when_there_is_space(small_disk: Path) -> None:
    full = OSError(errno.ENOSPC, "No space left on device")
    with Tidings(small_disk / "home") as tidings:
        tidings.publish("{}")
        keeper = StreamWorker(tidings, Settings(), lambda news: None)
        assert not keeper._is_there(full)
        ballast = small_disk / "ballast"
        ballast.write_bytes(bytes(shutil.disk_usage(small_disk).free - 100_000))
        assert keeper._is_there(full)
        ballast.unlink()
        assert not keeper._is_there(full)

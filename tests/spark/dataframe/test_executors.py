"""Executors without access to the driver's disk: a standalone cluster, Spark Connect, limited memory.

Each test starts its own servers and driver, so all but the first are for `make long`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
import pytest

from tests.spark import workload
from tests.support.paths import ROOT
from tidings import Index, compile_many
from tidings.spark.dataframe.environment import MatchEnvironment
from tidings.spark.dataframe.match_stage import MatchStage
from tidings.spark.dataframe.segments import SparkFileSegments, archive_name, archive_segment, describe_index

pytestmark = pytest.mark.spark
PROGRAM = ROOT / "tests/support/processes/dataframe_program.py"


def test_segments_are_distributed_as_spark_files(session, tmp_path, monkeypatch):
    """Large indexes reach a cluster in this way; the test uses one machine."""
    monkeypatch.setenv("TIDINGS_SEGMENT_CACHE", str(tmp_path / "cache"))
    subscriptions, bodies = workload.subscriptions(20), workload.events(30)
    index = Index.create()
    index.add(compile_many(subscriptions))
    described = describe_index(index)
    for digest, folder in described.folders.items():
        archive_segment(folder, tmp_path / archive_name(digest))
        session.sparkContext.addFile(str(tmp_path / archive_name(digest)))
    stage = MatchStage(MatchEnvironment(described.manifest, SparkFileSegments()), "application/json", "id")
    named = {f"e{number}": body for number, body in enumerate(bodies)}
    frame = session.createDataFrame(list(named.items()), "publication string, body binary")
    rows = frame.mapInArrow(stage, stage.output_schema([])).collect()
    pairs = {(row.publication, each.subscription) for row in rows for each in row.matches}
    assert pairs == workload.expected(named, subscriptions)


def run_program(folder: Path, master: str, *arguments: str, **environment: str) -> dict[str, object]:
    process = subprocess.run(
        [sys.executable, str(PROGRAM), master, str(folder), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", **environment},
    )
    assert process.returncode == 0, process.stderr[-4_000:]
    result: dict[str, object] = json.loads(process.stdout.splitlines()[-1])
    return result


@contextmanager
def isolated_cluster(hidden: Path, logs: Path) -> Iterator[str]:
    """Start a master and two workers with separate mount namespaces, in which the driver's folder is empty."""
    spark_class = str(Path(pyspark.__file__).parent / "bin" / "spark-class")
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    log = logs / "master.log"
    processes = []
    with log.open("w") as file:
        command = [spark_class, "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", "0"]
        command += ["--webui-port", "0"]
        processes.append(subprocess.Popen(command, stderr=file, stdout=file, env=environment))
    try:
        master = wait_for(log, r"Starting Spark master at (spark://\S+)")
        for number in range(2):
            (logs / f"worker-{number}").mkdir()
            hide = f'mount -t tmpfs none {hidden} && exec "$0" "$@"'
            command = ["unshare", "--mount", "sh", "-c", hide, spark_class]
            command += ["org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--cores", "2"]
            command += ["--memory", "1g", "--webui-port", "0"]
            command += ["--work-dir", str(logs / f"worker-{number}"), master]
            with (logs / f"worker-{number}.log").open("w") as file:
                own = {**environment, "TIDINGS_SEGMENT_CACHE": str(logs / f"cache-{number}")}
                processes.append(subprocess.Popen(command, stderr=file, stdout=file, env=own))
            wait_for(logs / f"worker-{number}.log", "Successfully registered with master")
        yield master
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(30)


def wait_for(log: Path, pattern: str) -> str:
    """Wait until a line of a server's log matches, and return its last group."""
    tail = subprocess.Popen(["tail", "-n", "+1", "-F", str(log)], stdout=subprocess.PIPE, text=True)
    try:
        assert tail.stdout is not None
        for line in tail.stdout:
            if match := re.search(pattern, line):
                return match[match.re.groups]
    finally:
        tail.kill()
        tail.wait()
    raise AssertionError(f"{log} ended without {pattern}")


def skip_without_namespaces() -> None:
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("mount namespaces need root and unshare")


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("size", ["small", "large"])
def test_cluster_without_shared_disk_matches_batch_and_stream(tmp_path, size):
    skip_without_namespaces()
    driver = tmp_path / "driver"
    driver.mkdir()
    with isolated_cluster(driver, tmp_path) as master:
        summary = run_program(driver, master, size, TMPDIR=str(driver))
    assert summary["batch"] == summary["stream"] == summary["expected"] > 0
    assert summary["written"] == [summary["expected"]] * 2
    assert summary["hidden"] == [True] * 4, (
        "the executors can read the driver's folder, so the test proves nothing"
    )
    if size == "large":
        fetched = [
            path for number in range(2) for path in (tmp_path / f"cache-{number}" / "segments").iterdir()
        ]
        assert fetched


@pytest.mark.long
@pytest.mark.timeout(600)
def test_published_segments_are_fetched_once_and_shared_and_evicted(tmp_path):
    """Two hosts, each with two concurrent Python workers and its own cache."""
    skip_without_namespaces()
    driver, published = tmp_path / "driver", tmp_path / "published"
    driver.mkdir()
    caches = [tmp_path / f"cache-{number}" for number in range(2)]
    with isolated_cluster(driver, tmp_path) as master:
        steps = run_program(published, master, "published", *map(str, caches), TMPDIR=str(driver))
    first, added, replaced = steps["first"], steps["added"], steps["replaced"]
    assert [step["is_expected"] for step in (first, added, replaced)] == [True] * 3
    [old], [new] = first["segments"], set(added["segments"]) - set(first["segments"])
    for host in range(2):
        before, after, last = (step["caches"][host] for step in (first, added, replaced))
        assert before.keys() == {old}
        assert after.keys() == {old, new}
        assert after[old] == before[old], "a cached segment was fetched again"
        assert first["mapped"][host][old] >= 2, "Python workers of one host do not share the segment"
        assert old not in last
        assert {*replaced["segments"]} <= last.keys()
        assert sum(size for _, size in last.values()) <= steps["limit"]


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("size", ["small", "large"])
def test_connect_matches_batch_and_stream(tmp_path, size):
    summary = run_program(tmp_path, "connect", size)
    assert summary["batch"] == summary["expected"] > 0
    assert summary["stream"] == summary["expected"]
    assert summary["written"] == [summary["expected"]] * 2

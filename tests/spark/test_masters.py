"""Batch job and stream on a cluster of two executors and through Spark Connect."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pyarrow.parquet as pq
import pytest

from tests.spark import workload
from tests.support.paths import ROOT
from tests.support.processes.streams import check_gapless, read_notifications
from tidings.metadata.log import LogDraft, Operation
from tidings.metadata.provider.provider import Provider
from tidings.model import Publication, Subscription
from tidings.reference_data.declarations import declare
from tidings.spark.stream.runner import SESSION_FILE
from tidings.store.database import sqlite_url
from tidings.store.store import Store, open_store

pytestmark = pytest.mark.spark
METADATA = ROOT / "examples" / "metadata"
PROGRAM = ROOT / "tests/support/processes/spark_program.py"


def add_enriched_document(store: Store, folder: Path) -> Publication:
    """Add a subscription to values of a reference table, and return a document that matches it."""
    (folder / "sectors.csv").write_text("symbol,sector\nIBM,tech\n")
    store.references.add(declare("sectors", str(folder / "sectors.csv"), "symbol", "/stock/symbol"))
    store.subscriptions.add_many([Subscription("tech", "dora", "xpath", '//ref[sector = "tech"]')])
    return Publication("d1", "application/xml", b"<stock><symbol>IBM</symbol></stock>")


def register_document(store: Store) -> Provider:
    """Append a document to the metadata log and add a rule that it matches."""
    provider = Provider(store)
    provider.load_schema((METADATA / "schema.ttl").read_bytes(), "text/turtle")
    provider.add_rules({"hosts": "search CycleProvider c register c"}, "eve")
    body = (METADATA / "host.rdf").read_bytes()
    provider.append([LogDraft(Operation.REGISTER, "http://example.org/doc.rdf", "application/rdf+xml", body)])
    return provider


LATE = """
import pathlib, sys, time
if any("foreach_batch_worker" in word for word in sys.orig_argv):
    try:
        pathlib.Path(__file__).with_name("was-late").touch(exist_ok=False)
    except FileExistsError:
        pass
    else:
        time.sleep(15)
"""
"""A module that delays the first process for batches beyond the ten seconds that Spark waits for it."""


@pytest.mark.long
def test_stream_late_start_of_batch_process_is_retried(tmp_path, monkeypatch):
    (tmp_path / "late").mkdir()
    (tmp_path / "late" / "sitecustomize.py").write_text(LATE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "late"), prepend=os.pathsep)
    test_batch_and_stream_agree_with_specification(tmp_path, "connect")
    assert (tmp_path / "late" / "was-late").exists()


@pytest.mark.long
@pytest.mark.parametrize("master", ["local-cluster[2,1,1024]", "connect"])
def test_batch_and_stream_agree_with_specification(tmp_path, master):
    subscriptions = workload.subscriptions(30)
    bodies = workload.events(100)
    named = {json.loads(body).get("id", f"events.jsonl:{i}"): body for i, body in enumerate(bodies, 1)}
    (tmp_path / "subs.jsonl").write_text(workload.as_lines(subscriptions))
    (tmp_path / "events.jsonl").write_bytes(b"\n".join([*bodies, b"{bad"]))
    url = sqlite_url(tmp_path / "store.db")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / SESSION_FILE).write_text(str(uuid4()))  # of a server that has restarted since
    with open_store(url) as store:
        store.subscriptions.add_many(subscriptions)
        published = [Publication(name, "application/json", body) for name, body in named.items()]
        document = add_enriched_document(store, tmp_path)
        provider = register_document(store)
        store.journal.append([*published, Publication("bad", "application/json", b"{bad"), document])
        process = subprocess.run(
            [sys.executable, str(PROGRAM), "work", url, str(tmp_path), master],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
        )
        assert process.returncode == 0, process.stderr + (tmp_path / "spark.log").read_text()
        subscribers = sorted({subscription.subscriber for subscription in subscriptions})
        expected = workload.expected(named, subscriptions)
        rows = pq.read_table(tmp_path / "out").to_pylist()
        assert {(row["publication"], row["subscription"]) for row in rows} == expected
        assert json.loads((tmp_path / "rejects.jsonl").read_text())["line"] == 101
        assert {
            row[1:] for rows in read_notifications(store, *subscribers).values() for row in rows
        } == expected
        assert [row[1:] for row in read_notifications(store, "dora")["dora"]] == [("d1", "tech")]
        assert [letter.publication for letter in store.dead_letters.read()] == ["bad"]
        check_gapless(store, *subscribers)
        assert provider.position == provider.log.head() == 2
        assert [result.uri for result in provider.results("hosts")] == ["http://example.org/doc.rdf#host"]
    assert json.loads(process.stdout.splitlines()[-1])["StreamProgress"]["total_events"] == 102
    assert (tmp_path / "home" / SESSION_FILE).exists() == (master != "connect")


@pytest.mark.long
def test_open_session_dead_jvm_is_replaced(tmp_path: Path) -> None:
    """PySpark would use the dead JVM again and again. `tests/faults` finds such moments by chance."""
    command = [sys.executable, str(PROGRAM), "again", str(tmp_path)]
    process = subprocess.run(command, capture_output=True, text=True, timeout=250)
    assert (process.returncode, process.stdout) == (0, "3\n"), process.stderr

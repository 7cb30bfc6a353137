"""`segments`: an index in a folder, of a stream, or of a job."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.processes.command_line import Tidings
from tidings import Index, Subscription, compile_many
from tidings.matching.index.segment import ClusterDescription
from tidings.spark.stream import live_index
from tidings.spark.stream.live_index import LiveIndex
from tidings.store.database import sqlite_url
from tidings.store.store import open_store


def make(folder: Path | str) -> Index:
    """Create an index with quotes of ten symbols, an equality of another attribute, and a text without equalities."""
    texts = [f"symbol = 'S{i % 10}' and price > {i}" for i in range(1000)]
    texts += ["kind = 'toy' and title contains 'x'", "price < 5"]
    index = Index.create(folder)
    index.add(compile_many(Subscription(f"s{i}", "ana", "predicates", t) for i, t in enumerate(texts)))
    index.add(compile_many([Subscription("later", "bo", "predicates", "exists reserve")]))
    index.remove(["s7"])
    return index


def test_segments_of_folder_prints_segments_and_clusters(tidings: Tidings) -> None:
    index = make("made")
    result = tidings("segments", "made")
    headline, header, first, second, *_ = result.stdout.splitlines()
    assert headline.split("  ") == ["made", f"version {index.version}", "1,002 subscriptions in 2 segments"]
    assert header.split() == ["segment", "subscriptions", "removed", "bytes", "clusters"]
    large, small = index.describe()
    assert first.split()[:3] == [large.name, "1,002", "1"]
    assert first.split()[4:] == ["kB", str(len(large.clusters))]
    assert second.split()[:3] == [small.name, "1", "0"]
    for cluster in large.clusters:
        words = (cluster.layout, cluster.key or "-", f"{cluster.clauses:,}")
        assert any(all(word in line for word in words) for line in result.stdout.splitlines())


def test_segments_limit_shows_largest_clusters(tidings: Tidings) -> None:
    index = make("made")
    result = tidings("segments", "made", "--limit", "1")
    clauses = sorted(cluster.clauses for cluster in index.describe()[0].clusters)
    assert f"{clauses[-1]:,}" in result.stdout
    assert (
        f"{len(clauses) - 1} clusters of {sum(clauses[:-1])} clauses; --limit N shows more" in result.stderr
    )
    assert len(tidings("segments", "made", "--limit", "0").stdout.splitlines()) == 4


def test_segments_json_equals_index_description(tidings: Tidings) -> None:
    index = make("made")
    lines = [json.loads(line) for line in tidings("segments", "made", "--json").stdout.splitlines()]
    assert [line["name"] for line in lines] == [each.name for each in index.describe()]
    assert {(line["folder"], line["version"]) for line in lines} == {("made", index.version)}
    assert [ClusterDescription(**cluster) for cluster in lines[0]["clusters"]] == index.describe()[0].clusters


@pytest.fixture
def live() -> LiveIndex:
    Path(".tidings").mkdir()
    with open_store(sqlite_url(Path(".tidings/store.db"))) as store:
        store.subscriptions.add(Subscription("cheap", "ana", "predicates", "price < 200"))
        return LiveIndex(Path(".tidings/segments"), store)


def test_segments_of_stream_show_version_in_use(tidings: Tidings, live: LiveIndex) -> None:
    """A change that the stream has not stored yet is not shown."""
    version = live.index.version
    live.index.add(compile_many([Subscription("later", "bo", "predicates", "exists reserve")]))
    for words in ((), (".tidings",), (".tidings/segments",), ("--home", ".tidings")):
        result = tidings("segments", *words)
        assert f"version {version}  1 subscription in 1 segment" in result.stdout


def test_segments_of_running_stream_retry_when_version_is_deleted(
    tidings: Tidings, live: LiveIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state file names a version that is deleted before it is opened; by then there is a newer state."""
    read_state, calls = live_index.read_index_state, []

    def slow(segments: Path) -> live_index.IndexState | None:
        state = read_state(segments)
        if not calls:
            live.index.add(compile_many([Subscription("later", "bo", "predicates", "exists reserve")]))
            live._write_state(2)
            live.tidy()
        calls.append(segments)
        return state

    monkeypatch.setattr(live_index, "read_index_state", slow)
    assert "2 subscriptions in 2 segments" in tidings("segments").stdout
    assert len(calls) == 2


def test_segments_of_running_jobs_are_found_in_shared_folder(tidings: Tidings) -> None:
    """Each job has a subfolder of its own."""
    for name in ("shared/.segments-0a", "shared/.segments-0b"):
        Index.create(name).add(compile_many([Subscription("cheap", "ana", "predicates", "price < 200")]))
    result = tidings("segments", "shared", "--limit", "0")
    folders = [line.split()[0] for line in result.stdout.splitlines() if "1 subscription in" in line]
    assert folders == ["shared/.segments-0a", "shared/.segments-0b"]


def test_segments_of_empty_index(tidings: Tidings) -> None:
    Index.create("made")
    assert tidings("segments", "made").stdout == "made  version 1  0 subscriptions in 0 segments\n"
    assert tidings("segments", "made", "--json").stdout == ""


def test_segments_without_index_is_setup_error(tidings: Tidings) -> None:
    result = tidings("segments")
    assert result.exit_code == 4
    assert "no index in this folder (.tidings); tidings run creates one" in result.stderr

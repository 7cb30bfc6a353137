"""`segments`: an index in a folder, of a stream, of a job."""

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
    """Quotes of ten symbols, an equality of another attribute, and something that has no equality at all."""
    texts = [f"symbol = 'S{i % 10}' and price > {i}" for i in range(1000)]
    texts += ["kind = 'toy' and title contains 'x'", "price < 5"]
    index = Index.create(folder)
    index.add(compile_many(Subscription(f"s{i}", "ana", "predicates", t) for i, t in enumerate(texts)))
    index.add(compile_many([Subscription("later", "bo", "predicates", "exists reserve")]))
    index.remove(["s7"])
    return index


def test_an_index_in_a_folder(tidings: Tidings) -> None:
    index = make("made")
    done = tidings("segments", "made")
    headline, header, first, second, *_ = done.stdout.splitlines()
    assert headline.split("  ") == ["made", f"version {index.version}", "1,002 subscriptions in 2 segments"]
    assert header.split() == ["segment", "subscriptions", "removed", "bytes", "clusters"]
    large, small = index.describe()
    assert first.split()[:3] == [large.name, "1,002", "1"]
    assert first.split()[4:] == ["kB", str(len(large.clusters))]
    assert second.split()[:3] == [small.name, "1", "0"]
    for one in large.clusters:
        words = (one.layout, one.key or "-", f"{one.clauses:,}")
        assert any(all(word in line for word in words) for line in done.stdout.splitlines())


def test_a_limit_shows_the_largest_clusters(tidings: Tidings) -> None:
    index = make("made")
    done = tidings("segments", "made", "--limit", "1")
    clauses = sorted(cluster.clauses for cluster in index.describe()[0].clusters)
    assert f"{clauses[-1]:,}" in done.stdout
    assert f"{len(clauses) - 1} clusters of {sum(clauses[:-1])} clauses; --limit N shows more" in done.stderr
    assert len(tidings("segments", "made", "--limit", "0").stdout.splitlines()) == 4


def test_for_machines_it_is_what_the_library_says(tidings: Tidings) -> None:
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


def test_the_index_of_a_stream(tidings: Tidings, live: LiveIndex) -> None:
    """At the version the stream uses: a change it has not yet written down is not shown."""
    version = live.index.version
    live.index.add(compile_many([Subscription("later", "bo", "predicates", "exists reserve")]))
    for words in ((), (".tidings",), (".tidings/segments",), ("--home", ".tidings")):
        done = tidings("segments", *words)
        assert f"version {version}  1 subscription in 1 segment" in done.stdout


def test_a_stream_that_goes_on_meanwhile(
    tidings: Tidings, live: LiveIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state names a version that is deleted before it is opened; by then there is a newer state."""
    remembered, calls = live_index.read_index_state, []

    def slow(segments: Path) -> live_index.IndexState | None:
        state = remembered(segments)
        if not calls:
            live.index.add(compile_many([Subscription("later", "bo", "predicates", "exists reserve")]))
            live._write_state(2)
            live.tidy()
        calls.append(segments)
        return state

    monkeypatch.setattr(live_index, "read_index_state", slow)
    assert "2 subscriptions in 2 segments" in tidings("segments").stdout
    assert len(calls) == 2


def test_the_index_of_a_job_that_runs(tidings: Tidings) -> None:
    """It stands in a folder of its own, as several jobs may share theirs."""
    for name in ("shared/.segments-0a", "shared/.segments-0b"):
        Index.create(name).add(compile_many([Subscription("cheap", "ana", "predicates", "price < 200")]))
    done = tidings("segments", "shared", "--limit", "0")
    folders = [line.split()[0] for line in done.stdout.splitlines() if "1 subscription in" in line]
    assert folders == ["shared/.segments-0a", "shared/.segments-0b"]


def test_an_empty_index(tidings: Tidings) -> None:
    Index.create("made")
    assert tidings("segments", "made").stdout == "made  version 1  0 subscriptions in 0 segments\n"
    assert tidings("segments", "made", "--json").stdout == ""


def test_no_index(tidings: Tidings) -> None:
    done = tidings("segments")
    assert done.exit_code == 4
    assert "no index in this folder (.tidings); tidings run creates one" in done.stderr

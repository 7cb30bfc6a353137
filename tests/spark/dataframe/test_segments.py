"""Distribution of segments to executors: digests, the cache of a host, damage, eviction."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark import workload
from tidings import Index, SetupError, compile_many, decode
from tidings.model import Subscription
from tidings.spark.dataframe.segments import (
    IndexManifest,
    InlineSegments,
    SegmentCache,
    SegmentSource,
    archive_name,
    archive_segment,
    describe_index,
)


class CountingSource(SegmentSource):
    """Inline archives that record each fetched segment."""

    def __init__(self, index: Index, folder: Path) -> None:
        self.fetched: list[str] = []
        archives = {}
        for digest, segment in describe_index(index).folders.items():
            archive_segment(segment, folder / archive_name(digest))
            archives[digest] = (folder / archive_name(digest)).read_bytes()
        self._inline = InlineSegments(archives)

    def fetch(self, digest: str, target: Path) -> None:
        self.fetched.append(digest)
        self._inline.fetch(digest, target)


def make_index(*parts: list[Subscription]) -> Index:
    index = Index.create()
    for part in parts:
        index.add(compile_many(part))
    return index


def matching_ids(index: Index, body: bytes) -> set[str]:
    return set(index.match([decode(body)]).ids().to_pylist())


ANY = Subscription("any", "ana", "predicates", "price > 0")
SOME = Subscription("some", "bo", "predicates", "price > 5")
BODY = b'{"price": 7}'


def test_segment_cache_opens_same_index_with_removed_rows(tmp_path):
    subscriptions = workload.subscriptions(50)
    index = make_index(subscriptions[:25], subscriptions[25:])
    index.remove([subscriptions[3].id, subscriptions[30].id])
    described = describe_index(index)
    opened = SegmentCache(tmp_path).open(described.manifest, CountingSource(index, tmp_path))
    for body in workload.events(40):
        assert matching_ids(opened, body) == matching_ids(index, body)


def test_segment_cache_fetches_each_segment_once_across_versions(tmp_path):
    index = make_index([ANY])
    cache = SegmentCache(tmp_path)
    first = CountingSource(index, tmp_path)
    cache.open(describe_index(index).manifest, first)
    index.add(compile_many([SOME]))
    second = CountingSource(index, tmp_path)
    assert matching_ids(cache.open(describe_index(index).manifest, second), BODY) == {"any", "some"}
    assert (len(first.fetched), len(second.fetched)) == (1, 1)
    index.remove("any")
    third = CountingSource(index, tmp_path)
    assert matching_ids(cache.open(describe_index(index).manifest, third), BODY) == {"some"}
    assert third.fetched == []


def test_segment_cache_damaged_segment_is_rejected_and_deleted(tmp_path):
    index = make_index([ANY])
    manifest = describe_index(index).manifest

    class Damaged(CountingSource):
        def fetch(self, digest: str, target: Path) -> None:
            super().fetch(digest, target)
            with (target / "arrays.bin").open("r+b") as file:
                file.write(b"damaged!")

    with pytest.raises(SetupError, match="damaged on its way"):
        SegmentCache(tmp_path).open(manifest, Damaged(index, tmp_path))
    assert list((tmp_path / "segments").iterdir()) == []
    assert matching_ids(SegmentCache(tmp_path).open(manifest, CountingSource(index, tmp_path)), BODY) == {
        "any"
    }


def test_segment_cache_over_limit_evicts_least_recently_used(tmp_path):
    first, second = make_index([ANY]), make_index([SOME])
    cache = SegmentCache(tmp_path, limit=1)
    opened = cache.open(describe_index(first).manifest, CountingSource(first, tmp_path))
    cache.open(describe_index(second).manifest, CountingSource(second, tmp_path))
    assert [path.name for path in (tmp_path / "segments").iterdir()] == [*describe_index(second).folders]
    assert matching_ids(opened, BODY) == {"any"}  # mapped, so it remains readable


def test_segment_cache_smaller_than_index_keeps_segments_in_use(tmp_path):
    index = make_index([ANY], [SOME])
    opened = SegmentCache(tmp_path, limit=1).open(
        describe_index(index).manifest, CountingSource(index, tmp_path)
    )
    assert matching_ids(opened, BODY) == {"any", "some"}


def test_segment_cache_of_another_user_is_rejected(tmp_path, monkeypatch):
    monkeypatch.setenv("TIDINGS_SEGMENT_CACHE", str(tmp_path))
    owner = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    with pytest.raises(SetupError, match="belongs to another user"):
        SegmentCache.of_host()


def test_segment_cache_concurrent_processes_fetch_segment_once(tmp_path):
    """The Python workers of a host start at the same time."""
    index = make_index(workload.subscriptions(50))
    described = describe_index(index)
    [(digest, folder)] = described.folders.items()
    archive_segment(folder, tmp_path / archive_name(digest))
    (tmp_path / "manifest.json").write_text(described.manifest.to_json())
    program = (
        "import sys, pathlib; from tidings.spark.dataframe.segments import *\n"
        "class Source(SegmentSource):\n"
        "    def fetch(self, digest, target):\n"
        "        pathlib.Path(sys.argv[1], 'fetched').open('a').write('x')\n"
        "        body = pathlib.Path(sys.argv[1], archive_name(digest)).read_bytes()\n"
        "        InlineSegments({digest: body}).fetch(digest, target)\n"
        "manifest = IndexManifest.from_json(pathlib.Path(sys.argv[1], 'manifest.json').read_text())\n"
        "print(SegmentCache(pathlib.Path(sys.argv[1])).open(manifest, Source()).size)\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(3)]
    assert [process.communicate()[0] for process in started] == [b"50\n"] * 3
    assert (tmp_path / "fetched").read_text() == "x"


def test_index_manifest_round_trips_through_json_and_splits_without_loss():
    index = make_index(*([each] for each in workload.subscriptions(7)))
    index.remove("s003")
    manifest = describe_index(index).manifest
    assert IndexManifest.from_json(manifest.to_json()) == manifest
    groups = manifest.split(3)
    assert len(groups) == 3
    assert sorted(entry.digest for group in groups for entry in group.segments) == sorted(
        entry.digest for entry in manifest.segments
    )

"""Published subscriptions: versions, pins of micro-batches, and streams that follow changes."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from tidings import InputError, SetupError, Subscription
from tidings.spark import Subscriptions, match
from tidings.spark.dataframe.environment import PublishedSubscriptions


def subscription(id: str, text: str) -> Subscription:
    return Subscription(id, "ana", "predicates", text)


LOW, HIGH = subscription("low", "price < 10"), subscription("high", "price >= 10")


def publish(place: Path, *subscriptions: Subscription, keep: int = 20) -> Subscriptions:
    return Subscriptions.compile(subscriptions).publish(place, keep_versions=keep)


def test_publish_same_segments_twice_writes_once(tmp_path):
    compiled = Subscriptions.compile([LOW])
    compiled.publish(tmp_path)
    [archive] = (tmp_path / "segments").iterdir()
    before = archive.stat().st_mtime_ns
    compiled.publish(tmp_path)
    assert [path.stat().st_mtime_ns for path in (tmp_path / "segments").iterdir()] == [before]
    assert PublishedSubscriptions.open(tmp_path).list_versions() == [1, 2]


def test_publish_keep_versions_deletes_older_versions_and_segments(tmp_path):
    for published in (LOW, HIGH, LOW):
        publish(tmp_path, published, keep=1)
    assert PublishedSubscriptions.open(tmp_path).list_versions() == [3]
    assert len(list((tmp_path / "segments").iterdir())) == 1


def test_open_location_without_subscriptions_is_rejected(tmp_path):
    with pytest.raises(InputError, match="no subscriptions are published here"):
        Subscriptions.at(tmp_path)


def test_open_unknown_version_error_names_existing_versions(tmp_path):
    publish(tmp_path, LOW)
    with pytest.raises(InputError, match="versions 1 to 1"):
        Subscriptions.at(tmp_path, version=7)


def test_pin_of_batch_is_kept_when_new_version_is_published(tmp_path):
    publish(tmp_path, LOW)
    location = PublishedSubscriptions.open(tmp_path)
    assert location.pin("query", 0) == 1
    publish(tmp_path, LOW, HIGH)
    assert (location.pin("query", 0), location.pin("query", 1), location.pin("other", 0)) == (1, 2, 2)


def test_pin_deletes_pins_of_old_batches(tmp_path):
    publish(tmp_path, LOW)
    location = PublishedSubscriptions.open(tmp_path)
    for batch in range(0, 300, 50):
        location.pin("query", batch)
    assert sorted(path.name for path in (tmp_path / "pins" / "query").iterdir()) == ["200", "250"]


def run(stream: DataFrame, sink: Path, checkpoint: Path) -> None:
    query = (
        stream.writeStream.format("json")
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start(str(sink))
    )
    query.awaitTermination()


def read(session: SparkSession, sink: Path) -> set[tuple[str, str]]:
    rows = session.read.schema("publication string, subscription string").json(str(sink)).collect()
    return {(row.publication, row.subscription) for row in rows}


def test_stream_uses_published_changes_in_next_micro_batch(session, tmp_path):
    publish(tmp_path / "subscriptions", LOW)
    source = tmp_path / "events"
    source.mkdir()
    stream = match(session.readStream.text(str(source)), Subscriptions.at(tmp_path / "subscriptions"))
    place = tmp_path / "sink", tmp_path / "checkpoint"
    (source / "1.json").write_text('{"id": "a", "price": 5}\n{"id": "b", "price": 50}\n')
    run(stream, *place)
    assert read(session, place[0]) == {("a", "low")}
    publish(tmp_path / "subscriptions", HIGH)  # removes low and adds high; the plan stays the same
    (source / "2.json").write_text('{"id": "c", "price": 5}\n{"id": "d", "price": 50}\n')
    run(stream, *place)
    assert read(session, place[0]) == {("a", "low"), ("d", "high")}


def test_stream_repeated_batch_uses_same_subscriptions(session, tmp_path):
    """Without its commit file, Spark repeats the batch as after a crash."""
    publish(tmp_path / "subscriptions", LOW)
    source = tmp_path / "events"
    source.mkdir()
    (source / "1.json").write_text('{"id": "a", "price": 5}\n{"id": "b", "price": 50}\n')
    stream = match(session.readStream.text(str(source)), Subscriptions.at(tmp_path / "subscriptions"))
    run(stream, tmp_path / "sink", tmp_path / "checkpoint")
    publish(tmp_path / "subscriptions", LOW, HIGH)
    for path in (tmp_path / "checkpoint" / "commits").iterdir():
        path.unlink()
    run(stream, tmp_path / "second sink", tmp_path / "checkpoint")
    assert read(session, tmp_path / "second sink") == {("a", "low")}


def test_batch_uses_fixed_version(session, tmp_path):
    publish(tmp_path, LOW)
    publish(tmp_path, HIGH)
    frame = session.createDataFrame([("a", 5), ("b", 50)], "id string, price int")

    def pairs(matches: DataFrame) -> set[tuple[str, str]]:
        return {(row.publication, row.subscription) for row in matches.collect()}

    assert pairs(match(frame, Subscriptions.at(tmp_path, version=1))) == {("a", "low")}
    assert pairs(match(frame, Subscriptions.at(tmp_path))) == {("b", "high")}


def test_environment_of_deleted_version_error_names_version(tmp_path):
    publish(tmp_path, LOW)
    fixed = Subscriptions.at(tmp_path, version=1)
    publish(tmp_path, HIGH, keep=1)
    with pytest.raises(SetupError, match="version 1 of the subscriptions was deleted"):
        fixed.environment(None)  # type: ignore[arg-type] - a location needs no session

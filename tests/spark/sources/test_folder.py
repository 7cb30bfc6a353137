"""The folder source: positions remain valid when files change or disappear."""

from __future__ import annotations

import gzip
import pickle

import pytest

from tidings.spark.sources.folder import FileList, FolderReader


@pytest.fixture
def incoming(tmp_path):
    (tmp_path / "in").mkdir()
    return tmp_path / "in"


@pytest.fixture
def reader(tmp_path, incoming, monkeypatch):
    """Create readers that list the folder on every call."""
    monkeypatch.setattr("tidings.spark.sources.folder.LISTING_SECONDS", 0.0)
    options = {
        "folder": str(incoming),
        "list": str(tmp_path / "files.jsonl"),
        "publications": "10",
        "lock": str(tmp_path / "lock"),
    }
    return lambda: FolderReader(options)


def read(reader, after, upto):
    """Read a batch as tasks do: with a pickled range and a new reader."""
    parts = pickle.loads(pickle.dumps(reader.partitions({"position": after}, {"position": upto})))
    return [row for part in parts for row in reader.rows(part)]


def rows(reader, after, upto):
    return [(position, id, name, body) for position, id, name, _, body, _ in read(reader, after, upto)]


def media_types(reader, after, upto):
    return {name: media_type for _, _, name, media_type, _, _ in read(reader, after, upto)}


def problems(reader, after, upto):
    return [
        (position, name, problem) for position, _, name, _, _, problem in read(reader, after, upto) if problem
    ]


def test_folder_reader_assigns_each_position_once(incoming, reader):
    (incoming / "b.jsonl").write_text('{"n": 1}\n\n{"n": 2}')
    first_reader = reader()
    assert first_reader.head() == 3
    (incoming / "a.json").write_text('{"n": 3}')
    (incoming / "empty.jsonl").write_text("")
    assert (first_reader.head(), first_reader.head()) == (4, 4)
    expected = [
        (1, None, "b.jsonl:1", b'{"n": 1}'),
        (3, None, "b.jsonl:3", b'{"n": 2}'),
        (4, "a.json", "a.json", b'{"n": 3}'),
    ]
    assert rows(first_reader, 0, 4) == expected
    assert rows(reader(), 1, 3) == expected[1:2]
    (incoming / "b.jsonl").write_text('{"n": 1}\n\n{"n": 2}\n{"n": 4}')
    assert reader().head() == 4


def test_folder_reader_chooses_events_or_documents_by_file_name(incoming, reader):
    for name in ("a.json", "b.jsonl", "c.xml", "D.XML"):
        (incoming / name).write_text("{}\n")
    folder_reader = reader()
    assert media_types(folder_reader, 0, folder_reader.head()) == {
        "D.XML": "application/xml",
        "a.json": "application/json",
        "b.jsonl:1": "application/json",
        "c.xml": "application/xml",
    }


def test_file_list_torn_line_is_overwritten(tmp_path, incoming, reader):
    (incoming / "a.jsonl").write_text("{}\n")
    assert reader().head() == 1
    whole = (tmp_path / "files.jsonl").read_bytes()
    (tmp_path / "files.jsonl").write_bytes(whole + b'{"first": 1, "pa')
    (incoming / "b.jsonl").write_text("{}\n{}\n")
    assert reader().head() == 3
    files = FileList(tmp_path / "files.jsonl")
    files.refresh()
    assert [(entry.first, entry.piece.name) for entry in files.entries] == [(0, "a.jsonl"), (1, "b.jsonl")]


@pytest.mark.parametrize("first", [0, 5])
def test_folder_reader_removed_file_is_reported_in_every_range(incoming, reader, first):
    (incoming / "a.jsonl").write_text("{}\n" * 11)
    (incoming / "b.json").write_text("{}")
    folder_reader = reader()
    assert folder_reader.head() == 12
    assert len(rows(folder_reader, 0, first)) == first
    (incoming / "a.jsonl").unlink()
    (incoming / "b.json").unlink()
    reason = "the file was removed before it was read"
    assert rows(folder_reader, first, 11) == [(first + 1, None, f"a.jsonl:{first + 1}", None)]
    assert problems(folder_reader, first, 12) == [
        (first + 1, f"a.jsonl:{first + 1}", f"{reason}: lines {first + 1} to 11 are lost"),
        (12, "b.json", reason),
    ]


def test_folder_reader_shorter_file_reports_lost_lines(incoming, reader):
    (incoming / "a.jsonl").write_text('{"n": 1}\n' * 6)
    (incoming / "b.jsonl").write_text('{"n": 2}\n')
    folder_reader = reader()
    assert folder_reader.head() == 7
    (incoming / "a.jsonl").write_text('{"n": 3}\n\n')
    reason = "the file has fewer lines than when it was first seen"
    assert rows(folder_reader, 0, 7) == [
        (1, None, "a.jsonl:1", b'{"n": 3}'),
        (3, None, "a.jsonl:3", None),
        (7, None, "b.jsonl:1", b'{"n": 2}'),
    ]
    assert problems(folder_reader, 0, 2) == []
    assert problems(folder_reader, 0, 7) == [(3, "a.jsonl:3", f"{reason}: lines 3 to 6 are lost")]
    assert problems(folder_reader, 4, 6) == [(5, "a.jsonl:5", f"{reason}: lines 5 to 6 are lost")]


def test_folder_reader_longer_file_keeps_positions(incoming, reader):
    (incoming / "a.jsonl.gz").write_bytes(gzip.compress(b'{"n": 1}\n'))
    (incoming / "b.jsonl").write_text('{"n": 2}\n')
    folder_reader = reader()
    assert folder_reader.head() == 2
    (incoming / "a.jsonl.gz").write_bytes(gzip.compress(b'{"n": 1}\n{"n": 3}\n'))
    assert [row[0] for row in rows(folder_reader, 0, 2)] == [1, 2]


def test_folder_reader_unreadable_file_has_position_and_reason(incoming, reader):
    lines = b"".join(b'{"n": %d}\n' % n for n in range(100_000))
    (incoming / "a.jsonl.gz").write_bytes(gzip.compress(lines)[:-50])
    (incoming / "b.jsonl.gz").write_bytes(b"no gzip at all")
    (incoming / "c.jsonl").symlink_to("/proc/self/mem")
    (incoming / "d.jsonl").write_text("{}\n")
    (incoming / "e\udcff.jsonl").write_text("{}\n")
    folder_reader = reader()
    assert folder_reader.head() == 5 == reader().head()
    unreadable = problems(folder_reader, 0, 5)
    assert sorted(name for _, name, _ in unreadable) == [
        "a.jsonl.gz",
        "b.jsonl.gz",
        "c.jsonl",
        "e\\xff.jsonl",
    ]
    assert all(reason.startswith("the file cannot be read: ") for _, _, reason in unreadable)
    assert [name for _, _, name, body in rows(folder_reader, 0, 5) if body] == ["d.jsonl:1"]


def test_folder_reader_bounds_batches_and_stops_at_initial_head(incoming, reader):
    (incoming / "a.jsonl").write_text("{}\n" * 25)
    folder_reader = reader()
    folder_reader.stop_at_head()
    (incoming / "b.jsonl").write_text("{}\n")
    ends = [0]
    while (end := folder_reader.next_offset({"position": ends[-1]})["position"]) > ends[-1]:
        ends.append(end)
    assert ends == [0, 10, 20, 25]

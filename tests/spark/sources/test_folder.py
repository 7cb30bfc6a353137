"""The folder source: positions are permanent, whatever happens to the files."""

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
    one = reader()
    assert one.head() == 3
    (incoming / "a.json").write_text('{"n": 3}')
    (incoming / "empty.jsonl").write_text("")
    assert (one.head(), one.head()) == (4, 4)
    wanted = [
        (1, None, "b.jsonl:1", b'{"n": 1}'),
        (3, None, "b.jsonl:3", b'{"n": 2}'),
        (4, "a.json", "a.json", b'{"n": 3}'),
    ]
    assert rows(one, 0, 4) == wanted
    assert rows(reader(), 1, 3) == wanted[1:2]
    (incoming / "b.jsonl").write_text('{"n": 1}\n\n{"n": 2}\n{"n": 4}')
    assert reader().head() == 4


def test_folder_reader_chooses_events_or_documents_by_file_name(incoming, reader):
    for name in ("a.json", "b.jsonl", "c.xml", "D.XML"):
        (incoming / name).write_text("{}\n")
    one = reader()
    assert media_types(one, 0, one.head()) == {
        "D.XML": "application/xml",
        "a.json": "application/json",
        "b.jsonl:1": "application/json",
        "c.xml": "application/xml",
    }


def test_file_list_with_a_torn_line_overwrites_it(tmp_path, incoming, reader):
    (incoming / "a.jsonl").write_text("{}\n")
    assert reader().head() == 1
    whole = (tmp_path / "files.jsonl").read_bytes()
    (tmp_path / "files.jsonl").write_bytes(whole + b'{"first": 1, "pa')
    (incoming / "b.jsonl").write_text("{}\n{}\n")
    assert reader().head() == 3
    files = FileList(tmp_path / "files.jsonl")
    files.refresh()
    assert [(one.first, one.piece.name) for one in files.entries] == [(0, "a.jsonl"), (1, "b.jsonl")]


@pytest.mark.parametrize("first", [0, 5])
def test_folder_reader_of_a_removed_file_reports_it_in_every_range(incoming, reader, first):
    (incoming / "a.jsonl").write_text("{}\n" * 11)
    (incoming / "b.json").write_text("{}")
    one = reader()
    assert one.head() == 12
    assert len(rows(one, 0, first)) == first
    (incoming / "a.jsonl").unlink()
    (incoming / "b.json").unlink()
    gone = "the file was removed before it was read"
    assert rows(one, first, 11) == [(first + 1, None, f"a.jsonl:{first + 1}", None)]
    assert problems(one, first, 12) == [
        (first + 1, f"a.jsonl:{first + 1}", f"{gone}: lines {first + 1} to 11 are lost"),
        (12, "b.json", gone),
    ]


def test_folder_reader_of_a_shorter_file_reports_the_lost_lines(incoming, reader):
    (incoming / "a.jsonl").write_text('{"n": 1}\n' * 6)
    (incoming / "b.jsonl").write_text('{"n": 2}\n')
    one = reader()
    assert one.head() == 7
    (incoming / "a.jsonl").write_text('{"n": 3}\n\n')
    fewer = "the file has fewer lines than when it was first seen"
    assert rows(one, 0, 7) == [
        (1, None, "a.jsonl:1", b'{"n": 3}'),
        (3, None, "a.jsonl:3", None),
        (7, None, "b.jsonl:1", b'{"n": 2}'),
    ]
    assert problems(one, 0, 2) == []
    assert problems(one, 0, 7) == [(3, "a.jsonl:3", f"{fewer}: lines 3 to 6 are lost")]
    assert problems(one, 4, 6) == [(5, "a.jsonl:5", f"{fewer}: lines 5 to 6 are lost")]


def test_folder_reader_of_a_longer_file_keeps_its_positions(incoming, reader):
    (incoming / "a.jsonl.gz").write_bytes(gzip.compress(b'{"n": 1}\n'))
    (incoming / "b.jsonl").write_text('{"n": 2}\n')
    one = reader()
    assert one.head() == 2
    (incoming / "a.jsonl.gz").write_bytes(gzip.compress(b'{"n": 1}\n{"n": 3}\n'))
    assert [row[0] for row in rows(one, 0, 2)] == [1, 2]


def test_folder_reader_of_an_unreadable_file_gives_a_position_and_a_reason(incoming, reader):
    lines = b"".join(b'{"n": %d}\n' % n for n in range(100_000))
    (incoming / "a.jsonl.gz").write_bytes(gzip.compress(lines)[:-50])
    (incoming / "b.jsonl.gz").write_bytes(b"no gzip at all")
    (incoming / "c.jsonl").symlink_to("/proc/self/mem")
    (incoming / "d.jsonl").write_text("{}\n")
    (incoming / "e\udcff.jsonl").write_text("{}\n")
    one = reader()
    assert one.head() == 5 == reader().head()
    told = problems(one, 0, 5)
    assert sorted(name for _, name, _ in told) == ["a.jsonl.gz", "b.jsonl.gz", "c.jsonl", "e\\xff.jsonl"]
    assert all(reason.startswith("the file cannot be read: ") for _, _, reason in told)
    assert [name for _, _, name, body in rows(one, 0, 5) if body] == ["d.jsonl:1"]


def test_folder_reader_bounds_batches_and_stops_at_the_initial_head(incoming, reader):
    (incoming / "a.jsonl").write_text("{}\n" * 25)
    one = reader()
    one.prepareForTriggerAvailableNow()
    (incoming / "b.jsonl").write_text("{}\n")
    ends = [0]
    while (end := one.latestOffset({"position": ends[-1]}, one.getDefaultReadLimit())["position"]) > ends[-1]:
        ends.append(end)
    assert ends == [0, 10, 20, 25]

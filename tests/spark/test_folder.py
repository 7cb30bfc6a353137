"""The list of files behind the folder source: positions stay what they are, whatever happens to the folder."""

from __future__ import annotations

import pytest

from tidings.spark.folder import FileList, FolderReader


@pytest.fixture
def incoming(tmp_path):
    (tmp_path / "in").mkdir()
    return tmp_path / "in"


@pytest.fixture
def reader(tmp_path, incoming, monkeypatch):
    """Makes readers that look at the folder each time they are asked."""
    monkeypatch.setattr("tidings.spark.folder.LISTING_SECONDS", 0.0)
    options = {
        "folder": str(incoming),
        "list": str(tmp_path / "files.jsonl"),
        "publications": "10",
        "lock": str(tmp_path / "lock"),
    }
    return lambda: FolderReader(options)


def rows(reader, after, upto):
    return [(position, id, name, body) for position, id, name, body in reader.rows(after, upto)]


def test_positions_are_given_once(incoming, reader):
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


def test_a_torn_line_of_the_list_is_written_over(tmp_path, incoming, reader):
    (incoming / "a.jsonl").write_text("{}\n")
    assert reader().head() == 1
    whole = (tmp_path / "files.jsonl").read_bytes()
    (tmp_path / "files.jsonl").write_bytes(whole + b'{"first": 1, "pa')
    (incoming / "b.jsonl").write_text("{}\n{}\n")
    assert reader().head() == 3
    files = FileList(tmp_path / "files.jsonl")
    files.refresh()
    assert [(one.first, one.piece.name) for one in files.entries] == [(0, "a.jsonl"), (1, "b.jsonl")]


def test_a_file_that_is_gone_has_no_body(incoming, reader):
    (incoming / "a.jsonl").write_text("{}\n{}\n")
    one = reader()
    assert one.head() == 2
    (incoming / "a.jsonl").unlink()
    assert rows(one, 0, 2) == [(1, None, "a.jsonl", None)]


def test_batches_are_bounded_and_stop_at_the_head_of_the_start(incoming, reader):
    (incoming / "a.jsonl").write_text("{}\n" * 25)
    one = reader()
    one.prepareForTriggerAvailableNow()
    (incoming / "b.jsonl").write_text("{}\n")
    ends = [0]
    while (end := one.latestOffset({"position": ends[-1]}, one.getDefaultReadLimit())["position"]) > ends[-1]:
        ends.append(end)
    assert ends == [0, 10, 20, 25]

"""Chunks: every line of every file is read once, under its own number, wherever the cuts fall."""

from __future__ import annotations

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.errors import InputError
from tidings.spark import chunks
from tidings.spark.chunks import Chunk, Location, count_lines, line_pieces, plan, read

lines = st.lists(
    st.sampled_from([b"", b"{}", b'{"a": 1}', b" ", b'{"long": "' + b"x" * 40 + b'"}']), max_size=20
)


def documents(place, cut):
    """Name and body of everything a plan reads."""
    files = Location.of(place).files
    return [
        (name, block.buffer[start:end].tobytes())
        for chunk in cut
        for block in read(files, Chunk.from_json(chunk.to_json()))
        for name, start, end in zip(block.names().to_pylist(), block.starts, block.ends, strict=True)
    ]


@given(lines, st.sampled_from([b"\n", b"\r\n"]), st.booleans(), st.integers(1, 60), st.integers(1, 60))
def test_each_line_is_read_once(tmp_path_factory, lines, newline, ends, chunk_bytes, block_bytes):
    path = tmp_path_factory.mktemp("lines") / "a.jsonl"
    text = newline.join(lines) + (newline if ends and lines else b"")
    path.write_bytes(text)
    files = Location.of(path).files
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunks, "BLOCK_BYTES", block_bytes)
        pieces = list(line_pieces(files, files.get_file_info(str(path)), "a.jsonl", chunk_bytes))
        found = documents(path, [Chunk((piece,)) for piece in pieces])
    wanted = [(f"a.jsonl:{i}", line.strip()) for i, line in enumerate(lines, 1) if line.strip()]
    assert [(name, body.strip()) for name, body in found] == wanted
    assert [piece.end for piece in pieces[:-1]] == [piece.start for piece in pieces[1:]]
    assert sum(count_lines(files, piece) for piece in pieces) == len(text.splitlines())


def test_a_folder_of_lines_and_documents(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "_hidden").mkdir()
    (tmp_path / "a.jsonl").write_text('{"n": 1}\n\n{"n": 2}')
    (tmp_path / "deep" / "b.json").write_text('{\n"n": 3}\n')
    (tmp_path / "deep" / "c.ndjson").write_text('{"n": 4}\n')
    (tmp_path / ".d.jsonl").write_text('{"n": 5}\n')
    (tmp_path / "_hidden" / "e.jsonl").write_text('{"n": 6}\n')
    (tmp_path / "f.jsonl.gz").write_bytes(gzip.compress(b'{"n": 7}\n{"n": 8}'))
    assert documents(tmp_path, plan(tmp_path)) == [
        ("a.jsonl:1", b'{"n": 1}'),
        ("a.jsonl:3", b'{"n": 2}'),
        ("deep/c.ndjson:1", b'{"n": 4}'),
        ("f.jsonl.gz:1", b'{"n": 7}'),
        ("f.jsonl.gz:2", b'{"n": 8}'),
        ("deep/b.json", b'{\n"n": 3}\n'),
    ]


def test_a_file_alone_is_called_by_its_name(tmp_path):
    (tmp_path / "b c%20.json").write_text("{}")
    assert documents(tmp_path / "b c%20.json", plan(tmp_path / "b c%20.json")) == [("b c%20.json", b"{}")]


def test_documents_share_chunks(tmp_path, monkeypatch):
    monkeypatch.setattr(chunks, "DOCUMENTS", 3)
    for i in range(7):
        (tmp_path / f"{i}.json").write_text("{}")
    assert [len(chunk.pieces) for chunk in plan(tmp_path)] == [3, 3, 1]


@pytest.mark.parametrize("name", ["nothing", "empty"])
def test_no_publications_is_an_error(tmp_path, name):
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no publications"):
        plan(tmp_path / name)

"""Chunks: each line of each file is read once with its number, wherever chunks end."""

from __future__ import annotations

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.errors import InputError
from tidings.spark.sources import blocks, chunks
from tidings.spark.sources.blocks import Block, UnreadableFile, count_lines, read_blocks
from tidings.spark.sources.chunks import Chunk, cut_line_pieces, plan_chunks
from tidings.spark.sources.files import Location, list_publications

lines = st.lists(
    st.sampled_from([b"", b"{}", b'{"a": 1}', b" ", b'{"long": "' + b"x" * 40 + b'"}']), max_size=20
)


def read_documents(place, planned):
    """Return the name and body of each document in the chunks."""
    files = Location.of(place).files
    return [
        (name, block.buffer[start:end].tobytes())
        for chunk in planned
        for block in read_blocks(files, Chunk.from_json(chunk.to_json()))
        for name, start, end in zip(block.names().to_pylist(), block.starts, block.ends, strict=True)
    ]


@given(lines, st.sampled_from([b"\n", b"\r\n"]), st.booleans(), st.integers(1, 60), st.integers(1, 60))
def test_read_blocks_reads_each_line_once(tmp_path_factory, lines, newline, ends, chunk_bytes, block_bytes):
    path = tmp_path_factory.mktemp("lines") / "a.jsonl"
    text = newline.join(lines) + (newline if ends and lines else b"")
    path.write_bytes(text)
    files = Location.of(path).files
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "BLOCK_BYTES", block_bytes)
        patch.setattr(chunks, "READ_BYTES", block_bytes)
        pieces = list(cut_line_pieces(files, files.get_file_info(str(path)), "a.jsonl", chunk_bytes))
        read = read_documents(path, [Chunk((piece,)) for piece in pieces])
    expected = [(f"a.jsonl:{i}", line.strip()) for i, line in enumerate(lines, 1) if line.strip()]
    assert [(name, body.strip()) for name, body in read] == expected
    assert [piece.end for piece in pieces[:-1]] == [piece.start for piece in pieces[1:]]
    assert sum(count_lines(files, piece) for piece in pieces) == len(text.splitlines())


def test_plan_chunks_folder_has_lines_and_documents(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "_hidden").mkdir()
    (tmp_path / "a.jsonl").write_text('{"n": 1}\n\n{"n": 2}')
    (tmp_path / "deep" / "b.json").write_text('{\n"n": 3}\n')
    (tmp_path / "deep" / "c.ndjson").write_text('{"n": 4}\n')
    (tmp_path / ".d.jsonl").write_text('{"n": 5}\n')
    (tmp_path / "_hidden" / "e.jsonl").write_text('{"n": 6}\n')
    (tmp_path / "f.jsonl.gz").write_bytes(gzip.compress(b'{"n": 7}\n{"n": 8}'))
    assert read_documents(tmp_path, plan_chunks(tmp_path)) == [
        ("a.jsonl:1", b'{"n": 1}'),
        ("a.jsonl:3", b'{"n": 2}'),
        ("deep/c.ndjson:1", b'{"n": 4}'),
        ("f.jsonl.gz:1", b'{"n": 7}'),
        ("f.jsonl.gz:2", b'{"n": 8}'),
        ("deep/b.json", b'{\n"n": 3}\n'),
    ]


def test_plan_chunks_single_file_has_file_name(tmp_path):
    (tmp_path / "b c%20.json").write_text("{}")
    assert read_documents(tmp_path / "b c%20.json", plan_chunks(tmp_path / "b c%20.json")) == [
        ("b c%20.json", b"{}")
    ]


@pytest.mark.parametrize(("cores", "expected"), [(1, 2), (2, 2), (3, 3), (8, 6)])
def test_plan_chunks_gives_each_core_equal_number_of_bounded_chunks(tmp_path, monkeypatch, cores, expected):
    monkeypatch.setattr(chunks, "SMALLEST_CHUNK", 1_000)
    monkeypatch.setattr(chunks, "LARGEST_CHUNK", 4_000)
    monkeypatch.setattr(chunks, "READ_BYTES", 50)
    (tmp_path / "a.jsonl").write_text('{"n": 12}\n' * 600)
    sizes = [chunk.size for chunk in plan_chunks(tmp_path, cores)]
    assert len(sizes) == expected and sum(sizes) == 6_000
    assert max(sizes) - min(sizes) <= 50 * len(sizes)


def test_plan_chunks_groups_documents(tmp_path, monkeypatch):
    monkeypatch.setattr(chunks, "DOCUMENTS", 3)
    for i in range(7):
        (tmp_path / f"{i}.json").write_text("{}")
    assert [len(chunk.pieces) for chunk in plan_chunks(tmp_path)] == [3, 3, 1]


@pytest.mark.parametrize("name", ["nothing", "empty"])
def test_plan_chunks_without_publications_is_rejected(tmp_path, name):
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no publications"):
        plan_chunks(tmp_path / name)


def test_read_blocks_unreadable_files_are_named_and_others_read(tmp_path):
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(b'{"n": 1}\n' * 10)[:-4])
    (tmp_path / "b.jsonl").symlink_to("/proc/self/mem")
    (tmp_path / "c.json").symlink_to("/proc/self/mem")
    (tmp_path / "d.json").write_text("{}")
    (tmp_path / "e.json").write_text("{}")
    planned = plan_chunks(tmp_path)
    (tmp_path / "e.json").unlink()
    files = Location.of(tmp_path).files
    read = [block for chunk in planned for block in read_blocks(files, Chunk.from_json(chunk.to_json()))]
    bad = {block.file: block.reason for block in read if isinstance(block, UnreadableFile)}
    assert sorted(bad) == ["a.jsonl.gz", "b.jsonl", "c.json", "e.json"]
    assert bad["a.jsonl.gz"] == "the file cannot be read: Truncated compressed stream"
    assert bad["e.json"] == "the file was removed before it was read"
    assert "d.json" in [name for block in read if isinstance(block, Block) for name in block.files]


def test_read_blocks_names_not_utf8_are_reported_and_others_read(tmp_path):
    (tmp_path / "a.json").write_text('{"n": 1}')
    (tmp_path / "d\udcfe").mkdir()
    for name in ("\udcff.jsonl", "d\udcfe/b.json", "d\udcfe/.hidden"):
        (tmp_path / name).write_text('{"n": 2}')
    (tmp_path / "d\udcfe" / "back").symlink_to(tmp_path)
    [chunk] = plan_chunks(tmp_path)
    read = list(read_blocks(Location.of(tmp_path).files, Chunk.from_json(chunk.to_json())))
    bad = {block.file: block.reason for block in read if isinstance(block, UnreadableFile)}
    assert set(bad) == {"\\xff.jsonl", "d\\xfe/b.json"}
    assert all("its name is not UTF-8" in reason for reason in bad.values())
    assert [block.files for block in read if isinstance(block, Block)] == [("a.json",)]


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("foo://x", "unsupported file address; received 'foo://x'"),
        ("foo://me:secret@host/x", "unsupported file address; received 'foo://host/x'"),
        ("hdfs://nowhere.invalid/x", "cannot be reached"),
        ("x" * 300, "cannot be reached"),
        ("\udcff.jsonl", "not UTF-8; received 'file:.*%FF.jsonl'"),
    ],
)
def test_list_publications_unreachable_address_is_rejected(place, message):
    with pytest.raises(InputError, match=message) as problem:
        list_publications(place)
    assert problem.value.hint or problem.value.accepted
    assert "secret" not in str(problem.value)


def test_list_publications_circular_link_is_followed_once(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "a.jsonl").write_text("{}")
    (tmp_path / "deep" / "b.jsonl").write_text("{}")
    (tmp_path / "deep" / "back").symlink_to(tmp_path)
    (tmp_path / "c.jsonl").symlink_to(tmp_path / "a.jsonl")
    names = [file.name for file in list_publications(tmp_path)]
    assert names == ["a.jsonl", "c.jsonl", "deep/b.jsonl"]

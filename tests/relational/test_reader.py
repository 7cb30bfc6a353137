"""Documents as rows: parsing in bulk equals parsing one by one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.support.strategies.xpaths import documents
from tidings.documents.tag_paths import TagPaths
from tidings.relational.reader import Row, WantedPaths, parse, parse_many, to_batch

EVERYTHING = ("//*", "//@*", "//text()")
bodies = st.one_of(
    documents().map(str.encode), st.sampled_from([b"", b"<a>", b"{}", b"<a/>", b"<a><b/></a>"])
)
paths = st.sampled_from([EVERYTHING, ("//a/b", "//@x"), ("/a/text()",), ()])


@given(st.lists(bodies, max_size=6), paths)
def test_parse_many_equals_parsing_one_by_one(contents, paths):
    names, wanted = [f"d{n}" for n in range(len(contents))], WantedPaths(paths)
    expected = [row for name, body in zip(names, contents, strict=True) for row in parse(name, body, wanted)]
    rows = list(parse_many(names, contents, wanted, TagPaths()))
    assert sorted(rows, key=_by_document) == expected


def _by_document(row):
    """Sort by document, its own row first; sorting is stable, so other rows keep their order."""
    return int(row.event_id[1:]), row.tagpath is not None


def test_parse_element_row_has_all_text():
    rows = list(parse("d", b"<a x='7'>1<b>2</b></a>", WantedPaths(EVERYTHING)))
    assert rows == [
        Row("d"),
        Row("d", "/a", "1", "12", 12.0),
        Row("d", "/a/@x", "1.2", "7", 7.0),
        Row("d", "/a/text()", "1.3", "1", 1.0),
        Row("d", "/a/b", "1.4", "2", 2.0),
        Row("d", "/a/b/text()", "1.4.5", "2", 2.0),
    ]


def test_to_batch_without_rows_is_empty():
    assert to_batch([]).num_rows == 0

"""Documents as rows: many at once give the rows that the definition gives one by one."""

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
def test_many_documents_at_once(given, paths):
    names, wanted = [f"d{n}" for n in range(len(given))], WantedPaths(paths)
    expected = [row for name, body in zip(names, given, strict=True) for row in parse(name, body, wanted)]
    found = list(parse_many(names, given, wanted, TagPaths()))
    assert sorted(found, key=_by_document) == expected


def _by_document(row):
    """A document's own row comes first; the others stay in order, because sorting keeps it."""
    return int(row.event_id[1:]), row.tagpath is not None


def test_elements_have_rows_with_all_their_text():
    rows = list(parse("d", b"<a x='7'>1<b>2</b></a>", WantedPaths(EVERYTHING)))
    assert rows == [
        Row("d"),
        Row("d", "/a", "1", "12", 12.0),
        Row("d", "/a/@x", "1.2", "7", 7.0),
        Row("d", "/a/text()", "1.3", "1", 1.0),
        Row("d", "/a/b", "1.4", "2", 2.0),
        Row("d", "/a/b/text()", "1.4.5", "2", 2.0),
    ]


def test_no_rows_are_a_batch_too():
    assert to_batch([]).num_rows == 0

"""All plans find what the definition finds, in documents and XPaths of all sorts."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from tests.relational import corpus
from tidings.errors import InputError
from tidings.relational.matching import SETTINGS, matching
from tidings.relational.table_store import TableStore
from tidings.relational.tables import Layout, Plan

pytestmark = pytest.mark.spark

LAYOUTS = [
    Layout(Plan.SHARE),
    pytest.param(Layout(Plan.SHARE_BUCKET, buckets=4), marks=pytest.mark.long),  # `test_job` has a small one
    pytest.param(Layout(Plan.UNROLL, unroll=1), marks=pytest.mark.long),
    Layout(Plan.UNROLL, unroll=3),
    pytest.param(Layout(Plan.UNROLL, unroll=12), marks=pytest.mark.long),
]
SEED = random.randrange(1_000_000)


def table(texts):
    return pa.table({"id": list(texts), "text": list(texts.values())})


def frame(session, bodies):
    rows = [(name, bytearray(body)) for name, body in bodies.items()]
    return session.createDataFrame(rows, "publication string, body binary")


def found(session, store, bodies):
    with matching(session, store, frame(session, bodies)) as outcome:
        rows = [(row.publication, row.subscription) for row in outcome.pairs.collect()]
    assert len(set(rows)) == len(rows)
    return set(rows)


CASES = {
    "same b": "//b[c = 1 and d = 2]",
    "both somewhere": "//b/c = 1 and //b/d = 2",
    "string and number": "//c = '1.0' or //c = 1",
    "not a number is unequal": "//c != 1",
    "not less is not at least": "//c[not(. < 5)]",
    "first node": "contains(//c, 'x')",
    "no hold": "not(//zzz)",
    "nothing at all": "//zzz",
    "negation inside": "//b[d and not(c = 1)]",
    "minus nothing": "//d = 0",
}
BODIES = {
    "together": b"<a><b><c>1</c><d>2</d></b></a>",
    "apart": b"<a><b><c>1</c></b><b><d>2</d></b></a>",
    "text": b"<a><b><c>1.0</c><c>xyz</c></b></a>",
    "first": b"<a><c>axa</c><b><d>-0</d></b></a>",
    "empty": b"<a/>",
}
MATCHES = {
    "together": {"same b", "both somewhere", "string and number", "no hold"},
    "apart": {"both somewhere", "string and number", "no hold", "negation inside"},
    "text": {"string and number", "not a number is unequal", "not less is not at least", "no hold"},
    "first": {
        *{"not a number is unequal", "not less is not at least", "first node", "no hold"},
        *{"negation inside", "minus nothing"},
    },
    "empty": {"no hold"},
}


@pytest.fixture(scope="module")
def everything():
    """Generated documents and subscriptions, quotes and ranges, and the cases above; and their pairs."""
    bodies, texts = corpus.generated(60, 300, SEED)
    quotes, ranges = corpus.stocks(30, 150, SEED)
    bodies, texts = bodies | quotes | BODIES, texts | ranges | CASES
    pairs = corpus.expected(bodies, texts)
    assert len(pairs) > 500
    return bodies, texts, pairs


NODES = 300
ITEMS = "".join(f"<i><x>{n}</x><y>{n + 1}</y><z>{n + 2}</z></i>" for n in range(NODES))
ODD_BODIES = {"good": b"<a/>", "bad": b"<a>", "no": b"{}", "many": f"<m>{ITEMS}</m>".encode()}
ODD = {
    "all": "/a",
    "refused": "//a[2]",
    "negated": "not(//b)",
    "none": "//i[x > 1 and y < 300 and z = 3]",
    "some": "//i[x > 1 and y < 300 and z > 5]",
}


def test_what_is_refused_and_many_nodes_of_each_branch(session, tmp_path):
    """Three branches with 300 nodes each can be combined in 27 million ways: none is written down."""
    store = TableStore.create(tmp_path / "tables", Layout(Plan.UNROLL))
    added = store.add(session, table(ODD))
    assert (added.taken, [reject.id for reject in added.rejects]) == (4, ["refused"])
    with matching(session, store, frame(session, ODD_BODIES)) as outcome:
        pairs = {tuple(row) for row in outcome.pairs.collect()}
        assert {row.publication for row in outcome.rejects.collect()} == {"bad", "no"}
        assert outcome.documents == 4
    assert pairs == {("good", "all"), ("good", "negated"), ("many", "negated"), ("many", "some")}


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: f"{layout.plan.value}-{layout.unroll}")
def test_plans_find_what_the_definition_finds(session, tmp_path, everything, layout):
    bodies, texts, pairs = everything
    store = TableStore.create(tmp_path / "tables", layout)
    assert store.add(session, table(texts)).rejects == ()
    rows = found(session, store, bodies)
    differing = rows ^ pairs
    shown = [(bodies[name], texts[id], (name, id) in pairs) for name, id in sorted(differing)[:5]]
    assert not differing, f"seed {SEED}, {len(differing)} pairs, (document, text, definition): {shown}"
    assert {name: {id for d, id in rows if d == name and id in CASES} for name in BODIES} == MATCHES


def test_two_documents_of_one_name_are_refused(session, tmp_path):
    store = TableStore.create(tmp_path / "tables")
    twice = frame(session, {"d": b"<a/>"}).union(frame(session, {"d": b"<b/>"}))
    before = {name: session.conf.get(name) for name in SETTINGS}
    with pytest.raises(InputError, match="same id"), matching(session, store, twice):
        pass
    assert {name: session.conf.get(name) for name in SETTINGS} == before != SETTINGS


def test_no_subscriptions_and_no_documents(session, tmp_path):
    assert found(session, TableStore.create(tmp_path / "tables", Layout(Plan.UNROLL)), {}) == set()

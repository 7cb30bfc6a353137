"""All plans agree with the specification on generated and hand-written documents and XPaths."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from tests.relational import corpus
from tidings.errors import InputError
from tidings.relational.engine import SETTINGS, matching
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


def subscription_table(texts):
    return pa.table({"id": list(texts), "text": list(texts.values())})


def document_frame(session, bodies):
    rows = [(name, bytearray(body)) for name, body in bodies.items()]
    return session.createDataFrame(rows, "publication string, body binary")


def matched_pairs(session, store, bodies):
    with matching(session, store, document_frame(session, bodies)) as outcome:
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
def corpus_and_pairs():
    """Generated documents and subscriptions, quotes and ranges, the cases above, and the expected pairs."""
    bodies, texts = corpus.draw_corpus(60, 300, SEED)
    quotes, ranges = corpus.draw_quotes(30, 150, SEED)
    bodies, texts = bodies | quotes | BODIES, texts | ranges | CASES
    pairs = corpus.expected_pairs(bodies, texts)
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


def test_matching_lists_rejects_and_does_not_enumerate_combinations(session, tmp_path):
    """Three branches with 300 nodes each have 27 million combinations, which are not materialised."""
    store = TableStore.create(tmp_path / "tables", Layout(Plan.UNROLL))
    added = store.add(session, subscription_table(ODD))
    assert (added.taken, [reject.id for reject in added.rejects]) == (4, ["refused"])
    with matching(session, store, document_frame(session, ODD_BODIES)) as outcome:
        pairs = {(row.publication, row.subscription) for row in outcome.pairs.collect()}
        assert {row.publication for row in outcome.rejects.collect()} == {"bad", "no"}
        assert outcome.documents == 4
    assert pairs == {("good", "all"), ("good", "negated"), ("many", "negated"), ("many", "some")}


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: f"{layout.plan.value}-{layout.unroll}")
def test_matching_every_plan_agrees_with_specification(session, tmp_path, corpus_and_pairs, layout):
    bodies, texts, pairs = corpus_and_pairs
    store = TableStore.create(tmp_path / "tables", layout)
    assert store.add(session, subscription_table(texts)).rejects == ()
    rows = matched_pairs(session, store, bodies)
    differing = rows ^ pairs
    shown = [(bodies[name], texts[id], (name, id) in pairs) for name, id in sorted(differing)[:5]]
    assert not differing, f"seed {SEED}, {len(differing)} pairs, (document, text, definition): {shown}"
    assert {name: {id for d, id in rows if d == name and id in CASES} for name in BODIES} == MATCHES


def test_matching_duplicate_document_name_is_rejected(session, tmp_path):
    store = TableStore.create(tmp_path / "tables")
    twice = document_frame(session, {"d": b"<a/>"}).union(document_frame(session, {"d": b"<b/>"}))
    before = {name: session.conf.get(name) for name in SETTINGS}
    with pytest.raises(InputError, match="same id"), matching(session, store, twice):
        pass
    assert {name: session.conf.get(name) for name in SETTINGS} == before != SETTINGS


def test_matching_without_subscriptions_and_documents_is_empty(session, tmp_path):
    assert matched_pairs(session, TableStore.create(tmp_path / "tables", Layout(Plan.UNROLL)), {}) == set()

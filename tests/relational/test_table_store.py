"""Adding and removing subscriptions affects only their rows; unused rows are removed by compaction."""

from __future__ import annotations

import hashlib

import pyarrow.parquet as pq
import pytest

from tests.relational.test_plans import matched_pairs, subscription_table
from tidings.errors import IdConflict, InputError
from tidings.relational import table_store
from tidings.relational.known_paths import KnownPaths
from tidings.relational.table_store import TableStore, compact
from tidings.relational.tables import TABLES, Layout, Plan, StorePosition, path_id

LAYOUTS = [Layout(Plan.SHARE), Layout(Plan.SHARE_BUCKET, buckets=2), Layout(Plan.UNROLL, unroll=2)]
TEXTS = {
    "s1": "/a/b = 'v' and /a//c > 1 and /a/d > 2",
    "s2": "/a/b = 'v' and /a//c > 1 and /a/d > 3",
    "s3": "//b[c and d = 1]",
    "s4": "not(//b)",
}
TAGS = ["/a", "/a/b", "/a/b/c", "/a/d"]


@pytest.fixture(params=LAYOUTS, ids=lambda layout: layout.plan.value)
def store(request, tmp_path):
    return TableStore.create(tmp_path / "tables", request.param)


def file_hashes(store):
    """Return the hash of each Parquet file of the tables by name."""
    folder = table_store.Path(store.version.folder)
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*.parquet")
    }


def rows(store, name):
    return store.version.rows(name).to_pylist()


def test_add_writes_only_rows_of_new_subscription(store):
    store.add(None, subscription_table({id: TEXTS[id] for id in ("s1", "s3", "s4")}))
    store.learn(TAGS)
    before = file_hashes(store)
    store.add(None, subscription_table({"s2": TEXTS["s2"]}))
    after = file_hashes(store)
    assert {name: after[name] for name in before} == before
    new = {name: pq.read_table(f"{store.version.folder}/{name}") for name in after.keys() - before.keys()}
    kinds = {name.split("/")[0] for name in new}
    assert kinds <= {"query_branchpoint", "query_predicate", "predicate_unroll", "predicate_bucket"}
    for name, rows_of_file in new.items():
        if name.startswith("query_branchpoint"):
            assert rows_of_file["subscription"].to_pylist() == ["s2"]


def test_remove_writes_only_tombstone(store):
    store.add(None, subscription_table(TEXTS))
    before = file_hashes(store)
    assert store.remove(["s1", "unknown", "s4"]) == ["s1", "s4"]
    after = file_hashes(store)
    (new,) = after.keys() - before.keys()
    assert {name: after[name] for name in before} == before
    assert new.startswith("tombstone/")
    assert pq.read_table(f"{store.version.folder}/{new}")["subscription"].to_pylist() == ["s1", "s4"]
    assert sorted(store.live_ids()) == ["s2", "s3"]


def test_add_id_after_removal_is_accepted(store):
    store.add(None, subscription_table({"s1": TEXTS["s1"]}))
    with pytest.raises(IdConflict, match="'s1'"):
        store.add(None, subscription_table({"s1": TEXTS["s2"]}))
    store.remove(["s1"])
    store.add(None, subscription_table({"s1": TEXTS["s2"]}))
    assert store.live_ids(["s1"]) == ["s1"]


def test_remove_unknown_id_changes_nothing(store):
    before = store.version
    assert store.remove(["unknown"]) == []
    assert store.version == before


def test_paths_match_independent_of_order(tmp_path):
    """New linear paths match known tag paths, and new tag paths known linear paths: the tables are the same."""
    first, second = (TableStore.create(tmp_path / name) for name in ("first", "second"))
    first.add(None, subscription_table(TEXTS))
    first.learn(TAGS)
    second.learn(TAGS[:2])
    second.add(None, subscription_table({"s3": TEXTS["s3"]}))
    second.learn(TAGS)
    second.add(None, subscription_table({id: TEXTS[id] for id in ("s1", "s2", "s4")}))
    for name in ("tagpath_map", "path_match", "tagpath_brinfo", "query_linear_path", "linearpath_brinfo"):
        assert sorted(map(str, rows(first, name))) == sorted(map(str, rows(second, name))), name
    assert {"tagpath_id": path_id("/a/b/c"), "linearpath_id": path_id("/a//c")} in rows(first, "path_match")


def test_learn_known_paths_writes_no_version(store):
    store.add(None, subscription_table(TEXTS))
    store.learn(TAGS)
    before = store.version
    store.learn(TAGS)
    assert store.version == before


def test_open_restores_tables(store):
    store.add(None, subscription_table(TEXTS))
    store.learn(TAGS)
    reopened = TableStore.open(store.version.folder)
    assert (reopened.version, reopened.layout) == (store.version, store.layout)
    assert reopened.version.files == store.version.files
    assert reopened.known == store.known == KnownPaths.read(store.version)


def test_create_in_used_folder_and_open_of_empty_folder_are_rejected(store, tmp_path):
    with pytest.raises(InputError, match="already"):
        TableStore.create(store.version.folder)
    with pytest.raises(InputError, match="no tables"):
        TableStore.open(tmp_path)


def test_learn_failed_write_keeps_version(store, monkeypatch):
    store.add(None, subscription_table({"s1": TEXTS["s1"]}))
    before = store.version

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(table_store, "write_tables", full)
        with pytest.raises(OSError, match="No space"):
            store.learn(TAGS)
    assert store.version == before
    store.learn(TAGS)
    assert len(rows(store, "tagpath_map")) == len(TAGS)


BODIES = {
    "one": b"<a><b>v</b><c>5</c><d>9</d></a>",
    "two": b"<a><b>v</b><c>5</c><d>3</d></a>",
    "three": b"<x><b><c/><d>1</d></b></x>",
    "four": b"<x/>",
}
PAIRS = {("one", "s1"), ("one", "s2"), ("two", "s1"), ("three", "s3"), ("four", "s4")}


@pytest.mark.spark
def test_matching_after_changes_uses_new_version(session, tmp_path):
    store = TableStore.create(tmp_path / "tables", Layout(Plan.UNROLL, unroll=1))
    store.add(session, subscription_table({id: TEXTS[id] for id in ("s1", "s4")}))
    store.add(session, subscription_table({id: TEXTS[id] for id in ("s2", "s3")}))
    assert matched_pairs(session, store, BODIES) == PAIRS
    store.remove(["s1", "s4"])
    store.add(session, subscription_table({"s1": TEXTS["s3"]}))
    assert matched_pairs(session, store, BODIES) == {("one", "s2"), ("three", "s3"), ("three", "s1")}


@pytest.mark.spark
@pytest.mark.parametrize(
    "layout",
    [
        LAYOUTS[0],
        pytest.param(LAYOUTS[1], marks=pytest.mark.long),
        pytest.param(LAYOUTS[2], marks=pytest.mark.long),
    ],
    ids=lambda layout: layout.plan.value,
)
def test_matching_after_second_add_generates_valid_java(session, session_log, tmp_path, layout):
    """Files of two additions may repeat a predicate: then Spark would join with a bloom filter, for which it generates
    Java that does not compile. Sessions of tests generate no Java, so this session gets the default settings of Spark.
    """
    session = session.newSession()
    session.conf.set("spark.sql.codegen.factoryMode", "FALLBACK")
    session.conf.set("spark.sql.adaptive.enabled", "true")
    store = TableStore.create(tmp_path / "tables", layout)
    store.add(session, subscription_table({id: TEXTS[id] for id in ("s1", "s4")}))
    store.add(session, subscription_table({id: TEXTS[id] for id in ("s2", "s3")}))
    before = len(session_log.read_text())
    assert matched_pairs(session, store, BODIES) == PAIRS
    assert "CompileException" not in session_log.read_text()[before:]


@pytest.mark.spark
@pytest.mark.parametrize(
    "layout",
    [pytest.param(LAYOUTS[1], marks=pytest.mark.long), LAYOUTS[2]],
    ids=lambda layout: layout.plan.value,
)
def test_compact_removes_unused_rows_and_keeps_matches(session, tmp_path, layout):
    """Rows of removed subscriptions are deleted unless they are shared. The folder name has special characters."""
    store = TableStore.create(tmp_path / "täbles #1 %20", layout)
    for id, text in TEXTS.items():
        store.add(session, subscription_table({id: text}))
    store.add(session, subscription_table({"s5": "//x[y = 1]/z = 2"}))
    store.learn([*TAGS, "/x/y"])
    store.remove(["s1", "s4", "s5"])
    compact(session, store)
    assert sorted(store.live_ids()) == ["s2", "s3"]
    assert {row["linearpath"] for row in rows(store, "query_linear_path")} == {
        *{"/a/b", "/a//c", "/a/d"},
        *{"//b/c", "//b/d"},
    }
    assert {row["brinfo"] for row in rows(store, "linearpath_brinfo")} == {"bp#1=1"}
    assert path_id("/x/y") not in {row["tagpath_id"] for row in rows(store, "tagpath_map")}
    chains = rows(store, "query_predicate")
    assert len({row["chain_id"] for row in chains}) == len(chains)
    listed = {name for names in store.version.files.values() for name in names}
    assert file_hashes(store).keys() == listed
    assert all(store.version.rows(name).schema.names == schema.names for name, schema in TABLES.items())
    store.add(session, subscription_table({"s1": TEXTS["s1"]}))
    assert matched_pairs(session, store, BODIES) == {pair for pair in PAIRS if pair[1] in ("s1", "s2", "s3")}


@pytest.mark.spark
def test_add_many_subscriptions_in_tasks_equals_add_in_driver(session, tmp_path, monkeypatch):
    """Tasks and the driver write the same rows."""
    texts = {f"s{n}": f"/a/b = 'v{n % 7}' and /a/c > {n}" for n in range(40)} | {
        "bad": "/a[",
        "no": "not(/a)",
    }
    driver_store, task_store = (TableStore.create(tmp_path / name) for name in ("here", "there"))
    by_driver = driver_store.add(session, subscription_table(texts))
    monkeypatch.setattr(table_store, "FEW", 10)
    by_tasks = task_store.add(session, subscription_table(texts))
    assert by_driver.taken == by_tasks.taken == 41
    assert [each.id for each in by_driver.rejects] == [each.id for each in by_tasks.rejects] == ["bad"]
    for name in TABLES:
        distinct = [{str(row) for row in rows(store, name)} for store in (driver_store, task_store)]
        assert distinct[0] == distinct[1], name


def test_follow_applies_changes_and_position_at_once(store):
    """Pages of additions count together; an id may be removed and added with another text."""
    pages = [subscription_table({id: TEXTS[id]}) for id in ("s1", "s2")]
    first = StorePosition("store", 3)
    assert store.follow(None, [], pages, first).taken == 2
    changed = [subscription_table({"s2": TEXTS["s3"], "bad": "//a["})]
    rejects = store.follow(None, ["s2", "unknown"], changed, StorePosition("store", 7)).rejects
    assert [reject.id for reject in rejects] == ["bad"]
    reopened = TableStore.open(store.folder).version
    assert (reopened.follows, reopened.subscriptions, reopened.count("tombstone")) == (
        StorePosition("store", 7),
        2,
        1,
    )
    assert sorted(store.live_ids()) == ["s1", "s2"]
    with pytest.raises(InputError, match="follow the subscriptions of a store"):
        store.add(None, subscription_table({"s4": TEXTS["s4"]}))


def test_merge_small_files_keeps_rows_and_deletes_merged_files(store, monkeypatch):
    monkeypatch.setattr(table_store, "MAX_SMALL_FILES", 2)
    store.add(None, subscription_table({id: TEXTS[id] for id in ("s1", "s3")}))
    store.merge_small_files()
    assert store.version.generation == 1, "two files are few"
    for id in ("s2", "s4", "s5"):
        store.add(None, subscription_table({id: TEXTS.get(id, TEXTS["s1"])}))
    before = {name: {str(row) for row in rows(store, name)} for name in store.version.files}
    store.merge_small_files()
    assert {name: {str(row) for row in rows(store, name)} for name in store.version.files} == before
    assert len(store.version.files["query_branchpoint"]) == 1
    listed = {name for names in store.version.files.values() for name in names}
    assert file_hashes(store).keys() == listed
    for name in store.version.files:
        assert store.version.count(name) == len(rows(store, name))
    chains = [row["chain_id"] for row in rows(store, "query_predicate")]
    assert len(chains) == len(set(chains)) or len(store.version.files["query_predicate"]) > 1


@pytest.mark.spark
def test_tidy_tables_compacts_when_more_are_removed_than_left(session, store, monkeypatch):
    monkeypatch.setattr(table_store, "MIN_REMOVED", 1)
    store.add(None, subscription_table(TEXTS))
    store.remove(["s1", "s2"])
    table_store.tidy_tables(session, store)
    assert store.version.count("tombstone") == 2, "as many are left"
    store.remove(["s3"])
    table_store.tidy_tables(session, store)
    assert (store.version.count("tombstone"), store.live_ids()) == (0, ["s4"])

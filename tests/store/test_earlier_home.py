r"""A home folder of an earlier version opens, is migrated, and continues without loss or repetition.

`home-414bc90.tar.xz` was made by the code of commit 414bc90, checked out at $BASE, with these commands; then
`store.db` was replaced by its dump, `store.sql` (`sqlite3.Connection.iterdump`). Its segments have an
earlier format: the stream builds the index again.

    export TIDINGS_HOME=home
    tidings schema extend $BASE/examples/furniture.yaml
    tidings subscribe "price < 200 and period = 'XVI'" --as ana --id cheap
    tidings subscribe "price > 10" --as bo --id dear --within 1h
    tidings subscribe '//paper[author = "Ann"]/title' --as ana --id papers --language xpath
    tidings subscribe 'SELECT ?page WHERE (?page, dc:subject, ?s) AND ?s <= <urn:Science>' \
        --as ana --id science --language gql
    tidings subscribe 'SELECT ?page WHERE { ?page dc:title ?t . FILTER(CONTAINS(?t, "oak")) }' \
        --as bo --id oaks --language gql
    tidings subscribe "price = 7" --as cy --id resting; tidings pause resting
    tidings subscribe "price = 8" --as cy --id gone; tidings unsubscribe gone
    tidings taxonomy load science.nt            # <urn:Physics> rdfs:subClassOf <urn:Science> .
    tidings token make "ana's phone" --as ana; tidings token make shop --scope publish
    tidings destination add webhook https://example.org/hook --as ana
    tidings feeds --as ana
    tidings audience grant secret --as ana
    tidings quiet 22:00-06:00 --zone Europe/Berlin --as bo
    tidings provider schema $BASE/examples/metadata/schema.ttl
    tidings provider register http://example.org/doc.rdf $BASE/examples/metadata/host.rdf
    tidings provider rule ports "search CycleProvider c register c where c.serverPort > 5000" --as ana
    # and open_store(...).feeds.add("http://feeds.example/news.rss", datetime.now(UTC), False)
    tidings publish '{"event_type": "antiques", "quantity": 1, "price": 150, "period": "XVI"}' --id chair
    tidings publish '<proceedings><paper><author>Ann</author><title>Joins</title></paper></proceedings>' \
        --id proceedings
    tidings publish page.ttl --id page          # <urn:page> dc:subject <urn:Physics> ; dc:title "an oak" .
    tidings publish '{"event_type": "antiques", "quantity": 1, "price": 50, "period": "XVI"}' --id hidden \
        --audience secret
    tidings run --once
    tidings publish '{"event_type": "antiques", "quantity": 1, "price": 120, "period": "XVI"}' --id unmatched
"""

from __future__ import annotations

import re
import sqlite3
import tarfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from pyspark.sql import SparkSession
from sqlalchemy import Connection, inspect, make_url, text

from tidings.model import Publication
from tidings.service.tidings import Tidings
from tidings.spark.stream.runner import run_stream
from tidings.store.database import sqlite_url
from tidings.store.migrations import NEWEST, read_version
from tidings.store.store import open_store

ARCHIVE = Path(__file__).parent / "home-414bc90.tar.xz"
TOKEN = "tdg_5goNnz64oXPv142vZ4Vlf8TdmOLVgvHvWo1X9c6mHBk"
DC = "http://purl.org/dc/elements/1.1/"
PAGE = f'<urn:page> <{DC}subject> <urn:Physics> ; <{DC}title> "an oak" .'


@pytest.fixture
def home(tmp_path: Path) -> Path:
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path, filter="data")
    folder = tmp_path / "home"
    dump = folder / "store.sql"
    with closing(sqlite3.connect(folder / "store.db")) as database:
        database.executescript(dump.read_text())
    dump.unlink()
    for state in folder.glob("segments/**/state.json"):  # it has the address of the store
        state.write_text(
            state.read_text().replace("sqlite:////tmp/h/home/store.db", sqlite_url(folder / "store.db"))
        )
    return folder


def read_notifications(tidings: Tidings, subscriber: str) -> list[tuple[int, str, str]]:
    """Return the sequence number, subscription and publication of each notification."""
    notifications = tidings.store.notifications.read(subscriber)
    return [
        (notification.sequence, notification.subscription, notification.publication)
        for notification in notifications
    ]


def test_earlier_home_opened_has_all_stored_data(home: Path) -> None:
    with Tidings(home) as tidings:
        store = tidings.store
        assert read_version(store.database) == NEWEST
        assert [publication.id for publication in store.journal.read(0)] == [
            "chair",
            "proceedings",
            "page",
            "hidden",
            "unmatched",
        ]
        assert sorted(each.id for each in store.subscriptions.list()) == [
            "cheap",
            "dear",
            "oaks",
            "papers",
            "science",
        ]
        assert [each.id for each in store.paused.all()] == ["resting"]
        token = store.tokens.find(TOKEN)
        assert token is not None and (token.subscriber, token.scopes) == ("ana", frozenset({"subscribe"}))
        assert store.audiences.of("ana") == frozenset({"secret"})
        assert store.notifications.deferred("bo").count == 1
        assert store.notifications.matched() == 4
        assert [file.name for file in store.taxonomies.load()] == ["science"]
        assert "antiques" in store.schemas.load().event_types
        assert read_notifications(tidings, "ana") == [
            (1, "ports", "http://example.org/doc.rdf#host"),
            (2, "cheap", "chair"),
            (3, "papers", "proceedings"),
            (4, "science", "page"),
            (5, "cheap", "hidden"),
        ]
        assert [feed.url for feed in store.polled_feeds.load()] == ["http://feeds.example/news.rss"]
        assert [(each.kind, each.target) for each in store.destinations.list("ana")] == [
            ("webhook", "https://example.org/hook")
        ]


@pytest.mark.spark
def test_earlier_home_continued_notifies_new_publications_once(home: Path, session: SparkSession) -> None:
    paper = b"<proceedings><paper><author>Ann</author><title>Twigs</title></paper></proceedings>"
    page = PAGE.replace("urn:page", "urn:other").encode()
    with Tidings(home) as tidings:
        ana, bo = read_notifications(tidings, "ana"), read_notifications(tidings, "bo")
        tidings.store.journal.append([Publication("paper", "application/xml", paper)])
        tidings.store.journal.append([Publication("other", "text/turtle", page)])
    run_stream(session, home, sqlite_url(home / "store.db"), once=True)
    with Tidings(home) as tidings:
        new = [("cheap", "unmatched"), ("papers", "paper"), ("science", "other")]
        assert read_notifications(tidings, "ana") == [
            *ana,
            *((len(ana) + i, *each) for i, each in enumerate(new, start=1)),
        ]
        assert read_notifications(tidings, "bo") == [*bo, (len(bo) + 1, "oaks", "other")]
        assert tidings.store.notifications.matched() == 7


RENAMED = """
INSERT INTO feed_entries VALUES ('ana', 'cheap', 1, 2, '2026-11-18T09:00:00.000000Z');
INSERT INTO feed_cursors VALUES ('ana', 5, '2026-11-18T09:00:00.000000Z');
INSERT INTO delivery_lanes VALUES ('d-1', 'cheap', 'ana', 'example.org:443', 1, NULL, 0, 7, 2, 5, 1, 4, 3, '2026-11-18',
  '2026-11-17', 'status 500');
INSERT INTO delivery_owners VALUES ('bo', 7);
INSERT INTO delivery_gathered VALUES ('bo', 'dear', 2);
INSERT INTO undelivered VALUES (1, 'd-1', 'cheap', 'ana', 'example.org:443', 1, 3, 1, 'n-1', 'status 500', 9,
  '2026-11-18', NULL, 4);
INSERT INTO metadata_backbone VALUES ('leader', 'http://leader.example');
INSERT INTO rule_groups VALUES (1, 'CycleProvider', 'serverPort', '<', 'ServerInformation', 'cpu', 1, 1);
INSERT INTO rule_group_also VALUES (1, 0, 'serverHost', 'contains', 'name', 1);
INSERT INTO rule_feeds VALUES (1, 1, 2, 0);
INSERT INTO reference_tables VALUES ('sectors', 'sectors.csv', 'symbol', '/stock/symbol', '["sector"]', 1);
INSERT INTO paused_resources VALUES ('large', 'http://example.org/doc.rdf#host', '{}');
UPDATE polled_feeds SET inside = 1, asked = '2026-11-18T09:00:00.000000Z';
"""
"""Rows for tables that are empty in the archive, in the names of version 26."""

SURVIVING = {
    "SELECT id, position, kind FROM deferred_notifications": [("n-974d52e0331eac225eee", 1, "matched")],
    "SELECT subscriber, subscription, due FROM deferral_deadlines": [
        ("bo", "dear", "2026-11-18T09:50:38.437669Z")
    ],
    "SELECT count(*), min(number), max(number), count(DISTINCT section) FROM event_schema": [(44, 0, 43, 5)],
    "SELECT * FROM numbered_notifications": [("ana", "cheap", 1, 2, "2026-11-18T09:00:00.000000Z")],
    "SELECT * FROM numbering_cursors": [("ana", 5, "2026-11-18T09:00:00.000000Z")],
    "SELECT destination, subscription, subscriber, host, position, leased, ticket, attempts, digest_end,"
    " next_is_digest, delivered, failures, last_error FROM delivery_cursors": [
        ("d-1", "cheap", "ana", "example.org:443", 1, 0, 7, 2, 5, 1, 4, 3, "status 500")
    ],
    # Migration 30 lets the delivery worker look at the last notification again.
    "SELECT subscriber, sequence FROM scheduling_cursors ORDER BY subscriber": [("ana", 0), ("bo", 6)],
    "SELECT subscriber, subscription, sequence FROM pending_digests": [("bo", "dear", 2)],
    "SELECT number, host, first, last, attempts, attempts_since_replay FROM dead_deliveries": [
        (1, "example.org:443", 1, 3, 9, 4)
    ],
    "SELECT count(*) FROM time_series": [(9,)],
    "SELECT total, maximum FROM time_series WHERE name = 'latency_seconds'": [(739.324769, 739.324769)],
    "SELECT name, value FROM followed_log": [("leader", "http://leader.example")],
    "SELECT grp, further_predicates FROM rule_groups": [(1, 1)],
    "SELECT grp, left_property, swapped FROM rule_group_predicates": [(1, "serverHost", 1)],
    "SELECT rule, grp, level, is_left FROM rule_inputs": [(1, 1, 2, 0)],
    "SELECT name, path FROM reference_tables": [("sectors", "/stock/symbol")],
    "SELECT uri, content FROM paused_resources": [("http://example.org/doc.rdf#host", "{}")],
    "SELECT host, start_sequence FROM destinations": [("example.org:443", 0)],
    "SELECT in_private_network, last_ping FROM polled_feeds": [(1, "2026-11-18T09:00:00.000000Z")],
    "SELECT position, operation FROM metadata_log ORDER BY position": [(1, "schema"), (2, "register")],
    "SELECT class, superclass FROM metadata_classes ORDER BY class": [
        ("CycleProvider", "CycleProvider"),
        ("ServerInformation", "ServerInformation"),
    ],
    "SELECT name, value FROM counters WHERE name IN ('held', 'undelivered', 'matched', 'deferred_notifications',"
    " 'dead_deliveries', 'match_position') ORDER BY name": [
        ("dead_deliveries", 0),
        ("deferred_notifications", 1),
        ("match_position", 4),
    ],
}
"""Queries on the tables with new names, and their results."""


def load_earlier_store(url: str) -> None:
    """Create the archived store at an address, with rows in every table that has another name now."""
    with tarfile.open(ARCHIVE) as archive:
        dump = archive.extractfile("home/store.sql")
        assert dump is not None
        statements = dump.read().decode().rpartition("COMMIT;")[0] + RENAMED
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(str(make_url(url).database))) as database:
            database.executescript(f"{statements} COMMIT;")
    else:
        with psycopg.connect(url) as server:
            server.execute(to_postgresql(statements).encode())


def to_postgresql(statements: str) -> str:
    """Translate a dump of SQLite."""
    translated = statements.removeprefix("BEGIN TRANSACTION;")
    for pattern, replacement in (
        (r"\bWITHOUT ROWID\b", ""),
        (r"\b(?:INTEGER|SMALLINT)( NOT NULL)?(?=,)", r"BIGINT\1"),
        (r"\bBLOB\b", "BYTEA"),
        (r"\bX'([0-9A-F]*)'", r"'\\x\1'"),
    ):
        translated = re.sub(pattern, replacement, translated)
    return translated


INDEX_NAMES = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL",
    "postgresql": "SELECT indexname FROM pg_indexes WHERE schemaname = current_schema()",
}


def describe_tables(connection: Connection) -> tuple[dict[str, set[str]], set[str]]:
    """The columns of each table, and the names of all indexes."""
    tables = inspect(connection)
    columns = {
        name: {column["name"] for column in tables.get_columns(name)} for name in tables.get_table_names()
    }
    return columns, set(connection.execute(text(INDEX_NAMES[connection.dialect.name])).scalars())


def test_earlier_store_opened_has_all_rows_under_the_new_names(url: str) -> None:
    load_earlier_store(url)
    with open_store(url) as store, store.database.read() as connection:
        found = {query: [tuple(row) for row in connection.execute(text(query))] for query in SURVIVING}
    assert found == SURVIVING


def test_earlier_store_opened_has_the_tables_of_a_new_one(url: str, new_url: Callable[[], str]) -> None:
    load_earlier_store(url)
    for _ in range(2):  # opened again, nothing is left to be renamed
        with (
            open_store(url) as store,
            open_store(new_url()) as new,
            store.database.read() as migrated,
            new.database.read() as made,
        ):
            assert describe_tables(migrated) == describe_tables(made)

r"""A home folder that an earlier version wrote: it opens, is migrated, matches, and goes on without loss or repetition.

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

import sqlite3
import tarfile
from contextlib import closing
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tidings.model import Publication
from tidings.service.tidings import Tidings
from tidings.spark.stream.runner import run_stream
from tidings.store.database import sqlite_url
from tidings.store.migrations import NEWEST, read_version

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
    for state in folder.glob("segments/**/state.json"):  # it names the store that the segments belong to
        state.write_text(
            state.read_text().replace("sqlite:////tmp/h/home/store.db", sqlite_url(folder / "store.db"))
        )
    return folder


def matches(tidings: Tidings, subscriber: str) -> list[tuple[int, str, str]]:
    """The sequence number, subscription and publication of each notification."""
    told = tidings.store.notifications.read(subscriber)
    return [(one.sequence, one.subscription, one.publication) for one in told]


def test_earlier_home_opened_has_everything_that_was_stored(home: Path) -> None:
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
        assert store.notifications.held("bo").count == 1
        assert store.notifications.matched() == 4
        assert [file.name for file in store.taxonomies.load()] == ["science"]
        assert "antiques" in store.schemas.load().event_types
        assert matches(tidings, "ana") == [
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
def test_earlier_home_continued_notifies_what_is_new_once(home: Path, session: SparkSession) -> None:
    paper = b"<proceedings><paper><author>Ann</author><title>Twigs</title></paper></proceedings>"
    page = PAGE.replace("urn:page", "urn:other").encode()
    with Tidings(home) as tidings:
        ana, bo = matches(tidings, "ana"), matches(tidings, "bo")
        tidings.store.journal.append([Publication("paper", "application/xml", paper)])
        tidings.store.journal.append([Publication("other", "text/turtle", page)])
    run_stream(session, home, sqlite_url(home / "store.db"), once=True)
    with Tidings(home) as tidings:
        new = [("cheap", "unmatched"), ("papers", "paper"), ("science", "other")]
        assert matches(tidings, "ana") == [
            *ana,
            *((len(ana) + i, *each) for i, each in enumerate(new, start=1)),
        ]
        assert matches(tidings, "bo") == [*bo, (len(bo) + 1, "oaks", "other")]
        assert tidings.store.notifications.matched() == 7

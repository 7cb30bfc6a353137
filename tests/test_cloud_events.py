"""CloudEvents of notifications about publications, metadata and objects."""

from __future__ import annotations

import json
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

from tidings.cloud_events import carried_text, cloud_event, text_of, text_with
from tidings.model import Notification, Publication, Reason
from tidings.service.event_pages import build_cloud_events
from tidings.store.database import sqlite_url
from tidings.store.encoding import MatchRow
from tidings.store.store import open_store

TIME = "2026-11-17T03:00:00.000000Z"
REASONS = (Reason("price < 200", 180, "/price"), Reason("not sold", None, ""))


def make_notification(publication: str = "p-1", subscription: str = "s-1", **more: Any) -> Notification:
    return Notification("n-1", "ana", 1, subscription, publication, REASONS, TIME, **more)


def publication_data(media_type: str, body: bytes) -> dict[str, Any] | None:
    event = cloud_event(make_notification(), Publication("p-1", media_type, body))
    assert json.loads(text_of(event)) == event
    data: dict[str, Any] | None = event["data"]["publication"]
    return data


def test_cloud_event_has_all_members() -> None:
    event = cloud_event(make_notification(), Publication("p-1", "application/json", b'{"price": 180}', 7))
    assert event == {
        "specversion": "1.0",
        "id": "n-1",
        "type": "tidings.notification",
        "source": "/subscriptions/s-1",
        "subject": "p-1",
        "time": TIME,
        "datacontenttype": "application/json",
        "data": {
            "subscriber": "ana",
            "sequence": 1,
            "kind": "matched",
            "because": [
                {"predicate": "price < 200", "value": 180, "at": "/price"},
                {"predicate": "not sold", "value": None, "at": ""},
            ],
            "bindings": None,
            "publication": {"id": "p-1", "media_type": "application/json", "body": {"price": 180}},
        },
    }


@pytest.mark.parametrize(
    ("media_type", "body", "expected"),
    [
        ("application/cloudevents+json", b'{"id": "1"}', {"id": "1"}),
        ("application/ld+json", b'\xef\xbb\xbf[{"@id": "x"}]', [{"@id": "x"}]),
        ("application/json", rb'{"half": "\ud800"}', {"half": "\ud800"}),
        ("application/xml", "<a>é\n</a>".encode(), "<a>é\n</a>"),
        ("text/turtle", b"<a> <b> <c> .", "<a> <b> <c> ."),
        ("application/json", b"no JSON", "no JSON"),
        ("application/json", b'{"x": NaN}', '{"x": NaN}'),
        ("application/json", b'{"x": 1e999}', '{"x": 1e999}'),
        ("application/json", b"[" * 100_000, "[" * 100_000),
    ],
)
def test_cloud_event_contains_publication_unchanged(media_type: str, body: bytes, expected: Any) -> None:
    assert publication_data(media_type, body) == {"id": "p-1", "media_type": media_type, "body": expected}


def test_cloud_event_body_not_utf8_is_base64() -> None:
    body = '<?xml version="1.0" encoding="iso-8859-1"?><a>é</a>'.encode("iso-8859-1")
    publication = publication_data("application/xml", body)
    assert publication is not None and "body" not in publication
    assert b64decode(publication["body_base64"]) == body


def test_text_of_is_one_line_of_ascii() -> None:
    line = text_of(
        cloud_event(make_notification(), Publication("p-1", "application/xml", "<a>\r\n\u2028é</a>".encode()))
    )
    assert line.isascii() and line.isprintable()


def test_cloud_event_leaves_out_large_and_absent_publications() -> None:
    publication = Publication("p-1", "application/json", b'{"a": 12}')
    assert cloud_event(make_notification(), publication, largest=9)["data"]["publication"] is not None
    assert cloud_event(make_notification(), publication, largest=8)["data"]["publication"] is None
    assert cloud_event(make_notification(), None)["data"]["publication"] is None


def test_cloud_event_contains_bindings_and_quotes_names() -> None:
    """The source is a rule over metadata or objects, whose name may have any characters."""
    bindings = {"object": "Script2", "attributes": ["title"]}
    event = cloud_event(
        make_notification("http://e.org/d#x", "my école/1", kind="changed", bindings=bindings), None
    )
    assert event["source"] == "/subscriptions/my%20%C3%A9cole%2F1"
    assert event["subject"] == "http://e.org/d#x"
    assert event["data"]["bindings"] == bindings
    assert event["data"]["kind"] == "changed"


def test_build_cloud_events_includes_small_publications(tmp_path: Path) -> None:
    with open_store(sqlite_url(tmp_path / "store.db")) as store:
        small = Publication("p-1", "application/json", b'{"price": 1}')
        large = Publication("p-2", "application/json", b'"' + b"x" * 100 + b'"')
        store.journal.append([small, large])
        ids = ("p-1", "p-2", "http://e.org/d#x")
        store.notifications.commit_batch("main", 0, [MatchRow(id, "s-1", "ana", REASONS) for id in ids])
        events = build_cloud_events(store, store.notifications.read("ana"), largest=50)
    assert [event["data"]["sequence"] for event in events] == [1, 2, 3]
    assert [event["subject"] for event in events] == list(ids)
    bodies = [event["data"]["publication"] for event in events]
    assert bodies == [{"id": "p-1", "media_type": "application/json", "body": {"price": 1}}, None, None]


def test_text_with_equals_text_of(tmp_path: Path) -> None:
    publication = Publication("p-1", "application/json", b'{"a": "null}}"}')
    notification = make_notification(bindings={"x": "null}}"})
    assert text_with(notification, carried_text(publication)) == text_of(
        cloud_event(notification, publication)
    )
    assert text_with(notification, carried_text(None)) == text_of(cloud_event(notification, None))

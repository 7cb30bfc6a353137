"""A notification as a CloudEvent, whatever it is about."""

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
BECAUSE = (Reason("price < 200", 180, "/price"), Reason("not sold", None, ""))


def told(publication: str = "p-1", subscription: str = "s-1", **more: Any) -> Notification:
    return Notification("n-1", "ana", 1, subscription, publication, BECAUSE, TIME, **more)


def carried(media_type: str, body: bytes) -> dict[str, Any] | None:
    event = cloud_event(told(), Publication("p-1", media_type, body))
    assert json.loads(text_of(event)) == event
    found: dict[str, Any] | None = event["data"]["publication"]
    return found


def test_cloud_event_has_all_members() -> None:
    event = cloud_event(told(), Publication("p-1", "application/json", b'{"price": 180}', 7))
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
def test_cloud_event_contains_the_publication_unchanged(media_type: str, body: bytes, expected: Any) -> None:
    assert carried(media_type, body) == {"id": "p-1", "media_type": media_type, "body": expected}


def test_cloud_event_body_that_is_not_utf8_is_base64() -> None:
    body = '<?xml version="1.0" encoding="iso-8859-1"?><a>é</a>'.encode("iso-8859-1")
    publication = carried("application/xml", body)
    assert publication is not None and "body" not in publication
    assert b64decode(publication["body_base64"]) == body


def test_text_of_is_one_line_of_ascii() -> None:
    line = text_of(cloud_event(told(), Publication("p-1", "application/xml", "<a>\r\n\u2028é</a>".encode())))
    assert line.isascii() and line.isprintable()


def test_cloud_event_leaves_out_large_and_absent_publications() -> None:
    publication = Publication("p-1", "application/json", b'{"a": 12}')
    assert cloud_event(told(), publication, largest=9)["data"]["publication"] is not None
    assert cloud_event(told(), publication, largest=8)["data"]["publication"] is None
    assert cloud_event(told(), None)["data"]["publication"] is None


def test_cloud_event_contains_bindings_and_quotes_names() -> None:
    """A rule over metadata or a database of objects stands in the place of a subscription, and has any name."""
    bindings = {"object": "Script2", "attributes": ["title"]}
    event = cloud_event(told("http://e.org/d#x", "my école/1", kind="changed", bindings=bindings), None)
    assert event["source"] == "/subscriptions/my%20%C3%A9cole%2F1"
    assert event["subject"] == "http://e.org/d#x"
    assert event["data"]["bindings"] == bindings
    assert event["data"]["kind"] == "changed"


def test_a_page_has_its_publications_with_it(tmp_path: Path) -> None:
    with open_store(sqlite_url(tmp_path / "store.db")) as store:
        small = Publication("p-1", "application/json", b'{"price": 1}')
        large = Publication("p-2", "application/json", b'"' + b"x" * 100 + b'"')
        store.journal.append([small, large])
        ids = ("p-1", "p-2", "http://e.org/d#x")
        store.notifications.commit_batch("main", 0, [MatchRow(id, "s-1", "ana", BECAUSE) for id in ids])
        events = build_cloud_events(store, store.notifications.read("ana"), largest=50)
    assert [event["data"]["sequence"] for event in events] == [1, 2, 3]
    assert [event["subject"] for event in events] == list(ids)
    bodies = [event["data"]["publication"] for event in events]
    assert bodies == [{"id": "p-1", "media_type": "application/json", "body": {"price": 1}}, None, None]


def test_text_with_equals_text_of(tmp_path: Path) -> None:
    publication = Publication("p-1", "application/json", b'{"a": "null}}"}')
    one = told(bindings={"x": "null}}"})
    assert text_with(one, carried_text(publication)) == text_of(cloud_event(one, publication))
    assert text_with(one, carried_text(None)) == text_of(cloud_event(one, None))

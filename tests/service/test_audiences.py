"""Audience labels of publications, from publishing to notifications and feeds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from tests.support.stores.notified_store import NotifiedStore
from tidings.errors import DecodeProblem, IdConflict, InputError
from tidings.events.json_batch_decoder import decode_many, documents_of
from tidings.events.kernel_tables import PathTable
from tidings.feeds.outbound.personal_feeds import OpenFeed
from tidings.model import Publication, Reject
from tidings.service.event_pages import build_cloud_events
from tidings.service.tidings import Tidings
from tidings.store.encoding import MatchRow


@pytest.fixture
def tidings(tmp_path: Path) -> Iterator[Tidings]:
    with Tidings(tmp_path) as opened:
        yield opened


def cloud(**more: object) -> str:
    envelope = {"specversion": "1.0", "id": "7", "source": "/shop", "type": "sale"}
    return json.dumps(envelope | {"data": {"price": 180}} | more)


def labels(tidings: Tidings) -> list[str | None]:
    return [one.audience for one in tidings.store.journal.read(0)]


def test_publish_methods_store_audience(tidings: Tidings) -> None:
    tidings.publish('{"price": 1}', audience="board")
    tidings.publish("<a/>", media_type="application/xml", audience="board")
    list(tidings.publish_many([b"{}", b"{}"], audience="board"))
    tidings.publish(b"{}", "p-1", audience="board")
    two = b"<e:a> <e:b> <e:c> <e:g> .\n<e:a> <e:b> <e:d> <e:h> ."
    assert len(list(tidings.publish_parts(two, "application/n-quads", audience="board"))) == 2
    assert labels(tidings) == ["board"] * 7
    with pytest.raises(IdConflict):
        tidings.publish("{}", "p-1")
    with pytest.raises(InputError):
        tidings.publish("{}", audience="")


def test_publish_cloud_event_audience_attribute_is_stored_and_validated(tidings: Tidings) -> None:
    tidings.publish(cloud(audience="board"), "p-1")
    tidings.publish(cloud(audience="board"), "p-1", audience="board")
    tidings.publish(cloud(), "p-2", audience="press")
    tidings.publish(cloud(audience=None), "p-3")
    tidings.publish('{"cloudevent": {"audience": "board"}}', "p-4")  # the same goes for the wrapped form
    tidings.publish('{"audience": "board"}', "p-5")  # a field of an event, not of an envelope
    assert labels(tidings) == ["board", "press", None, "board", None]
    for wrong in (5, "", [], ["a", "b"], {"a": "b"}, True):
        with pytest.raises(DecodeProblem, match="invalid audience label"):
            tidings.publish(cloud(audience=wrong))
    with pytest.raises(DecodeProblem, match="two audiences"):
        tidings.publish(cloud(audience="board"), audience="press")
    lines = [cloud(audience="board").encode(), cloud(audience=[]).encode(), cloud(id="another").encode()]
    outcomes = list(tidings.publish_many(lines))
    assert [isinstance(one, Reject) for one in outcomes] == [False, True, False]
    assert labels(tidings)[-2:] == ["board", None]
    labelled = tidings.publish_many(lines[:2], audience="press")
    assert all(isinstance(outcome, Reject) for outcome in labelled)


def test_decode_many_without_labels_rejects_audience() -> None:
    """In a folder: a publication with an audience must not reach everyone."""
    bodies = pa.array([cloud(audience="board").encode(), cloud().encode(), b'{"price": 1}'])
    decoded = decode_many(*documents_of(bodies), PathTable(["price"]), labels=False)
    [(place, problem)] = decoded.rejects
    assert (place, problem.what) == (0, "audience labels are only supported in the journal")
    assert decode_many(*documents_of(bodies), PathTable(["price"])).rejects == []


def test_notification_after_revoked_grant_discloses_nothing(tidings: Tidings) -> None:
    tidings.store.audiences.grant("ana", "board")
    id = tidings.publish('{"price": 180}', "merger-of-acme", audience="board").id
    tidings.store.notifications.commit_batch("main", 0, [MatchRow(id, "s-1", "ana", (), {"x": "Acme"})])
    [whole] = build_cloud_events(tidings.store, tidings.notifications("ana"))
    assert whole["data"]["publication"]["body"] == {"price": 180}
    tidings.store.audiences.revoke("ana", "board")
    [event] = build_cloud_events(tidings.store, tidings.notifications("ana"))
    assert "subject" not in event
    assert event["data"] == {
        "subscriber": "ana",
        "sequence": 1,
        "kind": "withheld",
        "because": [],
        "bindings": None,
        "publication": None,
    }
    assert "acme" not in json.dumps(event).lower()
    [(_, news)] = [(one.sequence, one) for one in tidings.store.heads.read([("ana", 1)])]
    assert (news.kind, news.publication) == ("withheld", "")


def test_feed_changes_content_and_date_with_grants(tmp_path: Path) -> None:
    """With another ETag and date, so that readers do not get 304."""
    source = NotifiedStore(tmp_path)
    token = source.token
    with source.store:
        source.store.audiences.grant("cy", "board")
        secret = Publication("merger", "application/json", b'{"title": "Acme"}', audience="board")
        source.store.journal.append([secret])
        source.notify(MatchRow("merger", "s-1", "cy"))

        def render() -> tuple[bytes, str, object]:
            source.clock.go(10)
            opened = source.feeds.open(token)
            assert isinstance(opened, OpenFeed)
            page = source.feeds.page(opened, "json")
            assert page is not None
            tag, body = source.feeds.tag(page), source.feeds.render(page)
            return body, tag or "", source.feeds.modified(page)

        first, _, before = render()
        assert b"Acme" in first
        source.store.audiences.revoke("cy", "board")
        second, tag, after = render()
        assert b"Acme" not in second and b"merger" not in second and b"withheld" in second
        assert tag == "" and after > before  # type: ignore[operator]
        assert source.feeds.news(source.feeds.open(token), "atom", 1, 1).count(b"Acme") == 0  # type: ignore[arg-type]
        source.store.audiences.grant("cy", "board")
        assert render()[0] != second and b"Acme" in render()[0]

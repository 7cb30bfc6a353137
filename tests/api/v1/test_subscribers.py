"""Audience labels over HTTP: administrators grant them, publications carry them, and every read checks them again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.servers.application import Served, served
from tidings.service.authorization import Access
from tidings.store.encoding import MatchRow

AUDIENCES = "/v1/audiences"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path) as running:
        yield running


def client(place: Served, *scopes: str, subscriber: str | None = None) -> httpx.Client:
    secret = Access(place.context.tidings.store).make("test", scopes, subscriber).secret
    return httpx.Client(base_url=place.url, headers={"Authorization": f"Bearer {secret}"}, trust_env=False)


def test_audience_grant_list_and_revoke(place: Served) -> None:
    with client(place, "administer") as root, client(place, "subscribe", subscriber="ana") as ana:
        granted = root.put(AUDIENCES, json={"label": "board", "subscriber": "ana"})
        assert (granted.status_code, granted.json()["label"]) == (200, "board")
        assert root.put(AUDIENCES, json={"label": "board", "subscriber": "ana"}).json() == granted.json()
        assert root.get(AUDIENCES).json() == {"grants": [granted.json()]}
        assert root.get(f"{AUDIENCES}?subscriber=bo").json() == {"grants": []}
        assert root.put(AUDIENCES, json={"label": "a\nb", "subscriber": "ana"}).status_code == 422
        assert ana.put(AUDIENCES, json={"label": "all", "subscriber": "ana"}).status_code == 403
        grant_url = f"{AUDIENCES}?label=board&subscriber=ana"
        assert (root.delete(grant_url).status_code, root.delete(grant_url).status_code) == (204, 404)


def test_audience_revoked_withholds_publication_everywhere(place: Served) -> None:
    """In pages, streams and previews; nothing is cached from a moment ago."""
    store = place.context.tidings.store
    with (
        client(place, "administer") as root,
        client(place, "publish") as shop,
        client(place, "subscribe", subscriber="ana") as ana,
    ):
        root.put(AUDIENCES, json={"label": "board", "subscriber": "ana"})
        body = {"deal": "Acme", "price": 180}
        sent = shop.post("/v1/publications?audience=board&id=merger", json=body)
        assert sent.status_code == 201
        assert shop.post("/v1/publications?id=merger", json=body).status_code == 409
        binary = {
            "ce-specversion": "1.0",
            "ce-id": "e-1",
            "ce-source": "/s",
            "ce-type": "t",
            "ce-audience": "x",
        }
        assert shop.post("/v1/publications", json=body, headers=binary).status_code == 201
        own = {"specversion": "1.0", "id": "e-2", "source": "/s", "type": "t", "audience": "y", "data": body}
        jsonl = {"content-type": "application/x-ndjson"}
        lines = f"{json.dumps(own)}\n{json.dumps(body)}\n"
        shop.post("/v1/publications", content=lines, headers=jsonl)
        assert shop.post("/v1/publications?audience=x", json=own).status_code == 422
        wrong = shop.post("/v1/publications?audience=%07", content=lines, headers=jsonl)
        assert (wrong.status_code, wrong.json()["error"]) == (422, "InputError"), (
            "once, and not for each line"
        )
        assert [one.audience for one in store.journal.read(0)] == ["board", "x", "y", None]
        store.notifications.commit_batch("test", 0, [MatchRow("merger", "s-1", "ana")])
        assert read_notification(ana)["data"]["publication"]["body"] == body
        assert read_streamed(ana)["data"]["publication"]["body"] == body
        request = {"text": "deal = 'Acme'", "language": "predicates"}
        assert "merger" in ana.post("/v1/preview", json=request).text
        root.delete(f"{AUDIENCES}?label=board&subscriber=ana")
        for event in (read_notification(ana), read_streamed(ana)):
            assert (event["data"]["kind"], event["data"]["publication"]) == ("withheld", None)
            assert "merger" not in json.dumps(event) and "Acme" not in json.dumps(event)
        assert "merger" not in ana.post("/v1/preview", json=request).text
        assert shop.get("/v1/publications/merger").status_code == 404
        root.put(AUDIENCES, json={"label": "board", "subscriber": "ana"})
        assert read_streamed(ana)["subject"] == "merger"


def read_notification(reader: httpx.Client) -> dict:  # type: ignore[type-arg]
    [event] = reader.get("/v1/notifications?after=0").json()["notifications"]
    return event


def read_streamed(reader: httpx.Client) -> dict:  # type: ignore[type-arg]
    with reader.stream("GET", "/v1/notifications/stream?after=0") as answer:
        for line in answer.iter_lines():
            if line.startswith("data:"):
                return json.loads(line.removeprefix("data:"))
    raise AssertionError("the stream ended")

"""Publishing CloudEvents over HTTP: in structured mode, in binary mode, and in batches."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tests.api.publishing.publish_request import CONTEXT, EVENT, post
from tests.support.servers.api_server import Service


def test_publish_cloud_event_keeps_its_id_in_both_modes(service: Service) -> None:
    structured = post(service, json.dumps(EVENT), "application/cloudevents+json")
    assert (structured.status_code, structured.json()["id"]) == (201, "ce-1")
    assert post(service, json.dumps(EVENT), "application/cloudevents+json").status_code == 200
    context = {"ce_specversion": "1.0", "ce_id": "ce-b", "ce_source": "/shop", "ce_type": "s%C3%A4le"}
    binary = post(service, '{"price": 5.00}', "application/json", **context)
    assert (binary.status_code, binary.json()["id"]) == (201, "ce-b")
    publication = service.tidings.store.journal.find("ce-b")
    assert publication and publication.media_type == "application/cloudevents+json"
    assert json.loads(publication.body)["type"] == "säle" and b'"data":{"price": 5.00}' in publication.body
    assert post(service, '{"price": 5.00}', "application/json", **context).status_code == 200
    assert post(service, '{"price": 6}', "application/json", **context).status_code == 409
    document = post(service, "<a/>", "application/xml", **(context | {"ce_id": "ce-x"}))
    assert service.tidings.store.journal.find("ce-x").body == b"<a/>"  # type: ignore[union-attr]
    assert document.status_code == 201
    text = post(service, b"\xff\x00", "application/octet-stream", **(context | {"ce_id": "ce-o"}))
    assert text.status_code == 201
    for bad in ({"ce_specversion": "2.0"}, {"ce_source": ""}):
        assert (
            post(service, "{}", "application/json", **(context | {"ce_id": "bad"} | bad)).status_code == 422
        )
    assert post(service, '1},"id":{', "application/json", **(context | {"ce_id": "bad"})).status_code == 422


@pytest.mark.parametrize("kind", ["application/json", "application/x-ndjson"])
def test_publish_json_with_specversion_is_cloud_event(service: Service, kind: str) -> None:
    """An event with a `specversion` is a CloudEvent: its id becomes the id of the publication, which is accepted
    once.
    """
    event = EVENT | {"id": f"as {kind}"}
    first, again = (_outcome(post(service, json.dumps(event), kind)) for _ in range(2))
    assert (first["id"], first["new"], again["new"]) == (event["id"], True, False)
    whole = post(service, json.dumps(event), "application/cloudevents+json")
    assert (whole.status_code, whole.json()["new"]) == (200, False)
    other = _outcome(post(service, json.dumps(event | {"type": "other"}), kind))
    assert (other["status"], other["error"]) == (409, "IdConflict")
    escaped = json.dumps(event | {"id": f"escaped {kind}"}).replace("specversion", "\\u0073pecversion")
    assert _outcome(post(service, escaped, kind))["id"] == f"escaped {kind}"
    looks_like_one = {"id": "7", "cloudevent": {"specversion": "1.0", "id": "7"}}
    assert _outcome(post(service, json.dumps(looks_like_one), kind))["id"].startswith("p-")


def _outcome(answer: httpx.Response) -> dict[str, Any]:
    """Return the outcome of the only publication of a request."""
    payload = answer.json()
    [outcome] = payload.get("outcomes", [payload])
    details: dict[str, Any] = outcome.get("problem", outcome)
    return details


def test_publish_id_parameter_overrides_cloud_event_id(service: Service) -> None:
    overridden = post(service, json.dumps(EVENT), "application/json", id="said")
    assert overridden.json()["id"] == "said"
    lines = [EVENT | {"lot": "lot-ce"}, EVENT | {"id": "no lot"}]
    body = "\n".join(json.dumps(line) for line in lines)
    named = service.shop.post(
        "/v1/publications",
        params={"id_field": "lot"},
        content=body,
        headers={"Content-Type": "application/x-ndjson"},
    )
    assert [one["id"] for one in named.json()["outcomes"]] == ["lot-ce", "no lot"]


def test_publish_cloud_event_mode_follows_media_type(service: Service) -> None:
    """Structured mode ignores `ce-` headers; JSON Lines in binary mode are the data of one event."""
    whole = post(service, json.dumps(EVENT | {"id": "ce-w"}), "application/cloudevents+json", **CONTEXT)
    assert (whole.status_code, whole.json()["id"]) == (201, "ce-w")
    batch = json.dumps([EVENT | {"id": "ce-v"}])
    several = post(service, batch, "application/cloudevents-batch+json", **CONTEXT)
    assert [one["id"] for one in several.json()["outcomes"]] == ["ce-v"]
    lines = post(service, '{"a": 1}\n{"a": 2}\n', "application/x-ndjson", **CONTEXT)
    assert (lines.status_code, lines.json()["id"]) == (201, "ce-h")
    publication = service.tidings.store.journal.find("ce-h")
    assert publication and json.loads(publication.body)["datacontenttype"] == "application/x-ndjson"
    none = post(service, json.dumps({"id": "ce-n", "source": "/shop"}), "application/cloudevents+json")
    assert (none.status_code, none.json()["what"]) == (422, "not a CloudEvent")


@pytest.mark.parametrize(
    ("value", "subject"),
    [
        (b"Euro%20%E2%82%AC%20%f0%9f%98%80", "Euro € 😀"),
        (b"%2525", "%25"),
        (b'"a \\"b\\" c"', 'a "b" c'),
        ("ü".encode(), "ü"),
        (b"%C0%A0", None),
        (b"%ff", None),
        (b"\xfc", None),
    ],
)
def test_publish_cloud_event_header_values_are_decoded(
    service: Service, value: bytes, subject: str | None
) -> None:
    """As the HTTP binding defines: quotes are removed, percents decoded once, and invalid UTF-8 is rejected."""
    id = value.hex()
    headers = [(b"ce-subject", value), (b"ce-id", id.encode()), (b"content-type", b"application/json")]
    headers += [(b"ce-specversion", b"1.0"), (b"ce-source", b"/shop"), (b"ce-type", b"sale")]
    answer = service.shop.post("/v1/publications", content=b"1", headers=headers)
    publication = service.tidings.store.journal.find(id)
    if subject is None:
        assert (answer.status_code, answer.json()["where"], publication) == (422, "ce-subject", None)
    else:
        assert (
            answer.status_code == 201 and publication and json.loads(publication.body)["subject"] == subject
        )


def test_publish_repeated_cloud_event_header_is_rejected(service: Service) -> None:
    headers = [("ce-specversion", "1.0"), ("ce-source", "/shop"), ("ce-type", "sale")]
    headers += [("ce-id", "one"), ("ce-id", "other")]
    answer = service.shop.post("/v1/publications", content=b"1", headers=headers)
    assert (answer.status_code, answer.json()["where"]) == (422, "ce-id")


def test_publish_cloud_event_batch_has_one_outcome_per_event(service: Service) -> None:
    batch = [EVENT | {"id": f"b-{n}"} for n in range(3)] + [{"id": "no event"}]
    kind = "application/cloudevents-batch+json"
    answer = post(service, json.dumps(batch), kind)
    assert (answer.status_code, answer.json()["published"], answer.json()["refused"]) == (207, 3, 1)
    assert [one["number"] for one in answer.json()["outcomes"]] == [1, 2, 3, 4]
    again = post(service, json.dumps(batch[:3], indent=1), kind)
    assert (again.status_code, again.json()["known"]) == (200, 3)
    assert post(service, "{}", kind).status_code == 422


@pytest.mark.parametrize(
    ("kind", "body", "paths"),
    [
        ("text/plain", "schön", {"data": "schön"}),
        ('text/plain; charset="UTF-8"; format=flowed', 'a "b"\n\0', {"data": 'a "b"\n\0'}),
        ("text/csv;charset=us-ascii", "a,b", {"data": "a,b"}),
        ("text/plain; charset=iso-8859-1", b"sch\xf6n", {"data_base64": "c2No9m4="}),
        ("text/plain; charset=utf-16", b"ab", {"data_base64": "YWI="}),
        ("text/plain", b"\xff", {"data_base64": "/w=="}),
        ("application/octet-stream", "ab", {"data_base64": "YWI="}),
    ],
)
def test_publish_text_data_is_stored_alike_in_both_modes(
    service: Service, kind: str, body: str | bytes, paths: dict[str, str]
) -> None:
    """SDKs for Go, JavaScript and Python send text in structured mode as a string, the SDK for Java as Base64. A
    path to `data` finds it in both, and in binary mode.
    """
    id = f"text as {kind} {body!r}"
    context = {"ce_specversion": "1.0", "ce_id": quote(id), "ce_source": "/shop", "ce_type": "note"}
    assert post(service, body, kind, **context).status_code == 201
    publication = service.tidings.store.journal.find(id)
    assert publication and json.loads(publication.body) == paths | {
        "specversion": "1.0",
        "id": id,
        "source": "/shop",
        "type": "note",
        "datacontenttype": kind,
    }


def test_publish_same_event_id_of_several_sources_gives_distinct_ids(service: Service) -> None:
    """An id is unique within its source, so an event is not rejected because another source used its id."""
    one, other, third = (EVENT | {"id": "c-1", "source": source} for source in ("/one", "/other", "/third"))
    batch, kind = "application/cloudevents-batch+json", "application/cloudevents+json"
    payload = post(service, json.dumps([one, other]), batch).json()
    ids = [outcome["id"] for outcome in payload["outcomes"]]
    assert (payload["published"], payload["refused"], ids[0]) == (2, 0, "c-1")
    assert ids[1].startswith("c-1~") and ids[1] != "c-1~"
    again = [post(service, json.dumps(event, separators=(",", ":")), kind) for event in (one, other)]
    assert [(answer.status_code, answer.json()["id"]) for answer in again] == [(200, id) for id in ids]
    binary = {"ce_specversion": "1.0", "ce_id": "c-1", "ce_source": "/third", "ce_type": "sale"}
    first = post(service, '{"price": 5}', "application/json", **binary)
    assert (
        first.status_code == 201 and first.json()["id"].startswith("c-1~") and first.json()["id"] not in ids
    )
    changed = [post(service, json.dumps(event | {"type": "gift"}), kind) for event in (one, other, third)]
    assert [answer.status_code for answer in changed] == [409] * 3, "one source has one event of an id"
    assert post(service, json.dumps(other), kind, id="c-1").status_code == 409, (
        "an id that is given is that one"
    )
    publication = service.tidings.store.journal.find(ids[1])
    assert publication and json.loads(publication.body)["source"] == "/other"

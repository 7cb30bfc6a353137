"""Publishing in the console: pasted text of any media type, and dead letters."""

from __future__ import annotations

import html
import re

import pytest

from tests.console.place import Place
from tidings.store.dead_letters import DeadLetter


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ('{"event_type": "antiques", "price": 9, "quantity": 1, "period": "XVI"}', "", "application/json"),
        ("<stock><price>9</price></stock>", "", "application/xml"),
        ("@prefix ex: <http://example.org/> . ex:a ex:b 1 .", "", "text/turtle"),
        ('<http://a.example/s> <http://a.example/p> "x" .', "application/n-triples", "application/n-triples"),
    ],
)
def test_publish_form_detects_media_type_and_publishes(
    place: Place, text: str, kind: str, expected: str
) -> None:
    before = place.tidings.store.journal.head()
    answer = place.bo.post("/console/publish", text=text, kind=kind)
    assert (
        answer.status_code == 200
        and "Published</strong> at position" in answer.text
        and expected in answer.text
    )
    assert place.tidings.store.journal.head() == before + 1


def test_publish_form_lines_keep_rejected_ones(place: Place) -> None:
    good = '{"event_type": "antiques", "price": 9, "quantity": 1, "period": "XVI"}'
    answer = place.bo.post("/console/publish", text=f'{good}\n{{"event_type": "antiques"}}\n{good}')
    assert "<strong>2 publications</strong>, 1 refused" in answer.text
    assert "mandatory for antiques" in answer.text
    [remaining] = re.findall(r"<textarea[^>]*>([^<]*)<", answer.text)
    assert html.unescape(remaining).strip() == '{"event_type": "antiques"}', (
        "accepted lines would be published again"
    )
    assert "contains only the refused lines" in answer.text
    before = place.tidings.store.journal.head()
    again = place.bo.post("/console/publish", text=html.unescape(remaining), kind="application/jsonl")
    assert "0 publications</strong>, 1 refused" in again.text
    assert place.tidings.store.journal.head() == before


def test_publish_page_lists_media_types(place: Place) -> None:
    shown = place.bo.get("/console/publish").text
    assert all(each in shown.partition('id="publish"')[0] for each in ("JSON Lines", "XML", "RDF", "feed"))


def test_publish_form_error_is_underlined(place: Place) -> None:
    answer = place.bo.post("/console/publish", text='{"price": 1e999}\r\n')
    assert answer.status_code == 422 and 'role="alert"' in answer.text
    assert "{&#34;price&#34;: 1e999}" in answer.text  # the text is still there
    assert place.bo.post("/console/publish", text="<a><b></a>").status_code == 422
    assert place.bo.post("/console/publish", text=" ").status_code == 422
    assert place.bo.post("/console/publish", text="{}", kind="text/html").status_code == 422


def test_dead_letter_replay_of_invalid_publication_shows_form(place: Place) -> None:
    listed = place.root.get("/console/dead-letters").text
    assert "price is no number" in listed and "a lot" in listed
    refused = place.root.post("/console/dead-letters/1/replay")
    assert refused.status_code == 422 and "a lot" in refused.text  # still invalid: the form shows it
    assert "a lot" in place.root.get("/console/dead-letters/1/mend").text
    assert place.root.post("/console/dead-letters/99/replay").status_code == 404


def test_dead_letter_links_subscription_and_suspension_is_explained(place: Place) -> None:
    store = place.tidings.store
    fields = {"language": "predicates", "text": "price < 5", "subscriber": "dora"}
    created = place.root.post("/console/subscriptions", **fields)
    at = created.headers["location"].partition("?")[0]
    id = at.rpartition("/")[2]
    letters = [DeadLetter(f"p-{n}", "takes too long", {}, n, b"{}", subscription=id) for n in range(3)]
    store.dead_letters.add("journal", letters)
    listed = place.root.get("/console/dead-letters").text
    assert f'with subscription <a href="{at}"><code>{id}</code></a>' in listed
    store.overruns.suspend(3)
    shown = place.root.get(at).text
    assert ">suspended<" in shown and "Suspended: it exceeded the time or memory budget 3 times" in shown
    assert place.root.post(f"{at}/resume").status_code == 303
    assert ">active<" in place.root.get(at).text

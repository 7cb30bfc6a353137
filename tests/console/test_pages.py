"""Pages and forms of the console: notifications, destinations, tokens, the pipeline and diagrams."""

from __future__ import annotations

import json
import re
from datetime import timedelta

from tests.browser.sample_home import TABLE
from tests.console.place import Place
from tests.support.processes.console_visitor import Visitor, console
from tests.support.servers.site import Response, a_site
from tidings.delivery.delivery_policy import DeliveryPolicy
from tidings.delivery.sql.cursors import RunOutcome
from tidings.model import Reason
from tidings.service.authorization import Access, Scope
from tidings.service.delivery import open_destinations
from tidings.service.pipeline_status import record_heartbeat
from tidings.store.encoding import MatchRow


def test_notifications_page_shows_reasons_and_acknowledges(place: Place) -> None:
    listed = place.ana.get("/console/notifications").text
    assert listed.index("price 180 &lt; 200") < listed.index("price 95 &lt; 200")
    numbers = [
        each.sequence for each in place.tidings.notifications("ana") if each.subscription == place.table
    ]
    inside = place.ana.get(f"/console/notifications/{numbers[-1]}/inside").text
    assert (
        '<mark class="number">180</mark>' in inside
        and '<mark class="string">&#34;table&#34;</mark>' in inside
    )
    graph = place.ana.get(f"/console/notifications/{len(place.tidings.notifications('ana'))}").text
    assert "<dt>?page</dt><dd>http://example.org/page</dd>" in graph and "text/turtle" in graph
    visitor = Visitor(place.address, place.secrets["root"])
    assert "Whose notifications?" in visitor.get("/console/notifications").text
    assert "of ana" in visitor.get("/console/notifications", subscriber="ana").text
    assert visitor.post("/console/notifications/acknowledge", upto="2", subscriber="ana").status_code == 303
    assert place.tidings.store.acknowledgements.cursor("ana").acknowledged == 2
    assert visitor.post("/console/notifications/acknowledge", upto="99", subscriber="ana").status_code == 422
    assert "<strong" in place.ana.get("/console/notifications", before="3").text


def test_notifications_page_shows_titles_of_publications(place: Place) -> None:
    """As in a feed: the title or name of documents and graphs; a publication without one has its reasons only."""
    store = place.tidings.store
    kim = Visitor(place.address, Access(store).make("kim", [Scope.SUBSCRIBE], "kim").secret)
    bodies = {
        "application/xml": "<lot><name>cuckoo clock</name></lot>",
        "text/turtle": "<http://e.org/a> <http://purl.org/dc/elements/1.1/title> 'A grandfather clock' .",
        "application/json": json.dumps(TABLE),
    }
    ids = [place.tidings.publish(body, media_type=kind).id for kind, body in bodies.items()]
    because = (Reason("exists x", 1, ""),)
    matches = [MatchRow(id, "s-clocks", "kim", because) for id in (*ids, "p-gone")]
    store.notifications.commit_batch("titles", 0, matches)
    for page in ("", "/new?after=0"):
        listed = kim.get(f"/console/notifications{page}").text
        words = [re.findall(r'class="(called|reason)">([^<]*)<', each) for each in listed.split("<li ")[1:]]
        assert [one[0] for one in words] == [
            ("reason", "exists x (1)"),
            ("reason", "exists x (1)"),
            ("called", "A grandfather clock"),
            ("called", "cuckoo clock"),
        ]


def test_notification_page_acknowledges_up_to_itself(place: Place) -> None:
    store = place.tidings.store
    lee = Visitor(place.address, Access(store).make("lee", [Scope.SUBSCRIBE], "lee").secret)
    store.notifications.commit_batch("lee", 0, [MatchRow(f"p-{n}", "s-lee", "lee") for n in range(3)])
    for path in ("/console/notifications/2", "/console/notifications/2/inside"):
        [upto] = re.findall(r'name="upto" value="(\d+)"', lee.get(path).text)
        assert upto == "2" and "Mark as read up to here" in lee.get(path).text
    assert lee.post("/console/notifications/acknowledge", upto=upto).status_code == 303
    assert store.acknowledgements.cursor("lee").acknowledged == 2
    assert "Mark as read" not in lee.get("/console/notifications/2/inside").text, "it is read"
    assert "Mark as read up to here" in lee.get("/console/notifications/3/inside").text


def test_notifications_page_lists_subscribers_for_administrator(place: Place) -> None:
    place.tidings.store.notifications.commit_batch("by hand", 0, [MatchRow("p-1", "s-1", "dora")])
    shown = place.root.get("/console/notifications").text
    for name in ("ana", "bo", "dora"):
        assert f'href="/console/notifications?subscriber={name}"' in shown


def test_destination_pages_create_test_rotate_pause_and_delete(place: Place) -> None:
    with a_site() as site:
        site.pages["/hook"] = Response(204)
        created = place.bo.post(
            "/console/destinations", kind="webhook", target=site.url("/hook"), name="mine"
        )
        id = re.search(r"/console/destinations/(d-[0-9a-f]+)/test", created.text)[1]  # type: ignore[index]
        secret = re.search(r"whsec_[\w+/=]+", created.text)
        assert secret is not None and secret[0] not in place.bo.get(f"/console/destinations/{id}").text
        assert "The sample was accepted" in place.bo.post(f"/console/destinations/{id}/test").text
        site.pages["/hook"] = Response(500, b"never")
        assert "The sample was not accepted" in place.bo.post(f"/console/destinations/{id}/test").text
        rotated = re.search(r"whsec_[\w+/=]+", place.bo.post(f"/console/destinations/{id}/rotate").text)
        assert rotated is not None and rotated[0] != secret[0]
        for act, state in (("pause", ">paused<"), ("resume", ">active<")):
            assert (
                state
                in place.bo.get(place.bo.post(f"/console/destinations/{id}/{act}").headers["location"]).text
            )
        assert "mine" in place.bo.get("/console/destinations").text
        assert place.bo.post(f"/console/destinations/{id}/delete").status_code == 303
        assert place.bo.get(f"/console/destinations/{id}").status_code == 404
    refused = place.bo.post("/console/destinations", kind="webhook", target="ftp://example.org")
    assert refused.status_code == 422 and "ftp://example.org" in refused.text


def test_quiet_hours_form_stores_and_validates(place: Place) -> None:
    fields = {"start": "22:00", "end": "07:00", "zone": "Europe/Berlin"}
    assert place.bo.post("/console/destinations/quiet-hours", **fields).status_code == 303
    assert 'value="Europe/Berlin"' in place.bo.get("/console/destinations").text
    for name, wrong in (("zone", "Mars"), ("start", "22")):
        refused = place.bo.post("/console/destinations/quiet-hours", **fields | {name: wrong})
        form = refused.text.partition("Quiet hours</summary>")
        assert refused.status_code == 422 and form[0].endswith('<details class="card" open>\n  <summary>')
        assert all(f'value="{each}"' in form[2] for each in (fields | {name: wrong}).values()), (
            "the form keeps the input"
        )
    assert place.bo.post("/console/destinations/quiet-hours", start="", end="", zone="").status_code == 303
    assert 'value="Europe/Berlin"' not in place.bo.get("/console/destinations").text


def test_destination_error_before_last_success_is_shown_as_past(place: Place) -> None:
    """On the page of the subscription and on that of the destination, with its time."""
    store = place.tidings.store
    id = place.tidings.subscribe("uma", "price > 4", id="s-uma").id
    destination = (
        open_destinations(store, DeliveryPolicy(inside=True))
        .add("uma", "webhook", "http://127.0.0.1:9/hook")
        .id
    )
    pages = (f"/console/subscriptions/{id}", f"/console/destinations/{destination}")
    store.notifications.commit_batch("uma", 0, [MatchRow(f"p-{n}", id, "uma") for n in range(3)])

    def deliver(progress: RunOutcome) -> list[str]:
        store.delivery_cursors.wake(10)
        lanes = store.delivery_cursors.take(10, timedelta(minutes=1))
        [lane] = [one for one in lanes if one.destination == destination]
        store.delivery_cursors.release([one for one in lanes if one is not lane])
        store.delivery_cursors.finish([(lane, progress)])
        health = store.destinations.health("uma")[id]
        shown = [place.root.get(page).text.partition("<dt>Last error</dt>")[2] for page in pages]
        assert all(f'<time datetime="{health.last_failure}">' in each for each in shown)
        return [each.partition("</dd>")[0] for each in shown]

    assert all(
        "status 410" in each and "before" not in each for each in deliver(RunOutcome(0, 0, "status 410", 0.0))
    )
    for each in deliver(RunOutcome(3, 3)):
        assert "status 410" in each and each.endswith("before the last success") and "quiet" in each
    store.destinations.remove(destination)
    place.tidings.unsubscribe([id])


def test_quiet_hours_change_reschedules_deferred_delivery(place: Place) -> None:
    store = place.tidings.store
    destination = (
        open_destinations(store, DeliveryPolicy(inside=True))
        .add("eve", "webhook", "http://127.0.0.1:9/hook")
        .id
    )
    store.notifications.commit_batch("eve", 0, [MatchRow("p-2", "s-2", "eve")])
    store.delivery_cursors.wake(10)
    lanes = store.delivery_cursors.take(10, timedelta(minutes=1))
    [lane] = [one for one in lanes if one.destination == destination]
    store.delivery_cursors.release([one for one in lanes if one is not lane])
    store.delivery_cursors.put_off([(lane, store.delivery_cursors.now() + timedelta(hours=1))])
    fields = {"start": "", "end": "", "zone": "", "subscriber": "eve"}
    assert place.root.post("/console/destinations/quiet-hours", **fields).status_code == 303
    assert destination in [one.destination for one in store.delivery_cursors.take(10, timedelta(minutes=1))]
    store.destinations.remove(destination)


def test_console_shows_bidirectional_characters_as_escapes(place: Place) -> None:
    """An override (U+202E) in a publication, a reason, a subscription or an error is escaped on every page. A form
    field keeps it, so that the user gets back the input.
    """
    zoe = Visitor(place.address, Access(place.tidings.store).make("zoe", [Scope.SUBSCRIBE], "zoe").secret)
    text = "period = '\u202ereverse'"
    id = place.tidings.subscribe("zoe", "price > 3", id="s-turning").id
    published = place.tidings.publish("<lot><title>\u202ereverse</title></lot>", media_type="application/xml")
    because = (Reason("//title = '\u202ereverse'", "\u202ereverse", "/lot/title"),)
    store = place.tidings.store
    store.notifications.commit_batch("turning", 0, [MatchRow(published.id, id, "zoe", because)])
    last = store.notifications.last_sequence("zoe")
    for page in ("", f"/{last}", f"/{last}/inside", f"/new?after={last - 1}"):
        shown = zoe.get(f"/console/notifications{page}").text
        assert "\\u202ereverse" in shown and "\u202e" not in shown, page
    refused = zoe.post("/console/subscriptions", language="predicates", text=f"{text} and")
    assert "\\u202ereverse" in refused.text
    [field] = re.findall(r"<textarea[^>]*>([^<]*)<", refused.text)
    assert "\u202ereverse" in field and "\u202e" not in refused.text.replace(field, "")
    place.tidings.unsubscribe([id])


def test_tokens_page_shows_secret_once_and_validates(place: Place) -> None:
    created = place.root.post(
        "/console/tokens", name="cy's phone", subscriber="cy", expires_in="2 days", subscribe="yes"
    )
    assert created.status_code == 200 and ">tdg_" in created.text
    listed = place.root.get("/console/tokens").text
    assert "cy&#39;s phone" in listed and ">tdg_" not in listed
    refused = place.root.post("/console/tokens", name="x", subscribe="yes")
    assert (
        refused.status_code == 422
        and "a token with the scope subscribe needs a subscriber" in refused.text.lower()
    )


def test_pipeline_page_shows_table_and_stream_state(place: Place) -> None:
    place.tidings.store.time_series.add({"publications": 120, "batch_seconds": 0.25, "lag": 7, "segments": 3})
    shown = place.root.get("/console/pipeline").text
    assert "Throughput: publications (/s)" in shown and '<td class="number">0.25</td>' in shown
    assert '<td class="number">7</td>' in shown and "no stream running" in shown
    record_heartbeat(place.tidings.store, timedelta(days=1), starting=True)
    shown = place.root.get("/console/pipeline").text
    assert "stream starting" in shown and "no stream running" not in shown


def test_pipeline_page_links_to_spark_ui(place: Place) -> None:
    assert "Spark UI" not in place.root.get("/console/pipeline").text
    with console(place.tidings, find_spark_ui=lambda: "http://spark.example:4040") as address:
        shown = Visitor(address, place.secrets["root"]).get("/console/pipeline").text
    assert '<a href="http://spark.example:4040">Spark UI</a>' in shown


def test_browse_pages_contain_svg_diagrams(place: Place) -> None:
    model = place.ana.get("/console/browse/model").text
    assert "<svg" in model and "«subscriber»" in model and "<style" not in model
    assert (
        "Lecturer" not in place.ana.get("/console/browse/model", **{"class": "Student"}).text.split("<svg")[1]
    )
    assert place.ana.get("/console/browse/model", source="none").status_code == 404
    assert "<svg" in place.ana.get("/console/browse/rules").text

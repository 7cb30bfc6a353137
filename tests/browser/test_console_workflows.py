"""Workflows of people in the console, in a real browser."""

from __future__ import annotations

import json
import re
from datetime import timedelta

from playwright.sync_api import expect

from tests.browser.people import Place
from tests.browser.sample_home import PRICE, TABLE, publish_and_notify
from tests.support.processes.command_line import EXAMPLES
from tests.support.servers.site import Response, a_site
from tidings.delivery.delivery_policy import DeliveryPolicy
from tidings.service.delivery import create_delivery_worker, open_destinations
from tidings.service.pipeline_status import read_pipeline


def test_console_subscribe_publish_and_receive_live_notification(place: Place) -> None:
    with place.visited("ana") as ana:
        page = ana.page
        page.get_by_role("link", name="Subscriptions").click()
        page.get_by_role("link", name="New subscription").click()
        page.get_by_role("link", name="A category of a hierarchy, and a value").click()
        expect(page.get_by_label("Text", exact=True)).to_have_value(PRICE)
        page.get_by_role("button", name="Subscribe", exact=True).click()
        expect(page.get_by_role("status")).to_contain_text("Subscribed")
        subscription = page.get_by_role("heading", level=1).inner_text()

        page.get_by_role("link", name="Notifications").click()
        expect(page.locator("#live")).to_contain_text("live")
        unread = int(page.locator("#unread").inner_text())
        with place.visited("ana") as other:
            other.go("publish")
            other.page.get_by_label("What to publish").fill(json.dumps(TABLE | {"price": 77}))
            other.page.get_by_role("button", name="Publish").click()
            expect(other.page.get_by_role("status").first).to_contain_text("at position")
        publish_and_notify(place.tidings, subscription, place.next_batch(), price=77)

        first = page.locator(".tiding").first
        expect(first).to_contain_text("price 77 < 200")  # without a reload
        expect(first.locator("time")).to_have_text(re.compile(r"^\d+:\d\d:\d\d"))  # the day is today
        expect(page.locator("#unread")).to_have_text(str(unread + 1))
        expect(page.locator("#arrived")).to_contain_text("New: furniture_category 'table' is a 'dining room'")
        first.locator("summary").click()
        expect(first.locator("mark", has_text="77")).to_be_visible()
        page.get_by_role("button", name="Mark all as read").click()
        expect(page.locator("#unread")).to_have_text("0")
        expect(page.locator(".tiding.unread")).to_have_count(0)


def test_subscription_form_shows_error_while_typing(place: Place) -> None:
    with place.visited("ana") as ana:
        ana.go("subscriptions/new")
        text, verdict = ana.page.get_by_label("Text", exact=True), ana.page.locator("#verdict")
        text.press_sequentially("prise < 200")
        expect(verdict).to_contain_text("No event type has an attribute 'prise' (line 1, column 1)")
        expect(verdict).to_contain_text("Did you mean 'price'?")
        expect(ana.page.locator(".mirror mark")).to_have_text("prise")
        expect(text).to_have_attribute("aria-invalid", "true")
        assert ana.violations() == ""
        text.fill("not period = 'XVI' and\n  (quantity = 1 or furniture_category = '\U0001f600')")
        expect(verdict).to_contain_text("(line 2, column 41)")
        expect(ana.page.locator(".mirror mark")).to_have_text("'\U0001f600'")
        text.fill("price < 200 and")
        expect(verdict).to_contain_text("xpected a predicate")
        text.fill("price < 200")
        expect(verdict).to_contain_text("1 predicate, reached through price")
        expect(ana.page.locator(".mirror mark")).to_have_count(0)
        expect(ana.page.locator("#previewed")).to_contain_text("would have matched")
        words = ana.page.locator("#previewed li .what").first.inner_text()
        assert ana.violations() == ""
        ana.page.get_by_role("button", name="Check and preview").click()
        expect(ana.page.get_by_label("Text", exact=True)).to_have_value("price < 200")
        assert words.startswith("price ") and words.endswith(" < 200")
        assert ana.page.locator("#previewed li .what").first.inner_text() == words, (
            "in the same words without scripts"
        )
        ana.page.get_by_label("XPath").check()
        expect(verdict).to_contain_text("reached through /price")
        ana.page.get_by_role("link", name="An element anywhere, by its content").click()
        expect(verdict).to_contain_text("reached through //stock")
        ana.page.get_by_label("Rules").check()
        ana.page.get_by_role("link", name="All resources of a class").click()
        expect(verdict).to_contain_text("reached through CycleProvider")
        expect(ana.page.locator("#preview")).to_be_hidden()


def test_subscription_form_shows_warnings_while_typing(place: Place) -> None:
    with place.visited("ana") as ana:
        ana.go("subscriptions/new")
        text, verdict = ana.page.get_by_label("Text", exact=True), ana.page.locator("#verdict")
        ana.page.get_by_label("XPath").check()
        text.fill("/stock[/price > 50]")
        expect(verdict.locator(".warning")).to_have_count(2)
        warning = verdict.locator(".warning").first
        expect(warning).to_contain_text("Warning: '/price' begins at the document")
        expect(warning).to_contain_text("(line 1, column 8)")
        expect(warning).to_contain_text("Did you mean")
        expect(verdict).to_contain_text("reached through")
        expect(text).not_to_have_attribute("aria-invalid", "true")
        assert ana.violations() == ""
        words = warning.inner_text()
        ana.page.get_by_role("button", name="Check and preview").click()
        expect(warning).to_have_text(words, use_inner_text=True)  # in the same words without scripts
        text.fill("/stock[price > 50]")
        expect(verdict).to_contain_text("reached through")
        expect(verdict.locator(".warning")).to_have_count(0)


def test_subscription_form_with_invalid_delay_keeps_server_message(place: Place) -> None:
    with place.visited("ana") as ana:
        page = ana.page
        ana.go("subscriptions/new")
        page.get_by_label("Text", exact=True).fill("price < 200")
        page.get_by_label("Batch notifications").fill("soon")
        with page.expect_response(
            lambda answer: answer.request.method == "POST" and "/console/" in answer.url
        ):
            page.get_by_role("button", name="Subscribe", exact=True).click()
        expect(page.locator("#verdict")).to_contain_text("1 predicate, reached through price")
        expect(page.locator("#previewed")).to_contain_text("would have matched")
        expect(page.get_by_role("alert")).to_contain_text("soon")
        expect(page.get_by_label("Batch notifications")).to_have_attribute("aria-invalid", "true")
        assert page.get_by_label("Text", exact=True).get_attribute("aria-invalid") is None
        assert ana.violations() == ""
        page.get_by_label("Text", exact=True).fill("price < 100")
        expect(page.locator("#verdict")).to_contain_text("1 predicate, reached through price")
        expect(page.get_by_role("alert")).to_contain_text("soon")


def test_subscription_edit_with_invalid_delay_keeps_server_message(place: Place) -> None:
    with place.visited("ana") as ana:
        ana.go(f"subscriptions/{place.table}/edit")
        ana.page.get_by_label("Batch notifications").fill("soon")
        ana.page.get_by_role("button", name="Save", exact=True).click()
        expect(ana.page.get_by_role("alert")).to_contain_text("soon")
        expect(ana.page.locator("#verdict")).to_contain_text("reached through")
        expect(ana.page.get_by_role("alert")).to_contain_text("soon")


def test_subscription_form_with_invalid_text_keeps_server_message_until_edit(place: Place) -> None:
    with place.visited("ana") as ana:
        page, requests = ana.page, list[str]()
        ana.go("subscriptions/new")
        page.get_by_label("Text", exact=True).fill("prise < 200")
        expect(page.locator("#verdict")).to_contain_text("'prise'")
        page.on("request", lambda request: requests.append(request.url))
        page.get_by_role("button", name="Subscribe", exact=True).click()
        expect(page.get_by_role("alert")).to_contain_text("'prise'")
        page.wait_for_load_state("networkidle")
        assert not [url for url in requests if url.endswith("/v1/check")]
        page.get_by_label("Text", exact=True).fill("price < 200")
        expect(page.locator("#verdict")).to_contain_text("1 predicate, reached through price")
        expect(page.get_by_role("alert")).to_have_count(0)


def test_subscription_form_with_invalid_subscriber_keeps_server_message(place: Place) -> None:
    """It is about neither field, so no edit clears it."""
    with place.visited("root") as root:
        page = root.page
        root.go("subscriptions/new")
        page.get_by_label("Subscriber").fill("x" * 501)
        page.get_by_label("Text", exact=True).fill("price < 200")
        page.get_by_role("button", name="Subscribe", exact=True).click()
        expect(page.get_by_role("alert")).to_contain_text("1 to 500 characters")
        expect(page.locator("#verdict")).to_contain_text("1 predicate, reached through price")
        expect(page.get_by_role("alert")).to_contain_text("1 to 500 characters")


def test_administrator_subscribes_for_subscriber(place: Place) -> None:
    with place.visited("root") as root:
        root.go("subscriptions/new")
        root.page.get_by_label("Subscriber").fill("ana")
        root.page.get_by_label("Text", exact=True).fill("price < 200")
        expect(root.page.locator("#verdict")).to_contain_text("1 predicate, reached through price")
        expect(root.page.locator("#previewed li .what").first).to_contain_text("< 200")


def test_notifications_page_shows_every_notification_of_burst(place: Place) -> None:
    with place.visited("ana") as ana:
        expect(ana.page.locator("#live")).to_contain_text("live")
        before = int(ana.page.locator("#last").inner_text())
        for price in range(1, 8):
            publish_and_notify(place.tidings, place.table, place.next_batch(), price=price)
        expect(ana.page.locator("#last")).to_have_text(str(before + 7))
        numbers = ana.page.locator(".tiding .number").all_inner_texts()[:8]
        assert numbers == [f"#{before + 7 - at}" for at in range(8)]


def test_dead_letter_is_corrected_and_published(place: Place) -> None:
    """Unchanged, it is rejected again; corrected, it is published."""
    with place.visited("root") as root:
        page = root.page
        page.get_by_role("link", name="Dead letters").click()
        letter = page.get_by_role("article").filter(has_text="price is no number")
        letter.get_by_role("button", name="Publish again").click()
        expect(page.get_by_role("alert")).to_be_visible()
        text = page.get_by_label("What to publish")
        expect(text).to_have_value('{"price": "a lot"}')
        text.fill(json.dumps(TABLE))
        page.get_by_role("button", name="Publish").click()
        expect(page.get_by_role("status").first).to_contain_text("Published at position")


def test_dead_letters_of_destination_are_replayed(place: Place) -> None:
    rules = DeliveryPolicy(retry_delays=(), inside=True)
    with a_site() as site, create_delivery_worker(place.tidings.store, rules), place.visited("ana") as ana:
        site.pages["/hook"] = Response(500, b"never")
        hook = open_destinations(place.tidings.store, rules).add(
            "ana", "webhook", site.url("/hook"), name="hook"
        )
        publish_and_notify(place.tidings, place.table, place.next_batch(), price=42)
        site.wait_for(1)
        page = ana.page
        page.get_by_role("link", name="Destinations").click()
        page.get_by_role("link", name="hook").click()
        while not page.get_by_role("button", name="Replay all").count():
            page.reload()  # the dead letter is written after the answer has arrived
        site.pages["/hook"] = Response(204)
        page.get_by_role("button", name="Replay dead letter").click()
        expect(page.get_by_role("status")).to_contain_text("delivered again")
        assert len(site.wait_for(2)) == 2
        while not page.get_by_text("None: everything was delivered").count():
            page.reload()
        assert place.tidings.store.dead_deliveries.count(hook.id) == 0


def test_publish_page_accepts_chosen_and_dropped_files(place: Place) -> None:
    with place.visited("ana") as ana:
        ana.go("publish")
        ana.page.get_by_label("Or choose a file").set_input_files(EXAMPLES / "page.ttl")
        expect(ana.page.get_by_label("Kind")).to_have_value("text/turtle")
        dropped = (
            "data => { const t = new DataTransfer(); t.items.add(new File([data], 'quote.xml')); return t }"
        )
        transfer = ana.page.evaluate_handle(dropped, "<stock><price>9</price></stock>")
        ana.page.dispatch_event("#drop", "drop", {"dataTransfer": transfer})
        expect(ana.page.get_by_label("Kind")).to_have_value("application/xml")
        ana.page.get_by_role("button", name="Publish").click()
        expect(ana.page.get_by_role("status").first).to_contain_text("application/xml")


def test_pipeline_charts_update_live(place: Place) -> None:
    with place.visited("root") as root:
        root.go("pipeline")
        lag = root.page.get_by_role("img", name="Lag")
        expect(lag).to_be_visible()
        place.tidings.store.time_series.add({"publications": 500, "lag": 42, "batch_seconds": 0.5})
        now = read_pipeline(
            place.tidings.store, timedelta(minutes=1), 1
        ).now.lag  # the point may be in the past
        expect(lag).to_have_attribute("aria-label", f"Lag: now {now} publications, most 42 publications")
        expect(lag.locator("polyline")).to_have_count(1)
        chart = root.page.locator(".chart", has=lag)
        expect(chart.locator(".most")).to_have_text("most 42 publications")
        begin, end = (chart.locator(f".axis .{side}").inner_text() for side in ("from", "to"))
        assert begin and end and begin != end


def test_console_is_usable_by_keyboard(place: Place) -> None:
    with place.visited() as ana:
        page, press = ana.page, ana.page.keyboard.press
        ana.go("login")
        page.keyboard.type(place.secrets["ana"])  # the field has the focus
        press("Enter")
        expect(page.get_by_role("heading", level=1)).to_contain_text("Notifications")
        press("Tab")
        expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
        press("Enter")
        expect(page.get_by_role("main")).to_be_focused()
        press("Tab")
        if page.get_by_role("button", name="Mark all as read").evaluate("e => e === document.activeElement"):
            press("Tab")
        expect(page.locator(".tiding summary").first).to_be_focused()
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
        press("Enter")
        expect(page.locator(".tiding").first.get_by_role("heading", name="Publication")).to_be_visible()


def test_console_is_usable_without_scripts(place: Place) -> None:
    with place.visited("ana", java_script_enabled=False) as ana:
        page = ana.page
        page.get_by_role("link", name="Subscriptions").click()
        page.get_by_role("link", name="New subscription").click()
        page.get_by_label("Text", exact=True).fill("prise < 200")
        page.get_by_role("button", name="Check").click()
        expect(page.get_by_role("alert")).to_contain_text("No event type has an attribute 'prise'")
        expect(page.get_by_role("alert").locator("mark")).to_have_text("prise")
        page.get_by_label("Text", exact=True).fill("price < 200")
        page.get_by_role("button", name="Subscribe", exact=True).click()
        expect(page.get_by_role("status")).to_contain_text("Subscribed")
        page.get_by_role("button", name="Delete").click()
        expect(page.get_by_role("status")).to_contain_text("Deleted")
        page.get_by_role("link", name="Notifications").click()
        page.locator(".tiding summary").first.click()
        page.get_by_role("link", name="with its publication").first.click()
        expect(page.get_by_role("heading", name="Because")).to_be_visible()

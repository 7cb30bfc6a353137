"""End to end, with nothing written by a test: `tidings serve`, a browser, and a stream on Spark between them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.people import WAIT, Place
from tests.support.processes.command_line import start_anew
from tidings.service.tidings import Tidings


@pytest.mark.long
@pytest.mark.spark
def test_console_shows_notification_of_published_event(browser: Browser, tmp_path: Path) -> None:
    process = start_anew("serve", "--port", "0", "--master", "local[2]", cwd=tmp_path)
    try:
        assert process.stdout
        [address] = re.findall(r"http://\S+", process.stdout.readline())
        secret = (tmp_path / ".tidings" / "administrator.token").read_text().strip()
        with Tidings(tmp_path / ".tidings") as tidings:
            walk(Place(tidings, browser, address, ""), secret)
    finally:
        process.terminate()
        process.communicate(timeout=120)


def walk(place: Place, secret: str) -> None:
    with place.visited() as root:
        page = root.page
        root.log_in(secret)
        page.get_by_role("link", name="Subscriptions").click()
        page.get_by_role("link", name="New subscription").click()
        page.get_by_label("Subscriber").fill("ana")
        page.get_by_role("link", name="Compare a value").click()
        page.get_by_role("button", name="Subscribe", exact=True).click()
        expect(page.get_by_role("status")).to_contain_text("Subscribed")
        root.go("notifications?subscriber=ana")
        expect(page.locator("#live")).to_contain_text("live")
        with place.visited() as shop:
            shop.log_in(secret)
            shop.go("publish")
            shop.page.get_by_label("What to publish").fill(json.dumps({"price": 180}))
            shop.page.get_by_role("button", name="Publish").click()
            expect(shop.page.get_by_role("status").first).to_contain_text("at position 1")
        expect(page.locator(".tiding").first).to_contain_text("price 180 < 200", timeout=4 * WAIT)
        root.go("pipeline")
        expect(page.locator("#runs")).to_contain_text("stream running", timeout=2 * WAIT)

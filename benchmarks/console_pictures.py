"""Screenshots of the console for the docs, taken from a running service: make pictures

`tidings serve` runs with its stream on Spark, the demo's auctions are published for a quarter of an hour, and the
system's Chromium opens the pages. No content is added by hand.
"""

from __future__ import annotations

import argparse
import io
import json
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, expect, sync_playwright

from benchmarks.console_scene import SEED, Scene, auctions, serving
from tests.browser.people import ARGUMENTS, PHONE, WAIT
from tidings.client import Client
from tidings.service import sample_auctions

IMAGES = Path(__file__).parents[1] / "docs" / "img"
WINDOW = {"width": 1100, "height": 760}
WIDE = {"width": 1360, "height": 860}
MINUTES = 15.0
SCALE = 1.5
COLOURS = 128
GAP = 24
LIVE = 4
"""Notifications that arrive while ana views the page."""
MISTYPED = "furniture_category is a 'dinning room' and price < 200"
VALID = sample_auctions.SUBSCRIPTIONS[0].text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--minutes", type=float, default=MINUTES, help="duration of the auctions before the first screenshot"
    )
    parser.add_argument("--folder", type=Path, default=IMAGES, help="folder for the pictures")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as home, serving(Path(home)) as scene:
        with auctions(scene):
            time.sleep(given.minutes * 60)
            take(scene, given.folder, BUSY)
        take(scene, given.folder, QUIET)


def take(scene: Scene, folder: Path, pictures: dict[str, Screenshot]) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=ARGUMENTS)
        for name, take_screenshot in pictures.items():
            save(take_screenshot(scene, browser), folder / f"{name}.png")
        browser.close()


def save(picture: Image.Image, path: Path) -> None:
    """Save with a reduced palette, which takes a third of the bytes."""
    small = picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    small.save(path, optimize=True)
    print(f"{path.name}: {small.width} x {small.height}, {path.stat().st_size / 1000:.0f} KB", flush=True)


@contextmanager
def open_page(scene: Scene, browser: Browser, token: str, path: str, **options: object) -> Iterator[Page]:
    """Open a page with a token, without animations, which a screenshot could catch halfway."""
    context = browser.new_context(
        **{"viewport": WINDOW, "device_scale_factor": SCALE, "reduced_motion": "reduce", "locale": "en-GB"}
        | options
    )
    context.set_default_timeout(WAIT)
    page = context.new_page()
    page.goto(f"{scene.address}/console/login")
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Log in").click()
    page.locator("form.leave").wait_for(state="attached")
    page.goto(f"{scene.address}/console/{path}")
    yield page
    context.close()


def picture_of(page: Page, **options: bool) -> Image.Image:
    return Image.open(io.BytesIO(page.screenshot(**options)))


def notifications(scene: Scene, browser: Browser) -> Image.Image:
    """Show read notifications, a few new ones, and one that is opened."""
    with open_page(scene, browser, scene.ana, "notifications") as page:
        arrive(scene, page)
        opened = page.locator(".tiding").nth(1)
        opened.locator("summary").click()
        expect(opened.locator("pre mark").first).to_be_visible()
        page.mouse.move(0, 0)
        return picture_of(page)


def arrive(scene: Scene, page: Page) -> None:
    """Publish items that match a subscription of ana's, one after the other."""
    mark_as_read(page)
    matching = (item for item in sample_auctions.items(SEED) if matches_ana(item))
    with Client(scene.address, scene.root) as client:
        for count, item in enumerate(islice(matching, LIVE), start=1):
            client.publish(json.dumps(item))
            expect(page.locator("#unread")).to_have_text(str(count))


def mark_as_read(page: Page) -> None:
    page.get_by_role("button", name="Mark all as read").click()
    expect(page.locator(".tiding:not(.unread)").first).to_be_visible()
    expect(page.locator("#live")).to_contain_text("live")


def matches_ana(item: sample_auctions.Item) -> bool:
    return item["price"] < 200 and "table" in item.get("furniture_category", "")


def pipeline(scene: Scene, browser: Browser, **options: object) -> Image.Image:
    """Show the charts in dark mode."""
    options = {"color_scheme": "dark", "viewport": WINDOW | {"height": 1000}} | options
    with open_page(scene, browser, scene.root, "pipeline?minutes=15", **options) as page:
        expect(page.locator("#live")).to_contain_text("live")
        return picture_of(page)


def mistyped(scene: Scene, browser: Browser, **options: object) -> Image.Image:
    """Show a subscription with an error, underlined."""
    return fill_editor(scene, browser, MISTYPED, ".mirror mark", **options)


def preview(scene: Scene, browser: Browser, **options: object) -> Image.Image:
    """Show a valid subscription, and what it would have matched."""
    return fill_editor(scene, browser, VALID, ".preview li", **options)


def fill_editor(scene: Scene, browser: Browser, text: str, shown: str, **options: object) -> Image.Image:
    with open_page(scene, browser, scene.ana, "subscriptions/new", **options) as page:
        page.get_by_label("Text", exact=True).fill(text)
        expect(page.locator(shown).first).to_be_visible()
        return picture_of(page)


def rules(scene: Scene, browser: Browser) -> Image.Image:
    with open_page(scene, browser, scene.ana, "browse/rules", viewport=WIDE) as page:
        return picture_of(page)


def model(scene: Scene, browser: Browser) -> Image.Image:
    with open_page(scene, browser, scene.ana, "browse/model") as page:
        return picture_of(page)


def phones(scene: Scene, browser: Browser) -> Image.Image:
    """Show three pages on a phone, side by side."""
    phone = {"viewport": PHONE, "has_touch": True}
    with open_page(scene, browser, scene.ana, "notifications", **phone) as page:
        mark_as_read(page)
        expect(page.locator(".tiding.unread").first).to_be_visible()
        shown = picture_of(page)
    dark = phone | {"color_scheme": "dark"}
    return beside(shown, mistyped(scene, browser, **phone), pipeline(scene, browser, **dark))


def beside(*pictures: Image.Image) -> Image.Image:
    gap = int(GAP * SCALE)
    whole = Image.new(
        "RGB", (sum(picture.width + gap for picture in pictures) - gap, pictures[0].height), "white"
    )
    at = 0
    for picture in pictures:
        whole.paste(picture, (at, 0))
        at += picture.width + gap
    return whole


Screenshot = Callable[[Scene, Browser], Image.Image]
BUSY: dict[str, Screenshot] = {"console-dark": pipeline, "console-phone": phones}
"""Screenshots during the auctions."""
QUIET: dict[str, Screenshot] = {
    "console-light": notifications,
    "console-mistyped": mistyped,
    "console-preview": preview,
    "console-rules": rules,
    "console-model": model,
}
"""Screenshots after the auctions, when only the items in the picture are published."""

if __name__ == "__main__":
    main()

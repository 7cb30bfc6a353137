"""The pictures of the console in the docs, taken of the service at work: make pictures

`tidings serve` runs with its stream on Spark, the demo's auctions are published for a quarter of an hour, and the
system's Chromium looks at the pages. Nothing in them is put in by hand.
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

from benchmarks.console_scene import SEED, Scene, auctioning, serving
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
"""How many notifications arrive while ana looks at them."""
MISTYPED = "furniture_category is a 'dinning room' and price < 200"
WISH = sample_auctions.SUBSCRIPTIONS[0].text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=MINUTES, help="how long auctions go on before")
    parser.add_argument("--folder", type=Path, default=IMAGES, help="where the pictures are put")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as home, serving(Path(home)) as scene:
        with auctioning(scene):
            time.sleep(given.minutes * 60)
            take(scene, given.folder, BUSY)
        take(scene, given.folder, QUIET)


def take(scene: Scene, folder: Path, pictures: dict[str, Shooting]) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=ARGUMENTS)
        for name, shoot in pictures.items():
            save(shoot(scene, browser), folder / f"{name}.png")
        browser.close()


def save(picture: Image.Image, path: Path) -> None:
    """With as many colours as a page has: a third of the bytes."""
    small = picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    small.save(path, optimize=True)
    print(f"{path.name}: {small.width} x {small.height}, {path.stat().st_size / 1000:.0f} KB", flush=True)


@contextmanager
def looking(scene: Scene, browser: Browser, token: str, path: str, **how: object) -> Iterator[Page]:
    """A page, as somebody with a token sees it; small movements are left out, so that none is caught half done."""
    context = browser.new_context(
        **{"viewport": WINDOW, "device_scale_factor": SCALE, "reduced_motion": "reduce", "locale": "en-GB"}
        | how
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


def picture_of(page: Page, **how: bool) -> Image.Image:
    return Image.open(io.BytesIO(page.screenshot(**how)))


def notifications(scene: Scene, browser: Browser) -> Image.Image:
    """What was there is read; a few arrive while somebody looks, and one is opened."""
    with looking(scene, browser, scene.ana, "notifications") as page:
        arrive(scene, page)
        opened = page.locator(".tiding").nth(1)
        opened.locator("summary").click()
        expect(opened.locator("pre mark").first).to_be_visible()
        page.mouse.move(0, 0)
        return picture_of(page)


def arrive(scene: Scene, page: Page) -> None:
    """Items that ana asked for, one after the other."""
    mark_as_read(page)
    asked_for = (item for item in sample_auctions.items(SEED) if is_anas(item))
    with Client(scene.address, scene.root) as client:
        for count, item in enumerate(islice(asked_for, LIVE), start=1):
            client.publish(json.dumps(item))
            expect(page.locator("#unread")).to_have_text(str(count))


def mark_as_read(page: Page) -> None:
    page.get_by_role("button", name="Mark all as read").click()
    expect(page.locator(".tiding:not(.unread)").first).to_be_visible()
    expect(page.locator("#live")).to_contain_text("live")


def is_anas(item: sample_auctions.Item) -> bool:
    return item["price"] < 200 and "table" in item.get("furniture_category", "")


def pipeline(scene: Scene, browser: Browser, **how: object) -> Image.Image:
    """The charts, in the dark."""
    how = {"color_scheme": "dark", "viewport": WINDOW | {"height": 1000}} | how
    with looking(scene, browser, scene.root, "pipeline?minutes=15", **how) as page:
        expect(page.locator("#live")).to_contain_text("live")
        return picture_of(page)


def mistyped(scene: Scene, browser: Browser, **how: object) -> Image.Image:
    """A subscription with an error in it, underlined."""
    return writing(scene, browser, MISTYPED, ".mirror mark", **how)


def foreseen(scene: Scene, browser: Browser, **how: object) -> Image.Image:
    """A subscription that is right, and what it would have matched."""
    return writing(scene, browser, WISH, ".preview li", **how)


def writing(scene: Scene, browser: Browser, text: str, shown: str, **how: object) -> Image.Image:
    with looking(scene, browser, scene.ana, "subscriptions/new", **how) as page:
        page.get_by_label("Text", exact=True).fill(text)
        expect(page.locator(shown).first).to_be_visible()
        return picture_of(page)


def rules(scene: Scene, browser: Browser) -> Image.Image:
    with looking(scene, browser, scene.ana, "browse/rules", viewport=WIDE) as page:
        return picture_of(page)


def model(scene: Scene, browser: Browser) -> Image.Image:
    with looking(scene, browser, scene.ana, "browse/model") as page:
        return picture_of(page)


def phones(scene: Scene, browser: Browser) -> Image.Image:
    """Three pages on a phone, side by side."""
    phone = {"viewport": PHONE, "has_touch": True}
    with looking(scene, browser, scene.ana, "notifications", **phone) as page:
        mark_as_read(page)
        expect(page.locator(".tiding.unread").first).to_be_visible()
        shown = picture_of(page)
    dark = phone | {"color_scheme": "dark"}
    return beside(shown, mistyped(scene, browser, **phone), pipeline(scene, browser, **dark))


def beside(*pictures: Image.Image) -> Image.Image:
    gap = int(GAP * SCALE)
    whole = Image.new("RGB", (sum(one.width + gap for one in pictures) - gap, pictures[0].height), "white")
    at = 0
    for one in pictures:
        whole.paste(one, (at, 0))
        at += one.width + gap
    return whole


Shooting = Callable[[Scene, Browser], Image.Image]
BUSY: dict[str, Shooting] = {"console-dark": pipeline, "console-phone": phones}
"""What is taken while auctions are held."""
QUIET: dict[str, Shooting] = {
    "console-light": notifications,
    "console-mistyped": mistyped,
    "console-preview": foreseen,
    "console-rules": rules,
    "console-model": model,
}
"""What is taken afterwards, when only what the picture shows is published."""

if __name__ == "__main__":
    main()

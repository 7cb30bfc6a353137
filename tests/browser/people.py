"""People in front of a browser, and what the browser says about the pages that it shows them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect

from tidings.service.authorization import Access, Scope
from tidings.service.tidings import Tidings

ARGUMENTS = ["--headless=new", "--no-sandbox", "--disable-background-networking"]
WAIT = 30_000
"""Milliseconds in which something has to come; whoever waits goes on as soon as it is there."""

expect.set_options(timeout=WAIT)

DESKTOP, PHONE = {"width": 1200, "height": 800}, {"width": 360, "height": 740}


@dataclass
class Person:
    """Somebody in front of a page."""

    place: Place
    page: Page
    wrong: list[str]
    """What the browser refused, what failed in a script, and what was asked of another host."""

    def log_in(self, secret: str) -> None:
        self.page.goto(f"{self.place.address}/")
        self.page.get_by_label("Token").fill(secret)
        self.page.get_by_role("button", name="Log in").click()
        self.page.locator("form.leave").wait_for(state="attached")

    def go(self, path: str) -> None:
        self.page.goto(f"{self.place.address}/console/{path}")

    def violations(self, contrast_only: bool = False) -> str:
        """What axe finds wrong with the page, in words; nothing is best."""
        only = {"runOnly": ["color-contrast"]} if contrast_only else None
        found = Axe().run(self.page, options=only)
        return found.generate_report() if found.violations_count else ""

    def squeezed(self) -> list[str]:
        """What stands in cells of tables that are too narrow for it: in several lines of a few characters."""
        found: list[str] = self.page.evaluate("""() => [...document.querySelectorAll("main :is(th, td)")]
            .filter((cell) => cell.getClientRects().length > 0)
            .filter((cell) => {
                const range = document.createRange();
                range.selectNodeContents(cell);
                const line = parseFloat(getComputedStyle(cell).lineHeight);
                const lines = Math.round(range.getBoundingClientRect().height / line);
                return lines > 2 && cell.textContent.trim().length / lines < 12;
            })
            .map((cell) => cell.textContent.trim())""")
        return found

    def unshaded(self) -> list[str]:
        """What goes on sideways, and nothing shows that it does."""
        found: list[str] = self.page.evaluate("""() => [...document.querySelectorAll("main *")]
            .filter((one) => one.scrollWidth > one.clientWidth && getComputedStyle(one).overflowX === "auto")
            .filter((one) => !getComputedStyle(one).backgroundImage.includes("gradient"))
            .map((one) => one.getAttribute("aria-label") ?? one.tagName)""")
        return found

    def overflows(self) -> bool:
        """Whether the page is wider than the window: it should not move sideways."""
        return bool(self.page.evaluate("document.documentElement.scrollWidth > window.innerWidth"))


@dataclass
class Place:
    """A service, and tokens for whoever comes."""

    tidings: Tidings
    browser: Browser
    address: str
    table: str
    """The id of ana's subscription to tables."""
    batches: int = field(default=100)

    @cached_property
    def secrets(self) -> dict[str, str]:
        access = Access(self.tidings.store)
        return {
            "ana": access.make("ana's laptop", [Scope.SUBSCRIBE, Scope.PUBLISH], "ana").secret,
            "root": access.make("administrator", [Scope.ADMINISTER]).secret,
        }

    def next_batch(self) -> int:
        self.batches += 1
        return self.batches

    @contextmanager
    def visited(self, who: str | None = None, **how: Any) -> Iterator[Person]:
        """Somebody who visits, and leaves without anything having gone wrong."""
        context: BrowserContext = self.browser.new_context(**({"viewport": DESKTOP} | how))
        context.set_default_timeout(WAIT)
        person = Person(self, context.new_page(), [])
        self._listen(person, context)
        try:
            if who is not None:
                person.log_in(self.secrets[who])
            yield person
            assert person.wrong == []
        finally:
            context.close()

    def _listen(self, person: Person, context: BrowserContext) -> None:
        def said(message: ConsoleMessage) -> None:
            if "Content Security Policy" in message.text or "violates" in message.text:
                person.wrong.append(message.text)

        def asked(url: str) -> None:
            if not url.startswith((f"{self.address}/", "data:")):
                person.wrong.append(f"asked for {url}")

        person.page.on("console", said)
        person.page.on("pageerror", lambda error: person.wrong.append(str(error)))
        context.on("request", lambda request: asked(request.url))

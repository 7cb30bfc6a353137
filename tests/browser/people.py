"""Visitors with a browser, and what the browser reports about the pages."""

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
"""Milliseconds to wait for an element at most."""

expect.set_options(timeout=WAIT)

DESKTOP, PHONE = {"width": 1200, "height": 800}, {"width": 360, "height": 740}


@dataclass
class Person:
    """A visitor with a page open."""

    place: Place
    page: Page
    wrong: list[str]
    """Policy violations, script errors and requests to other hosts."""

    def log_in(self, secret: str) -> None:
        self.page.goto(f"{self.place.address}/")
        self.page.get_by_label("Token").fill(secret)
        self.page.get_by_role("button", name="Log in").click()
        self.page.locator("form.leave").wait_for(state="attached")

    def go(self, path: str) -> None:
        self.page.goto(f"{self.place.address}/console/{path}")

    def violations(self, contrast_only: bool = False) -> str:
        """Return the report of axe about the page, or nothing."""
        only = {"runOnly": ["color-contrast"]} if contrast_only else None
        results = Axe().run(self.page, options=only)
        return results.generate_report() if results.violations_count else ""

    def squeezed(self) -> list[str]:
        """Return the content of table cells that are too narrow for it: several lines of a few characters."""
        cells: list[str] = self.page.evaluate("""() => [...document.querySelectorAll("main :is(th, td)")]
            .filter((cell) => cell.getClientRects().length > 0)
            .filter((cell) => {
                const range = document.createRange();
                range.selectNodeContents(cell);
                const line = parseFloat(getComputedStyle(cell).lineHeight);
                const lines = Math.round(range.getBoundingClientRect().height / line);
                return lines > 2 && cell.textContent.trim().length / lines < 12;
            })
            .map((cell) => cell.textContent.trim())""")
        return cells

    def unshaded(self) -> list[str]:
        """Return the elements that scroll sideways without a gradient that shows it."""
        elements: list[str] = self.page.evaluate("""() => [...document.querySelectorAll("main *")]
            .filter((one) => one.scrollWidth > one.clientWidth && getComputedStyle(one).overflowX === "auto")
            .filter((one) => !getComputedStyle(one).backgroundImage.includes("gradient"))
            .map((one) => one.getAttribute("aria-label") ?? one.tagName)""")
        return elements

    def overflows(self) -> bool:
        """Whether the page is wider than the window, and so scrolls sideways."""
        return bool(self.page.evaluate("document.documentElement.scrollWidth > window.innerWidth"))


@dataclass
class Place:
    """A service, and tokens for its visitors."""

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
    def visited(self, name: str | None = None, **options: Any) -> Iterator[Person]:
        """Yield a visitor, and check at the end that nothing went wrong."""
        context: BrowserContext = self.browser.new_context(**({"viewport": DESKTOP} | options))
        context.set_default_timeout(WAIT)
        person = Person(self, context.new_page(), [])
        self._listen(person, context)
        try:
            if name is not None:
                person.log_in(self.secrets[name])
            yield person
            assert person.wrong == []
        finally:
            context.close()

    def _listen(self, person: Person, context: BrowserContext) -> None:
        def on_console(message: ConsoleMessage) -> None:
            if "Content Security Policy" in message.text or "violates" in message.text:
                person.wrong.append(message.text)

        def on_request(url: str) -> None:
            if not url.startswith((f"{self.address}/", "data:")):
                person.wrong.append(f"request to {url}")

        person.page.on("console", on_console)
        person.page.on("pageerror", lambda error: person.wrong.append(str(error)))
        context.on("request", lambda request: on_request(request.url))

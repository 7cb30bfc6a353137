"""A real Chromium, and a real service on loopback for it to visit."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from threading import Thread

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.browser.people import ARGUMENTS, Place
from tests.browser.sample_home import fill
from tidings.api.app import create_app
from tidings.api.server import create_server, listen
from tidings.feeds.hub.hub import Hub, HubPolicy
from tidings.operations.settings import ServicePart
from tidings.service.context import ServiceContext
from tidings.service.tidings import Tidings

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run all tests with the browser in one xdist group, so that workers share it."""
    for item in items:
        if "/tests/browser/" in str(item.path) and not item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.xdist_group("browser"))


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of the system's browser."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip("no Chromium here: apt-get install chromium")
    return path


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Browser]:
    """Playwright runs an event loop, so no other can run in this thread meanwhile."""
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[Place]:
    """A service with sample data. Tests write what a stream would write: Spark takes long to start."""
    with Tidings(tmp_path_factory.mktemp("home")) as tidings, listen("127.0.0.1", 0) as listening:
        address = f"http://127.0.0.1:{listening.getsockname()[1]}"
        hub = Hub(tidings.feeds_at(address), HubPolicy(inside=True))
        table = fill(tidings)
        server = create_server(create_app(ServiceContext(tidings, hub, parts=frozenset({ServicePart.API}))))
        thread = Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield Place(tidings, browser, address, table)
        finally:
            server.should_exit = True
            thread.join()

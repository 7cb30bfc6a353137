"""One console for all tests of this folder, whose data does not interfere."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.browser.sample_home import fill
from tests.console.place import Clock, Place
from tests.support.processes.console_visitor import console
from tidings.api.rate_limiter import RateLimiter
from tidings.console.tokens import FAILURES
from tidings.service.tidings import Tidings


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    clock = Clock()
    with (
        Tidings(tmp_path_factory.mktemp("home")) as tidings,
        console(tidings, attempts=RateLimiter(FAILURES, FAILURES, clock=clock)) as address,
    ):
        yield Place(tidings, address, fill(tidings), clock)

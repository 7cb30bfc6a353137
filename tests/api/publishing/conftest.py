"""The API on a real server, with small limits."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.servers.api_server import Service, served_api
from tidings.api.limits import Limits
from tidings.service.tidings import Tidings


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    limits = Limits(body=200_000, uploads=1_000_000, bulk=50)
    with Tidings(tmp_path_factory.mktemp("home")) as tidings, served_api(tidings, limits) as running:
        yield running

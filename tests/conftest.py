"""What all tests share: how Hypothesis generates, and an environment without somebody's own settings."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import httpx._transports.default
import pytest
import typer.testing
from hypothesis import HealthCheck, settings
from pyspark.sql import SparkSession

from tests.support.guesses import Guesses, counted
from tests.support.packages import Unavailable
from tests.support.processes.terminal import Terminal
from tests.support.servers.kafka_broker import Broker, find_java, running_broker
from tests.support.servers.postgres import Server, find_binaries, running_server
from tests.support.stores.ready_stores import Places, migrated_anew, open_ready
from tidings.spark.session import open_session
from tidings.store import store

# The first example of a test may compile a kernel or start Spark: how long one takes says nothing.
_COMMON = {
    "deadline": None,
    "derandomize": False,  # each run looks elsewhere; a failure prints how to see it again
    "print_blob": True,
    "suppress_health_check": [HealthCheck.too_slow],
}
settings.register_profile("test", max_examples=12, **_COMMON)
settings.register_profile("quick", max_examples=3, **_COMMON)
settings.register_profile("fuzz", max_examples=5_000, **_COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "test"))


# A process has its commands made once. The runner of tests would make them for each call, a tenth of a second long.
typer.testing._get_command = cache(typer.testing._get_command)

# Each client of httpx reads the certificates of all authorities, a twentieth of a second long; tests ask this machine.
httpx._transports.default.create_ssl_context = cache(httpx._transports.default.create_ssl_context)

# A new store begins with fifty tables: 33 ms on SQLite, 146 ms on PostgreSQL, as a copy 5 and 30.
store.open_database = open_ready


KEPT = ("TIDINGS_BENCH_CACHE",)
"""Variables that say where large files are: no settings."""

OWN = {
    "test_masters.py": "masters",
    "test_service_parts.py": "parts",
    "test_stream_commands.py": "terminal",
    "test_serve.py": "terminal",
    "test_store.py": "terminal",
    "test_service_faults.py": "kills",
    "benchmarks": "benchmarks",
}
"""Files and folders whose tests do not use the session of the others: which group they are in instead."""

QUICK = {
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
}
"""A test has a few rows and plans of its own: to compile Java for each of their projections, and to plan anew after
each exchange, is most of the work. Commands of the docs run with what everybody has.
"""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With several workers, tests that share a Spark session stay together; those that start their own, too.

    Before pytest-xdist looks at groups: it would not see them, and each worker had a session of its own.
    """
    for item in items:
        if "session" in item.fixturenames:  # type: ignore[attr-defined]
            item.add_marker("spark")
        if item.get_closest_marker("spark"):
            own = OWN.get(item.path.name) or OWN.get(item.path.parent.name)
            item.add_marker(pytest.mark.xdist_group(own or "session"))


# Nothing that is imported and collected is garbage, and each worker would walk through all of it again and again.
gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def pytest_unconfigure() -> None:
    gc.unfreeze()


@pytest.fixture(scope="session")
def session_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file that the JVM of `session` logs to."""
    return tmp_path_factory.mktemp("spark") / "spark.log"


@pytest.fixture(scope="session")
def session(session_log: Path) -> Iterator[SparkSession]:
    """Two cores, so that tasks really run side by side; the catalogue is not used, so there is nothing to reset.

    Tests that need another master start a process of their own.
    """
    opened = open_session("local[2]", log=session_log, **QUICK)
    yield opened
    opened.stop()


@pytest.fixture(scope="session")
def terminal() -> Iterator[Terminal]:
    """Commands that start Spark share its process; tests that use it are of the group of this name."""
    opened = Terminal()
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    """A real one, for all tests that this process runs: to make one takes as long as fifty tests."""
    binaries = find_binaries()
    if binaries is None:
        pytest.skip("no PostgreSQL here: neither initdb on the PATH nor /usr/lib/postgresql/*/bin")
    with running_server(binaries) as server:
        yield server


@pytest.fixture(scope="session")
def postgres_places(postgres_server: Server) -> Iterator[Places]:
    """Where stores are on that server; who asks for new ones has them taken back when a test is over."""
    places = Places(postgres_server)
    yield places
    places.close()


@pytest.fixture
def stores_made_anew() -> Iterator[None]:
    """For tests of how a new store is made: by migrations, not as a copy."""
    with migrated_anew():
        yield


@pytest.fixture(scope="session")
def kafka_broker() -> Iterator[Broker]:
    """A real one, for all tests of the group `kafka`: to make one takes seconds."""
    try:
        java = find_java()
    except Unavailable as missing:
        pytest.skip(f"no Kafka here: {missing}")
    with running_broker(java) as broker:
        yield broker


@pytest.fixture
def guesses(monkeypatch: pytest.MonkeyPatch) -> Guesses:
    """How much is guessed from now on."""
    return counted(monkeypatch)


@pytest.fixture(autouse=True)
def no_settings_of_mine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests see the defaults, whatever the person who runs them has set."""
    others = ("SPARK_REMOTE", "SPARK_HOME", "OTEL_EXPORTER_OTLP_ENDPOINT")
    for name in [*(each for each in os.environ if each.startswith("TIDINGS_") and each not in KEPT), *others]:
        monkeypatch.delenv(name, raising=False)

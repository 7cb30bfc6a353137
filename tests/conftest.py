"""Shared fixtures, profiles of Hypothesis, and an environment without the developer's settings."""

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

from tests.support.guesses import Guesses, count_guesses
from tests.support.packages import Unavailable
from tests.support.processes.terminal import Terminal
from tests.support.servers.kafka_broker import Broker, find_java, running_broker
from tests.support.servers.postgres import Server, find_binaries, running_server
from tests.support.stores.ready_stores import ReadyStores, migrated_anew, open_ready
from tidings.spark.session import open_session
from tidings.store import store

# The first example of a test may compile a kernel or start Spark, so the duration of an example means nothing.
_COMMON = {
    "deadline": None,
    "derandomize": False,  # each run generates other examples; a failure prints how to reproduce it
    "print_blob": True,
    "suppress_health_check": [HealthCheck.too_slow],
}
settings.register_profile("test", max_examples=12, **_COMMON)
settings.register_profile("quick", max_examples=3, **_COMMON)
settings.register_profile("fuzz", max_examples=5_000, **_COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "test"))


# Build the command tree once in a process. The runner of typer builds it for each call, which takes 0.1 s.
typer.testing._get_command = cache(typer.testing._get_command)

# Each client of httpx reads all CA certificates, which takes 0.05 s; tests only send requests to this machine.
httpx._transports.default.create_ssl_context = cache(httpx._transports.default.create_ssl_context)

# A new store creates fifty tables: 33 ms on SQLite, 146 ms on PostgreSQL; a copy takes 5 and 30 ms.
store.open_database = open_ready


KEPT = ("TIDINGS_BENCH_CACHE",)
"""Variables with the folders of large files; they are not settings."""

GROUPS = {
    "test_masters.py": "masters",
    "test_service_parts.py": "parts",
    "test_stream_commands.py": "terminal",
    "test_serve.py": "terminal",
    "test_store.py": "terminal",
    "test_service_faults.py": "kills",
    "benchmarks": "benchmarks",
    **dict.fromkeys(("test_tables.py", "relational", "cdc", "faults"), "second-session"),
}
"""Groups of files and folders with Spark that do not belong to the group `session`.

Tests of `second-session` share another session of that kind: one after the other, all of them would take longer than
everything else.
"""

QUICK = {
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
}
"""A test has few rows and its own plans: compiling Java for each projection, and planning again after each exchange,
would be most of the work. Commands of the docs run with the defaults.
"""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep tests that share a Spark session in one worker, and those that start their own in others.

    This runs before pytest-xdist reads the groups. Otherwise each worker would start its own session.
    """
    for item in items:
        if "session" in item.fixturenames:  # type: ignore[attr-defined]
            item.add_marker("spark")
        if item.get_closest_marker("spark"):
            group = GROUPS.get(item.path.name) or GROUPS.get(item.path.parent.name)
            item.add_marker(pytest.mark.xdist_group(group or "session"))


# Imported and collected objects are no garbage; without this, each worker would scan all of them again and again.
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
    """A session with two cores, so that tasks run in parallel. Tests do not use the catalogue, so no reset is needed.

    Tests that need another master start their own process.
    """
    spark = open_session("local[2]", log=session_log, **QUICK)
    yield spark
    spark.stop()


@pytest.fixture(scope="session")
def terminal() -> Iterator[Terminal]:
    """A process that commands with Spark share; its tests are in the group `terminal`."""
    shared = Terminal()
    yield shared
    shared.close()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    """A real PostgreSQL server for all tests of this process: starting it takes as long as fifty tests."""
    binaries = find_binaries()
    if binaries is None:
        pytest.skip("no PostgreSQL here: neither initdb on the PATH nor /usr/lib/postgresql/*/bin")
    with running_server(binaries) as server:
        yield server


@pytest.fixture(scope="session")
def postgres_places(postgres_server: Server) -> Iterator[ReadyStores]:
    """Databases on that server; those that a test creates are released after it."""
    places = ReadyStores(postgres_server)
    yield places
    places.close()


@pytest.fixture
def migrated_stores() -> Iterator[None]:
    """Create stores by migrations, not as copies, for tests of creating stores."""
    with migrated_anew():
        yield


@pytest.fixture(scope="session")
def kafka_broker() -> Iterator[Broker]:
    """A real broker for all tests of the group `kafka`: starting it takes seconds."""
    try:
        java = find_java()
    except Unavailable as missing:
        pytest.skip(f"no Kafka here: {missing}")
    with running_broker(java) as broker:
        yield broker


@pytest.fixture
def guesses(monkeypatch: pytest.MonkeyPatch) -> Guesses:
    """Counts of the comparisons and explanations that errors cause from now on."""
    return count_guesses(monkeypatch)


@pytest.fixture(autouse=True)
def default_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove environment variables of the developer, so that tests see the defaults."""
    others = ("SPARK_REMOTE", "SPARK_HOME", "OTEL_EXPORTER_OTLP_ENDPOINT")
    own = (name for name in os.environ if name.startswith("TIDINGS_") and name not in KEPT)
    for name in [*own, *others]:
        monkeypatch.delenv(name, raising=False)

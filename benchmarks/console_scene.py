"""Demo service for screenshots: `tidings serve` with the demo's subscribers, and auctions published while it runs.

Nothing is written to its store directly once it runs. Everything in the console was published over HTTP, matched by the
stream on Spark, and measured there.
"""

from __future__ import annotations

import json
import math
import random
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event

import httpx

from tests.support.processes.command_line import EXAMPLES, listens_at, start_anew
from tidings.client import Client
from tidings.metadata.provider.provider import Provider
from tidings.objects.sql.object_store import ObjectSource
from tidings.service import sample_auctions
from tidings.service.authorization import Access, Scope
from tidings.service.tidings import Tidings

SEED = 7
METADATA = EXAMPLES / "metadata"
HOST = "http://pirates.uni-passau.de/host.rdf"
SUBSCRIPTIONS = (
    *sample_auctions.SUBSCRIPTIONS,
    sample_auctions.LATER_SUBSCRIPTION,
    sample_auctions.XPATH_SUBSCRIPTION,
    sample_auctions.FEED_SUBSCRIPTION,
)
RULES = {
    "large": "c.serverInformation.memory > 64",
    "fast": "c.serverInformation.memory > 64 and c.serverInformation.cpu > 500",
}
"""Their common atomic rules are drawn once."""
MEAN_RATE, SWING, WAVE_SECONDS = 9.0, 6.0, 330.0
"""Publications per second, varying in waves."""
START_SECONDS, STOP_SECONDS, POLL_SECONDS = 600.0, 120.0, 0.5


@dataclass(frozen=True)
class Scene:
    """Address of the service, and the tokens of its users."""

    address: str
    ana: str
    root: str


def set_up(home: Path) -> tuple[str, str]:
    """Fill a home folder with the demo's data; return the tokens of ana and an administrator."""
    with Tidings(home) as tidings:
        for name in (sample_auctions.FURNITURE, sample_auctions.CURIOSITIES):
            tidings.extend_schema(sample_auctions.schema_text(name))
        for subscription in SUBSCRIPTIONS:
            tidings.subscribe(subscription.subscriber, subscription.text, subscription.language)
        provider = Provider(tidings.store)
        provider.load_schema((METADATA / "schema.ttl").read_bytes(), "text/turtle")
        for id, rule in RULES.items():
            tidings.subscribe("ana", f"search CycleProvider c register c where {rule}", "rules", id=id)
        provider.register(HOST, (METADATA / "host.rdf").read_bytes(), "application/rdf+xml")
        model = EXAMPLES / "university" / "university.puml"
        tidings.store.object_sources.add(ObjectSource("university", str(model), "sqlite:///university.db"))
        make = Access(tidings.store).make
        ana = make("ana's laptop", [Scope.SUBSCRIBE, Scope.PUBLISH], "ana")
        return ana.secret, make("administrator", [Scope.ADMINISTER]).secret


@contextmanager
def serving(folder: Path, master: str = "local[2]", *more: str) -> Iterator[Scene]:
    """Run the service, from when it is ready until it has ended."""
    ana, root = set_up(folder / ".tidings")
    process = start_anew("serve", "--port", "0", "--master", master, *more, cwd=folder)
    try:
        scene = Scene(listens_at(process), ana, root)
        _await_ready(scene.address, process)
        yield scene
    finally:
        process.terminate()
        process.communicate(timeout=STOP_SECONDS)


def _await_ready(address: str, process: subprocess.Popen[str]) -> None:
    until = time.monotonic() + START_SECONDS
    while (response := httpx.get(f"{address}/readyz")).status_code != 200:
        if process.poll() is not None or time.monotonic() > until:
            raise RuntimeError(f"the service did not become ready: {response.text}")
        time.sleep(POLL_SECONDS)


@contextmanager
def auctions(scene: Scene) -> Iterator[None]:
    """Publish items, in waves, until the end of the `with`."""
    over = Event()
    with ThreadPoolExecutor(1) as thread:
        publisher = thread.submit(_auction, scene, over)
        try:
            yield
        finally:
            over.set()
        publisher.result()


def _auction(scene: Scene, over: Event) -> None:
    chance, items, began = random.Random(SEED), sample_auctions.items(SEED), time.monotonic()
    with Client(scene.address, scene.root) as client:
        while not over.wait(chance.expovariate(_rate(time.monotonic() - began))):
            client.publish(json.dumps(next(items)))


def _rate(seconds: float) -> float:
    return MEAN_RATE + SWING * math.sin(2 * math.pi * seconds / WAVE_SECONDS)

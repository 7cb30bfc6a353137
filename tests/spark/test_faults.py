"""kill -9 at any moment: started again, the stream has lost nothing and tells nobody twice.

FAULTS says how often it is killed (`make faults`), SEED when.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.spark import workload
from tests.spark.streams import check_gapless, told
from tidings.model import Publication
from tidings.spark.stream import run
from tidings.store import open_store, sqlite_url

pytestmark = [pytest.mark.spark, pytest.mark.faults]
PROGRAM = Path(__file__).with_name("program.py")
KILLS = int(os.environ.get("FAULTS", "2"))
SEED = int(os.environ.get("SEED", str(random.SystemRandom().randrange(1_000_000))))
EVENTS = 120


@pytest.fixture
def start(tmp_path):
    """Starts streams, each in a process group of its own; all are gone in the end."""
    started = []

    def begin(url):
        command = [sys.executable, str(PROGRAM), "stream", url, str(tmp_path / "home"), "local[2]", "7"]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.stdout.close()
        process.wait()


def published(store, first):
    bodies = [*workload.events(EVENTS - 1, first), b'{"symbol": ']
    named = [Publication(f"p{first + i}", "application/json", body) for i, body in enumerate(bodies)]
    for i in range(0, EVENTS, 10):
        store.journal.append(named[i : i + 10])
    return {one.id: one.body for one in named}


def test_killed_again_and_again(session, tmp_path, start):
    dice = random.Random(SEED)
    url = sqlite_url(tmp_path / "store.db")
    wanted = workload.subscriptions(40)
    events = {}
    with open_store(url) as store:
        store.subscriptions.add_many(wanted)
        for kill in range(KILLS):
            events |= published(store, kill * EVENTS)
            process = start(url)
            assert process.stdout.readline(), (tmp_path / "home" / "spark.log").read_text()
            for _ in range(dice.randrange(12)):
                process.stdout.readline()
            # Not a wait for something to happen: this is where in a batch the blow falls.
            time.sleep(dice.random() * 0.5)
            # Every other time only the driver: its JVM lives on for a while, and the next start has to wait.
            (os.killpg if kill % 2 else os.kill)(process.pid, signal.SIGKILL)
            process.wait()
        events |= published(store, KILLS * EVENTS)
        run(session, tmp_path / "home", url, once=True)
        everybody = sorted({one.subscriber for one in wanted})
        bad = [name for name, body in events.items() if body.endswith(b": ")]
        good = {name: body for name, body in events.items() if name not in bad}
        found = {row[1:] for rows in told(store, *everybody).values() for row in rows}
        assert found == workload.expected(good, wanted), f"SEED={SEED}"
        assert [one.publication for one in store.dead_letters.read()] == bad, f"SEED={SEED}"
        check_gapless(store, *everybody)

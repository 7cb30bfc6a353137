"""kill -9 while a batch is searched for the publication that fails it: the next stream finds the same, and repeats
no notification.

FAULTS is the number of kills, SEED determines when.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.faults.test_stream_faults import KILLS, PROGRAM, SEED, kill, kill_session
from tests.support.paths import ROOT
from tests.support.processes.streams import check_gapless, read_notifications
from tidings.model import Publication, Subscription
from tidings.store.database import sqlite_url
from tidings.store.store import Store, open_store

pytestmark = [pytest.mark.spark, pytest.mark.faults, pytest.mark.long]
JSON, XML = "application/json", "application/xml"
COUNT, DECODED, EXPLAINED = 30, 11, 23
"""The number of publications, and of those that kill a worker when decoded or when their match is explained."""
MOST_FAILURES = 5
"""The stream is killed after this many failed attempts at the latest; these two publications cause seven."""


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[str], subprocess.Popen[str]]]:
    """Return a function that starts a stream with poison in a session of its own; all are killed in the end."""
    started = []

    def start_stream(url: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, str(PROGRAM), "poisoned", url, str(tmp_path / "home"), "local[2]"],
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield start_stream
    for process in started:
        kill_session(process.pid)
        assert process.stdout
        process.stdout.close()
        process.wait()


def body(number: int) -> tuple[str, bytes]:
    if number == DECODED:
        return JSON, b'{"price": 7, "why": "die"}'
    mark = b"<mark/>" if number == EXPLAINED else b""
    return (XML, b"<order><price>7</price>%b</order>" % mark) if number % 2 else (JSON, b'{"price": 7}')


def await_failures(process: subprocess.Popen[str], count: int) -> None:
    assert process.stdout
    for line in process.stdout:
        count -= "fail: " in line
        if count == 0:
            return
    pytest.fail("the stream ended by itself")


def pairs(store: Store) -> set[tuple[str, str]]:
    return {row[1:] for rows in read_notifications(store, "ana", "bo").values() for row in rows}


def test_isolation_killed_repeatedly_continues_in_next_stream(
    tmp_path: Path, start: Callable[[str], subprocess.Popen[str]]
) -> None:
    dice = random.Random(SEED)
    url = sqlite_url(tmp_path / "store.db")
    with open_store(url) as store:
        store.subscriptions.add(Subscription("event", "ana", "predicates", "price = 7"))
        store.subscriptions.add(Subscription("order", "ana", "xpath", "/order/price"))
        store.subscriptions.add(Subscription("deadly", "bo", "xpath", "/order[mark or die]"))
        store.journal.append([Publication(f"p{number}", *body(number)) for number in range(COUNT)])
        for _ in range(KILLS):
            process = start(url)
            await_failures(process, dice.randint(1, MOST_FAILURES))
            # Not a wait for an event: this is the moment of the kill within an attempt.
            time.sleep(dice.random())
            dice.choice((kill_session, kill))(process.pid)
            process.wait()
            assert pairs(store) == set() and not list(store.dead_letters.read()), f"SEED={SEED}"
        process = start(url)
        expected = {(f"p{n}", "order" if n % 2 else "event") for n in range(COUNT) if n != DECODED}
        while pairs(store) != expected:
            assert process.poll() is None, f"SEED={SEED}"
            assert pairs(store) <= expected, f"SEED={SEED}"
            time.sleep(0.1)
        store.journal.append([Publication("last", *body(0))])
        while ("last", "event") not in pairs(store):
            assert process.poll() is None, f"SEED={SEED}"
            time.sleep(0.1)
        letters = [(one.publication, one.subscription) for one in store.dead_letters.read()]
        assert letters == [(f"p{DECODED}", None), (f"p{EXPLAINED}", "deadly")], f"SEED={SEED}"
        check_gapless(store, "ana", "bo")
    assert not list((tmp_path / "home").glob("**/batches/[0-9]*")), "leftovers of attempts are deleted"

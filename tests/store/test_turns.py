"""Those who write take turns: first come, first served, however often they have opened the store."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Event, get_ident

import pytest
from sqlalchemy import Connection

from tidings.model import Publication
from tidings.store import Store, open_store, sqlite_url
from tidings.store.turns import Turns, of_file


def queued(pool: ThreadPoolExecutor, turns: Turns, work: Callable[[], None]) -> Future[None]:
    """Somebody who wants to do something that takes a turn, and waits for it already."""
    before, done = turns.waiting, pool.submit(work)
    until = time.monotonic() + 60
    while turns.waiting == before:
        assert time.monotonic() < until
        time.sleep(0.001)
    return done


def in_turn(turns: Turns, work: Callable[[], None]) -> None:
    assert turns.begin(60)
    work()
    turns.end()


def test_turns_are_given_in_the_order_in_which_they_were_asked_for() -> None:
    turns, order = Turns(1), list[int]()
    assert turns.begin(60)
    with ThreadPoolExecutor(5) as pool:
        waiting = [queued(pool, turns, partial(in_turn, turns, partial(order.append, n))) for n in range(5)]
        turns.end()
        for each in waiting:
            each.result(60)
    assert order == [0, 1, 2, 3, 4]


def test_whoever_ends_and_comes_back_stands_behind_those_who_wait() -> None:
    turns, order = Turns(1), list[str]()
    assert turns.begin(60)
    with ThreadPoolExecutor(1) as pool:
        other = queued(pool, turns, partial(in_turn, turns, lambda: order.append("other")))
        turns.end()
        in_turn(turns, lambda: order.append("again"))
        other.result(60)
    assert order == ["other", "again"]


def test_whoever_waits_too_long_stands_in_nobodys_way() -> None:
    turns = Turns(2)
    assert turns.begin(60) and turns.begin(60)
    assert not turns.begin(0.01) and turns.waiting == 0
    turns.end()
    assert turns.begin(60)
    assert not turns.begin(0.01)


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Ctrl-C is heard, also by a process that a shell has started in its background: such a one is born deaf to it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
def test_whoever_is_interrupted_stands_in_nobodys_way() -> None:
    """Ctrl-C while another one writes: what is tidied up afterwards may want to write, too."""
    turns, main = Turns(1), get_ident()
    assert turns.begin(60)

    def interrupt() -> None:
        until = time.monotonic() + 60
        while not turns.waiting:
            assert time.monotonic() < until
            time.sleep(0.001)
        signal.pthread_kill(main, signal.SIGINT)

    with ThreadPoolExecutor(1) as pool, pytest.raises(KeyboardInterrupt):
        pool.submit(interrupt)
        turns.begin(60)
    assert turns.waiting == 0
    turns.end()
    assert turns.begin(0)


def test_all_who_open_a_file_stand_in_one_queue(tmp_path: Path) -> None:
    """SQLite alone would have each look again now and then, and give it to whoever comes at the right moment."""
    path = tmp_path / "store.db"
    begun, goes_on = Event(), Event()

    def hold(_: Connection) -> None:
        begun.set()
        assert goes_on.wait(60)

    def publish(store: Store, id: str) -> None:
        store.journal.append([Publication(id, "application/json", b"{}")])

    with (
        open_store(sqlite_url(path)) as one,
        open_store(sqlite_url(path)) as other,
        ThreadPoolExecutor(4) as pool,
    ):
        first = pool.submit(one.database.transact, hold)
        assert begun.wait(60)
        names = [(other, "a"), (one, "b"), (other, "c")]
        waiting = [queued(pool, of_file(str(path)), partial(publish, *each)) for each in names]
        goes_on.set()
        for each in (first, *waiting):
            each.result(60)
        assert [each.id for each in one.journal.read(0)] == ["a", "b", "c"]


def test_a_store_elsewhere_has_turns_of_its_own(tmp_path: Path) -> None:
    assert of_file(str(tmp_path / "a.db")) is not of_file(str(tmp_path / "b.db"))

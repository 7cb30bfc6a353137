"""Those who write take turns: first come, first served, however often they have opened the store."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dis import opname
from functools import partial
from itertools import count
from pathlib import Path
from threading import Event, get_ident
from types import FrameType

import pytest
from sqlalchemy import Connection

from tidings.model import Publication
from tidings.store import write_queue as turns_module
from tidings.store.database import Database, sqlite_url
from tidings.store.store import Store, open_store
from tidings.store.write_queue import WriteQueue, WriteTicket, queue_of_file

TraceFunction = Callable[[FrameType, str, object], "TraceFunction | None"]


def queued(pool: ThreadPoolExecutor, turns: WriteQueue, work: Callable[[], None]) -> Future[None]:
    """Somebody who wants to do something that takes a turn, and waits for it already."""
    before, done = turns.waiting, pool.submit(work)
    until = time.monotonic() + 60
    while turns.waiting == before:
        assert time.monotonic() < until
        time.sleep(0.001)
    return done


def taken(turns: WriteQueue) -> WriteTicket:
    turn = turns.begin(60)
    assert turn
    return turn


def in_turn(turns: WriteQueue, work: Callable[[], None]) -> None:
    turn = turns.begin(60)
    assert turn
    work()
    turns.end(turn)


def test_turns_are_given_in_the_order_in_which_they_were_asked_for() -> None:
    turns, order = WriteQueue(1), list[int]()
    first = taken(turns)
    with ThreadPoolExecutor(5) as pool:
        waiting = [queued(pool, turns, partial(in_turn, turns, partial(order.append, n))) for n in range(5)]
        turns.end(first)
        for each in waiting:
            each.result(60)
    assert order == [0, 1, 2, 3, 4]


def test_whoever_ends_and_comes_back_stands_behind_those_who_wait() -> None:
    turns, order = WriteQueue(1), list[str]()
    first = taken(turns)
    with ThreadPoolExecutor(1) as pool:
        other = queued(pool, turns, partial(in_turn, turns, lambda: order.append("other")))
        turns.end(first)
        in_turn(turns, lambda: order.append("again"))
        other.result(60)
    assert order == ["other", "again"]


def test_whoever_waits_too_long_stands_in_nobodys_way() -> None:
    turns = WriteQueue(2)
    first, second = taken(turns), taken(turns)
    assert not turns.begin(0.01) and turns.waiting == 0
    turns.end(first)
    turns.end(first)
    third = taken(turns)
    assert not turns.begin(0.01), "one that has ended ends nobody else's"
    for each in (second, third):
        turns.end(each)
    assert [taken(turns), taken(turns)]


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Ctrl-C is heard, also by a process that a shell has started in its background: such a one is born deaf to it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
def test_whoever_is_interrupted_stands_in_nobodys_way() -> None:
    """Ctrl-C while another one writes: what is tidied up afterwards may want to write, too."""
    turns, main = WriteQueue(1), get_ident()
    first = taken(turns)

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
    turns.end(first)
    assert turns.begin(0)


def test_a_turn_that_nobody_has_any_more_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits for it looks again now and then, as nobody says so."""
    monkeypatch.setattr(turns_module, "LOOK_AGAIN", 0.01)
    turns = WriteQueue(1)
    first = taken(turns)
    with ThreadPoolExecutor(1) as pool:
        other = queued(pool, turns, partial(in_turn, turns, lambda: None))
        del first
        other.result(60)


def test_ctrl_c_at_any_step_loses_no_turn(tmp_path: Path) -> None:
    """Before, one that came after a turn was taken and before that was known, or while it ended, lost it for ever."""
    path, steps = tmp_path / "store.db", 0
    with open_store(sqlite_url(path)) as store:
        while is_interrupted(steps, partial(store.database.transact, lambda _: None)):
            assert queue_of_file(str(path)).begin(0), f"after step {steps}"
            steps += 1
    assert steps > 30


def is_interrupted(step: int, work: Callable[[], None]) -> bool:
    """Do something, with Ctrl-C at a step where Python would heed it: as a function of turns begins, and after each
    call in it.
    """
    places = (turns_module.__file__, Database._turn.__wrapped__.__code__.co_filename)  # type: ignore[attr-defined]
    steps, calls = count(), set[int]()  # not the frames themselves: what they have would be kept

    def trace(frame: FrameType, event: str, _: object) -> TraceFunction | None:
        if frame.f_code.co_filename not in places or frame.f_code.co_name in (
            "transact",
            "_transacted",
            "<lambda>",
        ):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if (event == "call" or id(frame) in calls) and next(steps) == step:
            raise KeyboardInterrupt
        calls.discard(id(frame))
        if event == "opcode" and opname[frame.f_code.co_code[frame.f_lasti]].startswith("CALL"):
            calls.add(id(frame))
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


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
        waiting = [queued(pool, queue_of_file(str(path)), partial(publish, *each)) for each in names]
        goes_on.set()
        for each in (first, *waiting):
            each.result(60)
        assert [each.id for each in one.journal.read(0)] == ["a", "b", "c"]


def test_a_store_elsewhere_has_turns_of_its_own(tmp_path: Path) -> None:
    assert queue_of_file(str(tmp_path / "a.db")) is not queue_of_file(str(tmp_path / "b.db"))

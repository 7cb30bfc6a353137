"""The queue of writers: first in, first out, across all connections to a file."""

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
from tidings.store import write_queue
from tidings.store.database import Database, sqlite_url
from tidings.store.store import Store, open_store
from tidings.store.write_queue import WriteQueue, WriteTicket, queue_of_file

TraceFunction = Callable[[FrameType, str, object], "TraceFunction | None"]


def submit_and_wait(pool: ThreadPoolExecutor, queue: WriteQueue, work: Callable[[], None]) -> Future[None]:
    """Submit work that takes a place in the queue, and return once it waits there."""
    already_waiting, future = queue.waiting, pool.submit(work)
    deadline = time.monotonic() + 60
    while queue.waiting == already_waiting:
        assert time.monotonic() < deadline
        time.sleep(0.001)
    return future


def begin_writing(queue: WriteQueue) -> WriteTicket:
    ticket = queue.begin(60)
    assert ticket
    return ticket


def run_in_turn(queue: WriteQueue, work: Callable[[], None]) -> None:
    ticket = queue.begin(60)
    assert ticket
    work()
    queue.end(ticket)


def test_begin_grants_writers_in_order_of_arrival() -> None:
    queue, order = WriteQueue(1), list[int]()
    first = begin_writing(queue)
    with ThreadPoolExecutor(5) as pool:
        waiting = [
            submit_and_wait(pool, queue, partial(run_in_turn, queue, partial(order.append, n)))
            for n in range(5)
        ]
        queue.end(first)
        for each in waiting:
            each.result(60)
    assert order == [0, 1, 2, 3, 4]


def test_begin_after_end_goes_behind_waiting_writers() -> None:
    queue, order = WriteQueue(1), list[str]()
    first = begin_writing(queue)
    with ThreadPoolExecutor(1) as pool:
        other = submit_and_wait(pool, queue, partial(run_in_turn, queue, lambda: order.append("other")))
        queue.end(first)
        run_in_turn(queue, lambda: order.append("again"))
        other.result(60)
    assert order == ["other", "again"]


def test_begin_timeout_leaves_queue() -> None:
    queue = WriteQueue(2)
    first, second = begin_writing(queue), begin_writing(queue)
    assert not queue.begin(0.01) and queue.waiting == 0
    queue.end(first)
    queue.end(first)
    third = begin_writing(queue)
    assert not queue.begin(0.01), "a second end of one ticket ends no other"
    for each in (second, third):
        queue.end(each)
    assert [begin_writing(queue), begin_writing(queue)]


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Handle SIGINT as Ctrl-C.

    A process that a shell starts in its background ignores SIGINT.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
def test_begin_interrupted_leaves_queue() -> None:
    """Ctrl-C during another write: the cleanup after it may want to write, too."""
    queue, main = WriteQueue(1), get_ident()
    first = begin_writing(queue)

    def interrupt() -> None:
        deadline = time.monotonic() + 60
        while not queue.waiting:
            assert time.monotonic() < deadline
            time.sleep(0.001)
        signal.pthread_kill(main, signal.SIGINT)

    with ThreadPoolExecutor(1) as pool, pytest.raises(KeyboardInterrupt):
        pool.submit(interrupt)
        queue.begin(60)
    assert queue.waiting == 0
    queue.end(first)
    assert queue.begin(0)


def test_begin_dropped_ticket_frees_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiting writers check again now and then, because nothing notifies them."""
    monkeypatch.setattr(write_queue, "LOOK_AGAIN", 0.01)
    queue = WriteQueue(1)
    first = begin_writing(queue)
    with ThreadPoolExecutor(1) as pool:
        other = submit_and_wait(pool, queue, partial(run_in_turn, queue, lambda: None))
        del first
        other.result(60)


def test_transact_interrupted_at_any_step_frees_its_place(tmp_path: Path) -> None:
    """Once, some interrupts lost the place for ever.

    They came between taking a place and recording it, or while leaving it.
    """
    path, steps = tmp_path / "store.db", 0
    with open_store(sqlite_url(path)) as store:
        while is_interrupted(steps, partial(store.database.transact, lambda _: None)):
            assert queue_of_file(str(path)).begin(0), f"after step {steps}"
            steps += 1
    assert steps > 30


def is_interrupted(step: int, work: Callable[[], None]) -> bool:
    """Do the work with Ctrl-C at a step where Python would handle it.

    That is at the start of a function of the queue, and after each call in it.
    """
    places = (write_queue.__file__, Database._turn.__wrapped__.__code__.co_filename)  # type: ignore[attr-defined]
    steps, calls = count(), set[int]()  # ids, because frames would keep their locals alive

    def trace(frame: FrameType, event: str, _: object) -> TraceFunction | None:
        if frame.f_code.co_filename not in places or frame.f_code.co_name in (
            "transact",
            "_retry_transaction",
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


def test_queue_of_file_is_shared_by_all_stores_on_file(tmp_path: Path) -> None:
    """SQLite alone grants the lock to the writer that polls at the right moment."""
    path = tmp_path / "store.db"
    begun, released = Event(), Event()

    def hold(_: Connection) -> None:
        begun.set()
        assert released.wait(60)

    def publish(store: Store, id: str) -> None:
        store.journal.append([Publication(id, "application/json", b"{}")])

    with (
        open_store(sqlite_url(path)) as first_store,
        open_store(sqlite_url(path)) as second_store,
        ThreadPoolExecutor(4) as pool,
    ):
        first = pool.submit(first_store.database.transact, hold)
        assert begun.wait(60)
        names = [(second_store, "a"), (first_store, "b"), (second_store, "c")]
        waiting = [submit_and_wait(pool, queue_of_file(str(path)), partial(publish, *each)) for each in names]
        released.set()
        for each in (first, *waiting):
            each.result(60)
        assert [each.id for each in first_store.journal.read(0)] == ["a", "b", "c"]


def test_queue_of_file_differs_between_files(tmp_path: Path) -> None:
    assert queue_of_file(str(tmp_path / "a.db")) is not queue_of_file(str(tmp_path / "b.db"))

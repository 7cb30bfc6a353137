"""The pool of delivery threads: limits per host, and no host delays another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Event

import pytest

from tests.feeds.hub.callbacks import eventually
from tidings.delivery.host_pool import HostPool


class BlockedCalls:
    """Calls that block until they are released."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.released = Event()

    def call(self, name: str) -> Callable[[], str]:
        def run() -> str:
            self.started.append(name)
            assert self.released.wait(60)
            return name

        return run


@pytest.fixture
def calls() -> Iterator[BlockedCalls]:
    blocked = BlockedCalls()
    yield blocked
    blocked.released.set()


def test_submit_host_at_its_limit_does_not_block_others(calls: BlockedCalls) -> None:
    with HostPool(threads=4, per_host=2) as pool:
        slow = [pool.submit("slow", calls.call(f"slow {number}")) for number in range(6)]
        eventually(lambda: len(calls.started) == 2)
        assert pool.submit("quick", lambda: "done").result(60) == "done"
        assert sorted(calls.started) == ["slow 0", "slow 1"], "four threads, and two for one host"
        calls.released.set()
        assert [each.result(60) for each in slow] == [f"slow {number}" for number in range(6)]


def test_submit_more_calls_than_threads_waits(calls: BlockedCalls) -> None:
    with HostPool(threads=2, per_host=9) as pool:
        done = [pool.submit(f"place {number}", calls.call(str(number))) for number in range(3)]
        eventually(lambda: len(calls.started) == 2)
        assert not done[2].running()
        calls.released.set()
        assert done[2].result(60) == "2"


def test_submit_two_calls_with_one_idle_thread_starts_second_thread(calls: BlockedCalls) -> None:
    with HostPool(threads=2, per_host=9) as pool:
        assert pool.submit("here", lambda: 1).result(60) == 1
        pool.submit("here", calls.call("first"))
        pool.submit("there", calls.call("second"))
        eventually(lambda: sorted(calls.started) == ["first", "second"])
        calls.released.set()


def test_cancel_waiting_drops_calls_after_timeout(calls: BlockedCalls) -> None:
    with HostPool(threads=1, per_host=1) as pool:
        first, second = pool.submit("here", calls.call("first")), pool.submit("there", calls.call("second"))
        eventually(lambda: calls.started == ["first"])
        pool.cancel_waiting(seconds=60)
        assert not second.done()
        pool.cancel_waiting(seconds=0)
        assert second.cancelled() and not first.done()
        calls.released.set()
        assert first.result(60) == "first"


def test_close_waits_for_running_call_and_drops_others(calls: BlockedCalls) -> None:
    pool = HostPool(threads=1, per_host=1)
    first, second = pool.submit("here", calls.call("first")), pool.submit("here", calls.call("second"))
    eventually(lambda: calls.started == ["first"])
    calls.released.set()
    pool.close()
    assert first.result(0) == "first"
    assert second.done()


def test_submit_failing_call_raises_and_thread_continues() -> None:
    with HostPool(threads=1, per_host=1) as pool:
        failing = pool.submit("here", lambda: 1 // 0)
        assert pool.submit("here", lambda: 2).result(60) == 2
        with pytest.raises(ZeroDivisionError):
            failing.result(60)

"""Who is in line for a thread: no place has more than it may have, and none holds up another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Event

import pytest

from tests.feeds.hub.callbacks import eventually
from tidings.delivery.host_pool import HostPool


class Crowd:
    """Calls that have begun, each until it may end."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.may_end = Event()

    def call(self, name: str) -> Callable[[], str]:
        def run() -> str:
            self.begun.append(name)
            assert self.may_end.wait(60)
            return name

        return run


@pytest.fixture
def crowd() -> Iterator[Crowd]:
    made = Crowd()
    yield made
    made.may_end.set()


def test_a_place_has_no_more_than_it_may_have_and_holds_up_no_other(crowd: Crowd) -> None:
    with HostPool(threads=4, per_host=2) as line:
        slow = [line.submit("slow", crowd.call(f"slow {number}")) for number in range(6)]
        eventually(lambda: len(crowd.begun) == 2)
        assert line.submit("quick", lambda: "done").result(60) == "done"
        assert sorted(crowd.begun) == ["slow 0", "slow 1"], "four threads, and two for one place"
        crowd.may_end.set()
        assert [each.result(60) for each in slow] == [f"slow {number}" for number in range(6)]


def test_no_more_threads_than_there_may_be(crowd: Crowd) -> None:
    with HostPool(threads=2, per_host=9) as line:
        done = [line.submit(f"place {number}", crowd.call(str(number))) for number in range(3)]
        eventually(lambda: len(crowd.begun) == 2)
        assert not done[2].running()
        crowd.may_end.set()
        assert done[2].result(60) == "2"


def test_two_at_once_find_two_threads_though_one_was_idle(crowd: Crowd) -> None:
    with HostPool(threads=2, per_host=9) as line:
        assert line.submit("here", lambda: 1).result(60) == 1
        line.submit("here", crowd.call("first"))
        line.submit("there", crowd.call("second"))
        eventually(lambda: sorted(crowd.begun) == ["first", "second"])
        crowd.may_end.set()


def test_what_waits_too_long_is_dropped(crowd: Crowd) -> None:
    with HostPool(threads=1, per_host=1) as line:
        first, second = line.submit("here", crowd.call("first")), line.submit("there", crowd.call("second"))
        eventually(lambda: crowd.begun == ["first"])
        line.cancel_waiting(seconds=60)
        assert not second.done()
        line.cancel_waiting(seconds=0)
        assert second.cancelled() and not first.done()
        crowd.may_end.set()
        assert first.result(60) == "first"


def test_closing_waits_for_what_is_under_way_and_drops_the_rest(crowd: Crowd) -> None:
    line = HostPool(threads=1, per_host=1)
    first, second = line.submit("here", crowd.call("first")), line.submit("here", crowd.call("second"))
    eventually(lambda: crowd.begun == ["first"])
    crowd.may_end.set()
    line.close()
    assert first.result(0) == "first"
    assert second.done()


def test_what_fails_is_told_and_its_thread_goes_on() -> None:
    with HostPool(threads=1, per_host=1) as line:
        failing = line.submit("here", lambda: 1 // 0)
        assert line.submit("here", lambda: 2).result(60) == 2
        with pytest.raises(ZeroDivisionError):
            failing.result(60)

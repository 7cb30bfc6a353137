"""Batching, the limit of writes, and long polling."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from threading import Event

import pytest

from tidings.api.group_commit import Batcher
from tidings.api.long_poll import LongPoll
from tidings.api.problem_details import HttpError
from tidings.api.write_limiter import WriteLimiter
from tidings.errors import InputError, StoreError


class Work:
    """Doubles numbers, once it may; a zero is more than it can take."""

    def __init__(self) -> None:
        self.may = Event()
        self.done: list[list[int]] = []

    def __call__(self, some: Sequence[int]) -> list[int]:
        self.may.wait(60)
        self.done.append(list(some))
        if 0 in some:
            raise InputError("nothing")
        return [2 * one for one in some]


async def begun(gathering: Batcher[int, int], *numbers: int) -> list[asyncio.Task[int]]:
    """These wait for their outcomes, in this order."""
    tasks = [asyncio.create_task(gathering.add(one)) for one in numbers]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return tasks


def test_batcher_groups_items_that_arrive_during_a_batch() -> None:
    work = Work()

    async def ask() -> list[int]:
        gathering = Batcher(work, "numbers", max_batch=3)
        tasks = await begun(gathering, 1)
        tasks += await begun(gathering, 2, 3, 4, 5)
        work.may.set()
        return list(await asyncio.gather(*tasks))

    assert asyncio.run(ask()) == [2, 4, 6, 8, 10]
    assert work.done == [[1], [2, 3, 4], [5]]


def test_batcher_raises_errors_in_the_failed_batch_only() -> None:
    work = Work()

    async def ask() -> list[int | BaseException]:
        gathering = Batcher(work, "numbers", max_batch=2)
        tasks = await begun(gathering, 1)
        tasks += await begun(gathering, 0, 2, 3)
        work.may.set()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        return [*outcomes, await gathering.add(4)]

    first, *both, last, after = asyncio.run(ask())
    assert (first, last, after) == (2, 6, 8)
    assert [type(one) for one in both] == [InputError, InputError]


def test_batcher_with_cancelled_callers_finishes_the_batch() -> None:
    work = Work()

    async def ask() -> int:
        gathering = Batcher(work, "numbers")
        gone, *_ = await begun(gathering, 1)
        both = await begun(gathering, 2, 3)
        gone.cancel()
        both[0].cancel()
        work.may.set()
        return await both[1]

    assert asyncio.run(ask()) == 6
    assert work.done == [[1], [2, 3]], "what was begun is done"


def test_batcher_with_a_full_queue_answers_503() -> None:
    work = Work()

    async def ask() -> list[int]:
        gathering = Batcher(work, "numbers", max_queue=2)
        tasks = await begun(gathering, 1)
        tasks += await begun(gathering, 2, 3)
        with pytest.raises(HttpError, match="too many numbers are waiting") as refused:
            await gathering.add(4)
        assert refused.value.status == 503
        work.may.set()
        return list(await asyncio.gather(*tasks))

    assert asyncio.run(ask()) == [2, 4, 6]


LONG = 60.0


class Marks:
    """A mark that others set, and how often it was looked at."""

    def __init__(self) -> None:
        self.now, self.looks = 0, 0

    def __call__(self) -> int:
        self.looks += 1
        return self.now


def test_long_poll_with_many_waiting_polls_once() -> None:
    marks = Marks()

    async def wait() -> list[int]:
        news = LongPoll(marks, interval=0.01)
        waiting = [
            asyncio.create_task(news.wait_for(lambda: marks.now, lambda found: found > 0, LONG))
            for _ in range(50)
        ]
        while marks.looks < 60:  # each once, before it waits, and the look-out a few times
            await asyncio.sleep(0)
        marks.now = 7
        return await asyncio.gather(*waiting)

    assert asyncio.run(wait()) == [7] * 50
    assert marks.looks < 200


def test_long_poll_notices_changes_between_read_and_wait() -> None:
    marks = Marks()

    def look() -> int:
        seen = marks.now
        marks.now = 1
        return seen

    assert asyncio.run(LongPoll(marks, interval=LONG).wait_for(look, lambda found: found > 0, LONG)) == 1


def test_long_poll_that_is_nudged_polls_at_once() -> None:
    marks = Marks()

    async def wait() -> int:
        news = LongPoll(marks, interval=LONG)
        waiting = asyncio.create_task(news.wait_for(lambda: marks.now, lambda found: found > 0, LONG))
        while marks.looks < 2:
            await asyncio.sleep(0)
        marks.now = 3
        news.nudge()
        return await waiting

    assert asyncio.run(wait()) == 3


def test_long_poll_after_its_time_returns_the_last_result() -> None:
    marks = Marks()
    news = LongPoll(marks, interval=0.01)
    assert asyncio.run(news.wait_for(lambda: "nothing", lambda _: False, 0.05)) == "nothing"


def test_long_poll_beyond_its_limit_answers_at_once() -> None:
    marks = Marks()

    async def wait() -> tuple[int, int]:
        news = LongPoll(marks, interval=LONG, most=1)
        first = asyncio.create_task(news.wait_for(lambda: marks.now, lambda found: found > 0, LONG))
        while marks.looks < 2:
            await asyncio.sleep(0)
        second = await news.wait_for(lambda: marks.now, lambda found: found > 0, LONG)
        news.end()
        return await first, second

    assert asyncio.run(wait()) == (0, 0)


def test_long_poll_raises_errors_of_the_poll() -> None:
    def broken() -> int:
        if marks.looks:
            raise StoreError("the store says: it is gone")
        return marks()

    marks = Marks()
    with pytest.raises(StoreError, match="gone"):
        asyncio.run(LongPoll(broken, interval=0.01).wait_for(lambda: None, lambda _: False, LONG))


def test_write_limiter_with_a_full_queue_answers_503() -> None:
    async def write() -> list[object]:
        go, writers = Event(), WriteLimiter(threads=1, max_queue=1)
        work: Callable[[], bool] = lambda: go.wait(LONG)  # noqa: E731
        tasks = [asyncio.create_task(writers.run(work)) for _ in range(2)]
        while not writers.waiting:
            await asyncio.sleep(0)
        with pytest.raises(HttpError, match="too many registrations"):
            await writers.run(work)
        go.set()
        return list(await asyncio.gather(*tasks))

    assert asyncio.run(write()) == [True, True]

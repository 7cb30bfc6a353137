"""Requests that wait for news, and those that wait for their turn to write."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from threading import Event

import pytest

from tidings.api.http_error import HttpError
from tidings.api.middleware.long_poll import LongPoll
from tidings.api.middleware.write_limiter import WriteLimiter
from tidings.errors import StoreError

LONG = 60.0


class Marks:
    """A mark that others set, and how often it was looked at."""

    def __init__(self) -> None:
        self.now, self.looks = 0, 0

    def __call__(self) -> int:
        self.looks += 1
        return self.now


def test_many_wait_and_one_looks() -> None:
    marks = Marks()

    async def wait() -> list[int]:
        news = LongPoll(marks, look=0.01)
        waiting = [
            asyncio.create_task(news.found(lambda: marks.now, lambda found: found > 0, LONG))
            for _ in range(50)
        ]
        while marks.looks < 60:  # each once, before it waits, and the look-out a few times
            await asyncio.sleep(0)
        marks.now = 7
        return await asyncio.gather(*waiting)

    assert asyncio.run(wait()) == [7] * 50
    assert marks.looks < 200


def test_what_comes_between_the_look_and_the_wait_is_not_missed() -> None:
    marks = Marks()

    def look() -> int:
        seen = marks.now
        marks.now = 1
        return seen

    assert asyncio.run(LongPoll(marks, look=LONG).found(look, lambda found: found > 0, LONG)) == 1


def test_a_nudge_is_noticed_at_once() -> None:
    marks = Marks()

    async def wait() -> int:
        news = LongPoll(marks, look=LONG)
        waiting = asyncio.create_task(news.found(lambda: marks.now, lambda found: found > 0, LONG))
        while marks.looks < 2:
            await asyncio.sleep(0)
        marks.now = 3
        news.nudge()
        return await waiting

    assert asyncio.run(wait()) == 3


def test_when_the_time_is_over_the_last_look_counts() -> None:
    marks = Marks()
    news = LongPoll(marks, look=0.01)
    assert asyncio.run(news.found(lambda: "nothing", lambda _: False, 0.05)) == "nothing"


def test_not_everybody_may_wait() -> None:
    marks = Marks()

    async def wait() -> tuple[int, int]:
        news = LongPoll(marks, look=LONG, most=1)
        first = asyncio.create_task(news.found(lambda: marks.now, lambda found: found > 0, LONG))
        while marks.looks < 2:
            await asyncio.sleep(0)
        second = await news.found(lambda: marks.now, lambda found: found > 0, LONG)
        news.end()
        return await first, second

    assert asyncio.run(wait()) == (0, 0)


def test_whoever_waits_is_told_what_goes_wrong() -> None:
    def broken() -> int:
        if marks.looks:
            raise StoreError("the store says: it is gone")
        return marks()

    marks = Marks()
    with pytest.raises(StoreError, match="gone"):
        asyncio.run(LongPoll(broken, look=0.01).found(lambda: None, lambda _: False, LONG))


def test_too_many_who_write() -> None:
    async def write() -> list[object]:
        go, writers = Event(), WriteLimiter(at_once=1, waiting=1)
        work: Callable[[], bool] = lambda: go.wait(LONG)  # noqa: E731
        tasks = [asyncio.create_task(writers.run(work)) for _ in range(2)]
        while not writers.waiting:
            await asyncio.sleep(0)
        with pytest.raises(HttpError, match="too many registrations"):
            await writers.run(work)
        go.set()
        return list(await asyncio.gather(*tasks))

    assert asyncio.run(write()) == [True, True]

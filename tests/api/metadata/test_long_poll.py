"""Long polling: requests that wait for new data."""

from __future__ import annotations

import asyncio

import pytest

from tidings.api.metadata.long_poll import LongPoll
from tidings.errors import StoreError

LONG = 60.0


class Marks:
    """A mark that others set, and a count of its reads."""

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
            asyncio.create_task(news.wait_for(lambda: marks.now, lambda mark: mark > 0, LONG))
            for _ in range(50)
        ]
        while marks.looks < 60:  # each once before it waits, and the poller a few times
            await asyncio.sleep(0)
        marks.now = 7
        return await asyncio.gather(*waiting)

    assert asyncio.run(wait()) == [7] * 50
    assert marks.looks < 200


def test_long_poll_notices_changes_between_read_and_wait() -> None:
    marks = Marks()

    def look() -> int:
        before = marks.now
        marks.now = 1
        return before

    assert asyncio.run(LongPoll(marks, interval=LONG).wait_for(look, lambda mark: mark > 0, LONG)) == 1


def test_long_poll_nudge_polls_at_once() -> None:
    marks = Marks()

    async def wait() -> int:
        news = LongPoll(marks, interval=LONG)
        waiting = asyncio.create_task(news.wait_for(lambda: marks.now, lambda mark: mark > 0, LONG))
        while marks.looks < 2:
            await asyncio.sleep(0)
        marks.now = 3
        news.poll_soon()
        return await waiting

    assert asyncio.run(wait()) == 3


def test_long_poll_after_timeout_returns_last_result() -> None:
    marks = Marks()
    news = LongPoll(marks, interval=0.01)
    assert asyncio.run(news.wait_for(lambda: "nothing", lambda _: False, 0.05)) == "nothing"


def test_long_poll_beyond_its_limit_answers_at_once() -> None:
    marks = Marks()

    async def wait() -> tuple[int, int]:
        news = LongPoll(marks, interval=LONG, most=1)
        first = asyncio.create_task(news.wait_for(lambda: marks.now, lambda mark: mark > 0, LONG))
        while marks.looks < 2:
            await asyncio.sleep(0)
        second = await news.wait_for(lambda: marks.now, lambda mark: mark > 0, LONG)
        news.end()
        return await first, second

    assert asyncio.run(wait()) == (0, 0)


def test_long_poll_raises_errors_of_poll() -> None:
    def broken() -> int:
        if marks.looks:
            raise StoreError("the store says: it is gone")
        return marks()

    marks = Marks()
    with pytest.raises(StoreError, match="gone"):
        asyncio.run(LongPoll(broken, interval=0.01).wait_for(lambda: None, lambda _: False, LONG))

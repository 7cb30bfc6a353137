"""Group commit of requests that arrive together."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from threading import Event

import pytest

from tidings.api.group_commit import Batcher
from tidings.api.problem_details import HttpError
from tidings.errors import InputError


class Work:
    """Doubles numbers once it may; a zero raises an error."""

    def __init__(self) -> None:
        self.may = Event()
        self.done: list[list[int]] = []

    def __call__(self, some: Sequence[int]) -> list[int]:
        self.may.wait(60)
        self.done.append(list(some))
        if 0 in some:
            raise InputError("nothing")
        return [2 * one for one in some]


async def start(batcher: Batcher[int, int], *numbers: int) -> list[asyncio.Task[int]]:
    """Start to add these numbers, in this order."""
    tasks = [asyncio.create_task(batcher.add(number)) for number in numbers]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return tasks


def test_batcher_groups_items_that_arrive_during_batch() -> None:
    work = Work()

    async def ask() -> list[int]:
        batcher = Batcher(work, "numbers", max_batch=3)
        tasks = await start(batcher, 1)
        tasks += await start(batcher, 2, 3, 4, 5)
        work.may.set()
        return list(await asyncio.gather(*tasks))

    assert asyncio.run(ask()) == [2, 4, 6, 8, 10]
    assert work.done == [[1], [2, 3, 4], [5]]


def test_batcher_raises_errors_in_failed_batch_only() -> None:
    work = Work()

    async def ask() -> list[int | BaseException]:
        batcher = Batcher(work, "numbers", max_batch=2)
        tasks = await start(batcher, 1)
        tasks += await start(batcher, 0, 2, 3)
        work.may.set()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        return [*outcomes, await batcher.add(4)]

    first, *both, last, after = asyncio.run(ask())
    assert (first, last, after) == (2, 6, 8)
    assert [type(one) for one in both] == [InputError, InputError]


def test_batcher_with_cancelled_callers_finishes_batch() -> None:
    work = Work()

    async def ask() -> int:
        batcher = Batcher(work, "numbers")
        cancelled, *_ = await start(batcher, 1)
        both = await start(batcher, 2, 3)
        cancelled.cancel()
        both[0].cancel()
        work.may.set()
        return await both[1]

    assert asyncio.run(ask()) == 6
    assert work.done == [[1], [2, 3]], "a batch that was started is finished"


def test_batcher_with_full_queue_answers_503() -> None:
    work = Work()

    async def ask() -> list[int]:
        batcher = Batcher(work, "numbers", max_queue=2)
        tasks = await start(batcher, 1)
        tasks += await start(batcher, 2, 3)
        with pytest.raises(HttpError, match="too many numbers are waiting") as refused:
            await batcher.add(4)
        assert refused.value.status == 503
        work.may.set()
        return list(await asyncio.gather(*tasks))

    assert asyncio.run(ask()) == [2, 4, 6]

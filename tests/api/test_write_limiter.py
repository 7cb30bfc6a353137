"""The bounded queue of writes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from threading import Event

import pytest

from tidings.api.problem_details import HttpError
from tidings.api.write_limiter import WriteLimiter

LONG = 60.0


def test_write_limiter_with_full_queue_answers_503() -> None:
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

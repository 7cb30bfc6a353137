"""Tasks that a worker cannot finish: real Python workers of Spark that hang in compiled code or die.

    poisoned(monkeypatch, journal_task, "_build_stage")

wraps the function that creates the tasks. In the worker, it replaces the poisoned step while the task runs. The text of
the subscription or the body names the poison:

    hang       an endless loop in compiled code, which never returns to Python
    allocate   more memory than there is
    die        the process kills itself, as the kernel does when memory runs out
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
from pyspark import cloudpickle

EXPLAIN, DECODE, MATCH, METADATA = "explain", "decode", "match", "metadata"


def do_poison(text: str) -> None:
    """Apply the poison that a text names."""
    import os  # noqa: PLC0415 - this runs in the worker
    import signal  # noqa: PLC0415

    import numba  # noqa: PLC0415

    @numba.njit
    def spin() -> int:
        count = 0
        while count >= 0:
            count = (count + 1) % 1000
        return count

    if "hang" in text:
        spin()
    if "allocate" in text:
        bytearray(1 << 40)
    if "die" in text:
        os.kill(os.getpid(), signal.SIGKILL)


def in_worker(where: str) -> ExitStack:
    """Replace a step of the tasks by a poisoned one until the stack is closed."""
    from tidings.metadata import documents  # noqa: PLC0415 - this runs in the worker
    from tidings.spark import decoder  # noqa: PLC0415
    from tidings.spark.stream import match_task  # noqa: PLC0415

    stack = ExitStack()
    if where == EXPLAIN:
        read_publication = match_task._Part._read

        def poisoned_evaluator(self: Any, place: int) -> Any:
            evaluator = read_publication(self, place)

            def poisoned_explain(language: str, text: str) -> Any:
                do_poison(text)
                return evaluator.explain(language, text)

            return SimpleNamespace(explain=poisoned_explain)

        stack.enter_context(patch.object(match_task._Part, "_read", poisoned_evaluator))
    elif where == DECODE:
        decode = decoder.Decoder.decode

        def poisoned_decode(self: Any, media_type: str, buffer: Any, *rest: Any) -> Any:
            do_poison(buffer.tobytes().decode())
            return decode(self, media_type, buffer, *rest)

        stack.enter_context(patch.object(decoder.Decoder, "decode", poisoned_decode))
    elif where == METADATA:
        read = documents.DocumentReader.read

        def poisoned_read(self: Any, body: bytes, *rest: Any) -> Any:
            do_poison(body.decode())
            return read(self, body, *rest)

        stack.enter_context(patch.object(documents.DocumentReader, "read", poisoned_read))
    else:
        match = match_task.match_decoded

        def poisoned_match(decoded: Any, media_type: str, index: Any) -> Any:
            for id in index.ids.to_pylist():
                do_poison(id)
            yield from match(decoded, media_type, index)

        stack.enter_context(patch.object(match_task, "match_decoded", poisoned_match))
    return stack


def poisoned(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, *where: str) -> None:
    """Poison these steps of the tasks of a module."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    build = getattr(module, name)

    def poisoned_tasks(*args: Any, **kwargs: Any) -> Callable[[Any], Iterator[Any]]:
        run = build(*args, **kwargs)

        def in_task(batches: Any) -> Iterator[Any]:
            with ExitStack() as stack:
                for each in where:
                    stack.enter_context(in_worker(each))
                yield from run(batches)

        return in_task

    monkeypatch.setattr(module, name, poisoned_tasks)

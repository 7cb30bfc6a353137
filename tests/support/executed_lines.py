"""Counts of executed lines: a measure of cost that does not depend on the machine or its load."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def count_executed_lines(call: Callable[[], Any], module: str) -> int:
    """Return the number of lines of a module that a call executes, counting each iteration of loops."""
    count = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        if frame.f_globals.get("__name__", "").startswith(module):
            count += event == "line"
            return trace
        return None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return count

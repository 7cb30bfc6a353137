"""How much Python a call executes: a measure of its cost that does not depend on the machine or its load."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def count_executed_lines(call: Callable[[], Any], module: str) -> int:
    """Return how many lines of a module a call executes, each turn of a loop counted."""
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

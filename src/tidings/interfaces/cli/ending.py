"""Whoever has asked a service to end, and waits, is told for what.

^Cwaiting for 1 request (5 seconds) and the stream, which ends after its batch, for 20 seconds at most
Ctrl-C once more does not wait; what was published and told is in the store
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Timer
from typing import TYPE_CHECKING

from tidings.counts import plural
from tidings.interfaces.cli import output

if TYPE_CHECKING:
    from tidings.operating.under_way import UnderWay

QUIET_SECONDS = 1.0
"""What ends sooner needs no words."""


class Ending:
    """Says, a while after `begin`, what is under way still; nothing if that is nothing, or it is over by then. `hush`
    ends what else is written to the terminal.
    """

    def __init__(self, under_way: UnderWay, drain: float, hush: Callable[[], object] = lambda: None) -> None:
        self._under_way, self._drain, self._hush = under_way, drain, hush
        self._timer = Timer(QUIET_SECONDS, self.say)
        self._timer.daemon = True

    def begin(self) -> None:
        self._timer.start()

    def end(self) -> None:
        self._timer.cancel()
        self._hush()

    def say(self) -> None:
        """One line for what is waited for, and one for how not to wait."""
        if found := self._under_way.said():
            self._hush()
            output.note(f"waiting for {_together(found)}, for {self._drain:g} seconds at most")
            output.note("Ctrl-C once more does not wait; what was published and told is in the store")


def requests(count: int, seconds: float) -> str | None:
    """Those that are being answered, which are waited for less long than all else."""
    return f"{plural(count, 'request')} ({seconds:g} seconds)" if count else None


def _together(found: list[str]) -> str:
    *first, last = found
    return f"{', '.join(first)} and {last}" if first else last

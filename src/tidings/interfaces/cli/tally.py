"""How many of many were taken, were there already, or were refused."""

from __future__ import annotations

from dataclasses import dataclass

from tidings.counts import plural


@dataclass
class Tally:
    """What became of several things so far: `what` they are, and what has been `done` with those that were taken."""

    what: str
    done: str
    new: int = 0
    again: int = 0
    refused: int = 0

    def count(self, is_new: bool | None) -> None:
        """One more; none is a refusal."""
        if is_new is None:
            self.refused += 1
        elif is_new:
            self.new += 1
        else:
            self.again += 1

    def describe(self) -> str:
        again = f", {self.again:,} known already" if self.again else ""
        refused = f", {self.refused:,} refused" if self.refused else ""
        return f"{plural(self.new, self.what)} {self.done}{again}{refused}"

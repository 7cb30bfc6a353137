"""What a service has begun and not yet ended: each of its parts says it in words, if there is something."""

from __future__ import annotations

from collections.abc import Callable

from tidings.counts import plural

Look = Callable[[], str | None]
"""What is under way, in words, or nothing."""


class UnderWay:
    """What whoever ends the service waits for."""

    def __init__(self) -> None:
        self._looks: list[Look] = []

    def watch(self, look: Look) -> None:
        """Ask this whenever somebody asks."""
        self._looks.append(look)

    def count(self, how_many: Callable[[], int], of: str) -> None:
        """The same for what can be counted."""
        self.watch(lambda: plural(count, of) if (count := how_many()) else None)

    def said(self) -> list[str]:
        """All that is under way now."""
        return [said for look in self._looks if (said := look())]

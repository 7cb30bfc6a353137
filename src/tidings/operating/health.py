"""Whether a service is well: each of its parts says what is wrong with it, if something is."""

from __future__ import annotations

from collections.abc import Callable, Mapping

Check = Callable[[], str | None]
"""What is wrong, or nothing."""


class Health:
    """The checks of a service, by name."""

    def __init__(self) -> None:
        self._checks: dict[str, Check] = {}

    def watch(self, name: str, check: Check) -> None:
        """Ask this whenever somebody asks."""
        self._checks[name] = check

    def report(self) -> Mapping[str, str | None]:
        """What is wrong, by name; None where nothing is."""
        return {name: check() for name, check in self._checks.items()}

"""Whether a service is well: each of its parts says what is wrong with it, if something is."""

from __future__ import annotations

from collections.abc import Callable, Mapping

Check = Callable[[], str | None]
"""What is wrong, or nothing."""
Lives = Callable[[], bool]
"""Whether it still works, or will again by itself."""


class Health:
    """The checks of a service, by name."""

    def __init__(self) -> None:
        self._checks: dict[str, Check] = {}
        self._lives: dict[str, Lives] = {}

    def watch(self, name: str, check: Check, lives: Lives = lambda: True) -> None:
        """Ask this whenever somebody asks."""
        self._checks[name], self._lives[name] = check, lives

    def report(self) -> Mapping[str, str | None]:
        """What is wrong, by name; None where nothing is."""
        return {name: check() for name, check in self._checks.items()}

    def ended(self) -> list[str]:
        """The parts that nothing but a new start brings back."""
        return [name for name, lives in self._lives.items() if not lives()]

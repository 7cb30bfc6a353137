"""Whether a service is well: each of its parts says what is wrong with it, if something is."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tidings.core.text import plural

HealthCheck = Callable[[], str | None]
"""What is wrong, or nothing."""
LivenessCheck = Callable[[], bool]
"""Whether it still works, or will again by itself."""


class Health:
    """The checks of a service, by name."""

    def __init__(self) -> None:
        self._checks: dict[str, HealthCheck] = {}
        self._lives: dict[str, LivenessCheck] = {}

    def watch(self, name: str, check: HealthCheck, lives: LivenessCheck = lambda: True) -> None:
        """Ask this whenever somebody asks."""
        self._checks[name], self._lives[name] = check, lives

    def report(self) -> Mapping[str, str | None]:
        """What is wrong, by name; None where nothing is."""
        return {name: check() for name, check in self._checks.items()}

    def ended(self) -> list[str]:
        """The parts that nothing but a new start brings back."""
        return [name for name, lives in self._lives.items() if not lives()]


# What a service has begun and not yet ended: each of its parts says it in words, if there is something.


PendingCheck = Callable[[], str | None]
"""What is under way, in words, or nothing."""


class PendingWork:
    """What whoever ends the service waits for."""

    def __init__(self) -> None:
        self._looks: list[PendingCheck] = []

    def watch(self, look: PendingCheck) -> None:
        """Ask this whenever somebody asks."""
        self._looks.append(look)

    def count(self, how_many: Callable[[], int], of: str) -> None:
        """The same for what can be counted."""
        self.watch(lambda: plural(count, of) if (count := how_many()) else None)

    def said(self) -> list[str]:
        """All that is under way now."""
        return [said for look in self._looks if (said := look())]

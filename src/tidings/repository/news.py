"""What a repository says while it runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tidings.store.repository_changes import Applied


@dataclass(frozen=True, slots=True)
class Connected:
    """A provider was reached, and goes on from where it told last. `moved` if it is another one than before."""

    link: str
    position: int
    moved: bool


@dataclass(frozen=True, slots=True)
class Refreshed:
    """Everything was asked for, because of something, and what was different was applied."""

    link: str
    position: int
    because: str
    applied: Applied
    resources: int


@dataclass(frozen=True, slots=True)
class Followed:
    """Moves were applied."""

    link: str
    position: int
    moves: int
    applied: Applied
    resources: int


@dataclass(frozen=True, slots=True)
class CutOff:
    """A provider cannot be followed now; the next is tried, or the same again after so many seconds."""

    link: str
    problem: str
    retry: float
    resources: int


News = Connected | Refreshed | Followed | CutOff
Listener = Callable[[News], None]

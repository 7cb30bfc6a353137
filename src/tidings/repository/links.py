"""How a repository reaches a provider, whatever lies between: over HTTP, or in the same process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from tidings.metadata.change_sets import ChangeSet, State


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a provider is in the log. `leads` if the log is its own, so that nobody is ahead of it."""

    provider: str
    position: int
    leads: bool


@dataclass(frozen=True, slots=True)
class SchemaText:
    """A provider's schema as it is written there; `version` is told with each change set."""

    version: int
    media_type: str
    body: bytes


class Link(Protocol):
    """A way to a provider, for one repository. What is not there any more is `Gone`; who cannot be reached is
    `Unreachable`."""

    name: str

    def standing(self) -> Standing:
        """Where the provider is."""

    def schema(self) -> SchemaText:
        """Its schema."""

    def rules(self) -> dict[str, str]:
        """The rules that it has of this repository."""

    def set_rules(self, rules: Mapping[str, str]) -> None:
        """Make these the rules that it has of this repository."""

    def changes(self, after: int, limit: int, wait: float) -> ChangeSet:
        """What moved after a number; if nothing did, that is waited for."""

    def state(self) -> State:
        """All members of all rules, with what belongs to them."""

    def forget(self) -> None:
        """Have this repository's rules, and what it was told, forgotten there."""

    def end(self) -> None:
        """Let nobody wait any more."""

    def close(self) -> None:
        """Let go of what is held."""

"""Messages from a provider to a repository: changes in the results of its rules, with the resources it needs.

    ChangeSet          moves after a sequence number, with resources that entered or changed and their strong closure
    RepositoryState    the whole state: the members of each rule, with the resources they need

Both are snapshots of one moment. If a change set is limited (`more`), its resources can be newer than its moves: a
resource that has left since may be missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tidings.errors import InputError
from tidings.metadata.resources import (
    Resource,
    parse_natural,
    parse_text,
    resource_from_json,
    resource_to_json,
)

MOVE_KINDS = ("entered", "changed", "left")


@dataclass(frozen=True, slots=True)
class Move:
    """A resource that `entered`, `changed` in or `left` the results of a rule, and when the provider recorded it."""

    sequence: int
    rule: str
    uri: str
    kind: str
    time: str


@dataclass(frozen=True, slots=True)
class ChangeSet:
    """Moves in order, at a position of a provider's log. Read on after `sequence`; `more` means that more exist.

    `schema` is the version of the provider's schema: another version may have other classes.
    """

    provider: str
    position: int
    schema: int
    sequence: int
    moves: tuple[Move, ...]
    resources: tuple[Resource, ...]
    more: bool = False


@dataclass(frozen=True, slots=True)
class RepositoryState:
    """All members of a repository's rules, at a position of a provider's log. Read on after `sequence`."""

    provider: str
    position: int
    schema: int
    sequence: int
    members: Mapping[str, tuple[str, ...]]
    resources: tuple[Resource, ...]


def changes_to_json(changes: ChangeSet) -> dict[str, Any]:
    """Convert a change set to a JSON object."""
    moves = [asdict(move) for move in changes.moves]
    return {
        **_header_to_json(changes),
        "more": changes.more,
        "moves": moves,
        "resources": list(map(resource_to_json, changes.resources)),
    }


def changes_from_json(record: Mapping[str, Any]) -> ChangeSet:
    """Parse the result of `changes_to_json`; raise InputError for anything else."""
    try:
        moves = tuple(map(_move_from_json, record["moves"]))
        resources = tuple(map(resource_from_json, record["resources"]))
        return ChangeSet(*_header_from_json(record), moves, resources, bool(record["more"]))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _invalid("a change set", record) from error


def state_to_json(state: RepositoryState) -> dict[str, Any]:
    """Convert a state to a JSON object."""
    members = {rule: list(uris) for rule, uris in state.members.items()}
    return {
        **_header_to_json(state),
        "members": members,
        "resources": list(map(resource_to_json, state.resources)),
    }


def state_from_json(record: Mapping[str, Any]) -> RepositoryState:
    """Parse the result of `state_to_json`; raise InputError for anything else."""
    try:
        members = {parse_text(rule): _texts_from_json(uris) for rule, uris in record["members"].items()}
        resources = tuple(map(resource_from_json, record["resources"]))
        return RepositoryState(*_header_from_json(record), members, resources)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _invalid("a state", record) from error


def _move_from_json(record: Mapping[str, Any]) -> Move:
    rule, uri, kind, time = (parse_text(record[name]) for name in ("rule", "uri", "kind", "time"))
    if kind not in MOVE_KINDS:
        raise ValueError(f"unknown kind of move: {kind}")
    return Move(parse_natural(record["sequence"]), rule, uri, kind, time)


def _texts_from_json(values: object) -> tuple[str, ...]:
    if not isinstance(values, list):
        raise TypeError("not a list")
    return tuple(map(parse_text, values))


def _header_to_json(message: ChangeSet | RepositoryState) -> dict[str, Any]:
    return {name: getattr(message, name) for name in ("provider", "position", "schema", "sequence")}


def _header_from_json(record: Mapping[str, Any]) -> tuple[str, int, int, int]:
    provider, *numbers = (record[name] for name in ("provider", "position", "schema", "sequence"))
    position, schema, sequence = map(parse_natural, numbers)
    return parse_text(provider), position, schema, sequence


def _invalid(description: str, record: object) -> InputError:
    return InputError(f"not {description} of a provider", received=repr(record)[:200])


UNSETTLED = -1
"""The sequence of a cursor that has a position only."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """Read position of a repository: the provider, the last move with its mark, and the position in the log."""

    provider: str
    sequence: int
    position: int
    mark: str = ""

    @property
    def is_settled(self) -> bool:
        """Whether a repository can read on by change sets. Otherwise it needs the whole state."""
        return self.sequence != UNSETTLED

    def after(self, changes: ChangeSet) -> Cursor:
        """Advance past a change set. Even one without moves can have a later position."""
        mark = compute_mark(changes.moves[-1]) if changes.moves else self.mark
        return Cursor(changes.provider, changes.sequence, changes.position, mark)


def compute_mark(move: Move) -> str:
    """Return the identity of a move, by which a repository detects a restored provider.

    A provider restored from an older backup reuses sequence numbers for other moves.
    """
    return " ".join((str(move.sequence), move.kind, move.rule, move.uri, move.time))

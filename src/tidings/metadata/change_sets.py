"""What a provider tells a repository: what moved in the results of its rules, and the resources that it needs for that.

    changes    moves after a sequence number, with the resources that entered or changed and all they refer to strongly
    state      everything at once: the members of each rule, and the resources they need

Both are as of one moment. Where there are more moves than were asked for, resources are ahead of the moves until the
last of them was fetched (`more`): what has left since may not be there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
    """A resource that `entered`, `changed` in or `left` the results of a rule, and when the provider noted that."""

    sequence: int
    rule: str
    uri: str
    kind: str
    time: str


@dataclass(frozen=True, slots=True)
class ChangeSet:
    """Moves in order, as of a position of a provider; `sequence` is where to read on, `more` if there is more now.

    `schema` is the version of the provider's schema: with another one, there may be other classes.
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
    """All members of a repository's rules, as of a position of a provider; `sequence` is where to read on."""

    provider: str
    position: int
    schema: int
    sequence: int
    members: Mapping[str, tuple[str, ...]]
    resources: tuple[Resource, ...]


def changes_to_json(told: ChangeSet) -> dict[str, Any]:
    """A change set as what `json.dumps` takes."""
    moves = [asdict(each) for each in told.moves]
    return {**_head(told), "more": told.more, "moves": moves, "resources": _resources(told.resources)}


def changes_from_json(record: Mapping[str, Any]) -> ChangeSet:
    """The change set of `changes_to_json`. Anything else is refused."""
    try:
        moves = tuple(map(_move, record["moves"]))
        resources = tuple(map(resource_from_json, record["resources"]))
        return ChangeSet(*_where(record), moves, resources, bool(record["more"]))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _not_one("a change set", record) from error


def state_to_json(told: RepositoryState) -> dict[str, Any]:
    """A state as what `json.dumps` takes."""
    members = {rule: list(uris) for rule, uris in told.members.items()}
    return {**_head(told), "members": members, "resources": _resources(told.resources)}


def state_from_json(record: Mapping[str, Any]) -> RepositoryState:
    """The state of `state_to_json`. Anything else is refused."""
    try:
        members = {parse_text(rule): _texts(uris) for rule, uris in record["members"].items()}
        return RepositoryState(*_where(record), members, tuple(map(resource_from_json, record["resources"])))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _not_one("a state", record) from error


def _move(record: Mapping[str, Any]) -> Move:
    rule, uri, kind, time = (parse_text(record[name]) for name in ("rule", "uri", "kind", "time"))
    if kind not in MOVE_KINDS:
        raise ValueError(f"{kind} is no kind of move")
    return Move(parse_natural(record["sequence"]), rule, uri, kind, time)


def _texts(given: object) -> tuple[str, ...]:
    if not isinstance(given, list):
        raise TypeError("no list")
    return tuple(map(parse_text, given))


def _head(told: ChangeSet | RepositoryState) -> dict[str, Any]:
    return {name: getattr(told, name) for name in ("provider", "position", "schema", "sequence")}


def _where(record: Mapping[str, Any]) -> tuple[str, int, int, int]:
    provider, *numbers = (record[name] for name in ("provider", "position", "schema", "sequence"))
    position, schema, sequence = map(parse_natural, numbers)
    return parse_text(provider), position, schema, sequence


def _resources(resources: Iterable[Resource]) -> list[dict[str, Any]]:
    return [resource_to_json(each) for each in resources]


def _not_one(what: str, record: object) -> InputError:
    return InputError(f"this is not {what} of a provider", received=repr(record)[:200])


# How far a repository is in what its provider tells.


UNSETTLED = -1
"""The sequence of a cursor of which only the position counts."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """The provider, the last move that it told, with its mark, and the position in the log it was at then."""

    provider: str
    sequence: int
    position: int
    mark: str = ""

    @property
    def is_settled(self) -> bool:
        """Whether the moves after it are all that is missing. If not, only the whole state will do."""
        return self.sequence != UNSETTLED

    def after(self, told: ChangeSet) -> Cursor:
        """The cursor after a change set. One without moves may have a position that is further on."""
        mark = compute_mark(told.moves[-1]) if told.moves else self.mark
        return Cursor(told.provider, told.sequence, told.position, mark)


def compute_mark(move: Move) -> str:
    """By this a repository knows again what it was told last: a provider that was restored from an older store counts
    on from there, and tells something else under the same number."""
    return " ".join((str(move.sequence), move.kind, move.rule, move.uri, move.time))

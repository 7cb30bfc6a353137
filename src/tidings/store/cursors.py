"""How far a repository is in what its provider tells."""

from __future__ import annotations

from dataclasses import dataclass

from tidings.metadata.change_sets import ChangeSet, Move

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
        mark = mark_of(told.moves[-1]) if told.moves else self.mark
        return Cursor(told.provider, told.sequence, told.position, mark)


def mark_of(move: Move) -> str:
    """By this a repository knows again what it was told last: a provider that was restored from an older store counts
    on from there, and tells something else under the same number."""
    return " ".join((str(move.sequence), move.kind, move.rule, move.uri, move.time))

"""What becomes of many, one a line: each is told, and in the end how many were taken, known already and refused."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import typer

from tidings.counts import plural
from tidings.interfaces.cli import output

if TYPE_CHECKING:
    from tidings.errors import TextWarning
    from tidings.store import Added, Appended


@dataclass
class Tally:
    """What became of several things so far: `what` they are, and what has been `done` with those that were taken."""

    what: str
    done: str
    as_json: bool
    new: int = 0
    again: int = 0
    refused: int = 0

    def take(self, outcome: Added | Appended, where: str = "", warnings: Sequence[TextWarning] = ()) -> None:
        """Count and print one that was taken, or was there already; with the warnings about it, if there are any."""
        if outcome.new:
            self.new += 1
        else:
            self.again += 1
        if self.as_json:
            facts = [warning.facts() for warning in warnings]
            output.json_line(asdict(outcome) | ({"warnings": facts} if facts else {}))
            return
        for warning in warnings:
            output.warned(where, warning)

    def refuse(self, where: str, facts: Mapping[str, Any], reason: str, hint: object = None) -> None:
        """One that was not, with the reason: in words, or as facts for machines."""
        self.refused += 1
        if self.as_json:
            sys.stderr.write(json.dumps({"where": where, **facts}, ensure_ascii=False) + "\n")
        else:
            output.refused(where, reason, hint)

    def describe(self) -> str:
        again = f", {self.again:,} known already" if self.again else ""
        refused = f", {self.refused:,} refused" if self.refused else ""
        return f"{plural(self.new, self.what)} {self.done}{again}{refused}"

    def end(self) -> None:
        """Say how many there were of each; the exit code says whether some were refused."""
        if not self.as_json:
            output.line(self.describe())
        if self.refused:
            raise typer.Exit(output.WITH_REJECTS)

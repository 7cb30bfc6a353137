"""Documents on their way into the log of metadata: many at once, and those that `tidings run` applies."""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import typer

from tidings.counts import plural
from tidings.errors import InputError
from tidings.interfaces.cli import metadata_inputs, output
from tidings.metadata.log import Draft
from tidings.metadata.problems import SHOWN, MetadataError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidings.interfaces.cli.metadata_inputs import Given
    from tidings.provider import Provider, Registered


def one_later(provider: Provider, draft: Draft, as_json: bool) -> None:
    """Something for the log, that is all."""
    [position] = provider.append([draft])
    if as_json:
        output.json_line({"uri": draft.uri, "position": position})
    else:
        output.line((draft.uri, "bold cyan"), f"position {position}", ("for tidings run", "dim"))


def many(provider: Provider, place: str, base: str | None, later: bool, as_json: bool) -> None:
    """Documents in batches, as they come; each batch is in the log, and applied unless that is for later."""
    tally = Tally()
    for batch in metadata_inputs.batches(place, base):
        outcomes = _offered(provider, batch)
        for given, outcome in zip(batch, outcomes, strict=True):
            tally.refused += isinstance(outcome, InputError)
            tally.registered += isinstance(outcome, int)
            _tell(given, outcome, as_json)
        if not later:
            for done in provider.catch_up():
                tally.count(done)
    if not as_json:
        output.line(tally.describe(later))
    if tally.refused:
        raise typer.Exit(output.WITH_REJECTS)


def _offered(provider: Provider, batch: Sequence[Given]) -> list[int | InputError]:
    """What became of each: where it stands in the log, or why it does not."""
    drafts = [given.document for given in batch if isinstance(given.document, Draft)]
    outcomes = iter(provider.offer(drafts))
    return [next(outcomes) if isinstance(given.document, Draft) else given.document for given in batch]


@dataclass
class Tally:
    """What became of many documents so far."""

    registered: int = 0
    refused: int = 0
    moved: Counter[str] = field(default_factory=Counter)

    def count(self, done: Registered) -> None:
        for kind in ("entered", "changed", "left"):
            self.moved[kind] += len(getattr(done.outcome, kind))

    def describe(self, later: bool) -> str:
        refused = f", {self.refused:,} refused" if self.refused else ""
        done, then = ("in the log", "; tidings run applies them") if later else ("registered", "")
        moves = "".join(f", {count:,} {kind}" for kind, count in self.moved.items() if count)
        return f"{plural(self.registered, 'document')} {done}{refused}{moves}{then}"


def _tell(given: Given, outcome: int | InputError, as_json: bool) -> None:
    if isinstance(outcome, InputError):
        _refuse(given.where, outcome, as_json)
    elif as_json and isinstance(given.document, Draft):
        output.json_line({"uri": given.document.uri, "position": outcome})


def _refuse(where: str, problem: InputError, as_json: bool) -> None:
    """A line for all that is wrong with a document."""
    if as_json:
        sys.stderr.write(json.dumps({"document": where, **problem.facts()}, ensure_ascii=False) + "\n")
    elif isinstance(problem, MetadataError):
        for finding in problem.findings[:SHOWN]:
            output.refused(where, finding.error().message())
    else:
        output.refused(where, problem.message(), problem.hint)

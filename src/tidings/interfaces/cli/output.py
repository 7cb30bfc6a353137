"""Everything the command line prints: words and tables for people, JSON Lines for machines.

Results go to standard output and everything about them (errors, progress, what was refused) to standard error, so that
`tidings ... --json | jq` always works. Colours are for terminals only.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.status import Status
from rich.table import Table
from rich.text import Text

from tidings import durations
from tidings.counts import plural
from tidings.errors import PublicationError, TextWarning, TidingsError
from tidings.model import Notification, Subscription
from tidings.reasons import because, bound, change_of, one_line, show_change, show_limits

if TYPE_CHECKING:
    from tidings.service import Subscribed

WITH_REJECTS = 3
"""The exit code of work that is done, but not with all of its input."""


def console(*, stderr: bool = False) -> Console:
    """A console of the stream as it is now; off a terminal nothing is wrapped, coloured or cut."""
    stream = sys.stderr if stderr else sys.stdout
    return Console(file=stream, highlight=False, soft_wrap=True, emoji=False)


def line(*cells: str | tuple[str, str], stderr: bool = False) -> None:
    """One line of cells; a cell may carry a style."""
    text = Text("  ").join(Text(cell) if isinstance(cell, str) else Text(*cell) for cell in cells)
    console(stderr=stderr).print(text)


def note(message: str) -> None:
    """Something about the work, not its result."""
    console(stderr=True).print(Text(message, "dim"))


@contextmanager
def waiting(words: str) -> Iterator[Callable[[str], None]]:
    """Something turns beside the words while this is open, on terminals. It gives a function that changes the words."""
    to = console(stderr=True)
    if not to.is_terminal:
        yield lambda words: None
        return
    with Status(words, console=to) as status:
        yield status.update


def json_line(record: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(record, ensure_ascii=False, separators=(", ", ": ")) + "\n")
    sys.stdout.flush()


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table for people: folded to the terminal's width, whole where there is none."""
    to = console()
    drawn = Table(*header, box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for row in rows:
        drawn.add_row(*(Text(cell, overflow="fold") for cell in row))
    width = to.width if to.is_terminal else 100_000
    for segments in to.render_lines(drawn, to.options.update(width=width), pad=False):
        drawn_line = Text.assemble(*((s.text, s.style or "") for s in segments))
        drawn_line.rstrip()
        to.print(drawn_line)


def error(problem: TidingsError, as_json: bool = False, *, stderr: bool = True) -> None:
    """What was wrong, where (drawn), and what to do about it."""
    if as_json:
        sys.stderr.write(json.dumps(problem.facts(), ensure_ascii=False) + "\n")
        return
    label = "refused" if isinstance(problem, PublicationError) else "error"
    headline, *drawing = problem.message().split("\n")
    to = console(stderr=stderr)
    to.print(Text.assemble((f"{label}: ", "bold red"), (headline, "bold")))
    for drawn in drawing:
        to.print(_coloured(drawn))


def refused(what: str, reason: str, hint: object = None) -> None:
    """One of many: a line, without the drawing; a hint that stands in the drawing follows the line."""
    headline, *drawing = reason.split("\n", 1)
    headline += f"; {hint}" if drawing and hint else ""
    console(stderr=True).print(Text.assemble(("refused: ", "bold red"), f"{what}: {headline}"))


def _coloured(drawn: str) -> Text:
    under = re.fullmatch(r"( *)(\^+)(.*)", drawn)
    if under is None:
        return Text(drawn)
    return Text.assemble(under[1], (under[2], "bold red"), (under[3], "yellow"))


def subscribed(made: Subscribed, colour: str = "") -> None:
    how = f"{plural(made.predicates, 'predicate')}, reached through {made.reached_through}"
    how += f", told within {durations.show(made.within)}" if made.within else ""
    line((made.id, "bold cyan"), (made.subscriber, colour), (made.language, "dim"), how)
    for warning in made.warnings:
        text_warning(warning)


def text_warning(warning: TextWarning) -> None:
    """Print a warning about an accepted text, with its place underlined."""
    headline, *drawing = warning.message().split("\n")
    to = console(stderr=True)
    to.print(Text.assemble(("warning: ", "bold yellow"), headline))
    for drawn in drawing:
        to.print(_coloured(drawn))


def warned(where: str, warning: TextWarning) -> None:
    """Print a warning about one of many texts: a line, without the drawing."""
    hint = f"; {warning.hint}" if warning.hint else ""
    console(stderr=True).print(
        Text.assemble(("warning: ", "bold yellow"), f"{where}: {warning.headline()}{hint}")
    )


def record(one: Subscribed | Subscription) -> dict[str, object]:
    """The fields of a subscription, with the delay as people and subscription files write it."""
    return asdict(one) | {"within": delay(one) or None}


def subscribed_record(made: Subscribed) -> dict[str, object]:
    """The fields of a subscription that was made, with the warnings about its text."""
    return record(made) | {"warnings": [warning.facts() for warning in made.warnings]}


def delay(one: Subscribed | Subscription) -> str:
    """The delay that a subscription accepts; empty if it accepts none."""
    return "" if one.within is None else durations.show(one.within)


def removed(named: dict[str, str], found: bool, done: str, missing: str, as_json: bool) -> None:
    """What became of something to be removed; if there was none, the command ends with the code of that."""
    [name] = named.values()
    if as_json:
        json_line({**named, "removed": found})
    elif found:
        line((name, "bold cyan"), done)
    else:
        line((name, "bold red"), missing, stderr=True)
    if not found:
        raise typer.Exit(WITH_REJECTS)


def notification(found: Notification, as_json: bool) -> None:
    if as_json:
        json_line(notification_record(found))
        return
    line(
        (f"#{found.sequence}", "bold cyan"),
        (found.subscription, "dim"),
        *((found.publication, "dim") for _ in range(bool(found.publication))),
        *((each, "green") for each in (bound(found.bindings), show_change(found)) if each),
        _why(found),
        *((limits, "yellow") for limits in (show_limits(found),) if limits),
    )


def _why(found: Notification) -> str:
    """Rules over metadata tell what a resource did; of subscriptions a match is all there is, or that it is
    withheld. What an object did stands before the reasons."""
    why = because(found.because)
    if change_of(found) is not None:
        return one_line(why)
    if found.kind == "matched":
        return why
    return f"{found.kind}: {why}" if why else found.kind


def notification_record(found: Notification) -> dict[str, Any]:
    """The fields of a notification, in the order a reader wants them."""
    reasons = [{"predicate": r.predicate, "value": r.value, "at": r.at} for r in found.because]
    return {
        "id": found.id,
        "subscriber": found.subscriber,
        "sequence": found.sequence,
        "kind": found.kind,
        "subscription": found.subscription,
        "publication": found.publication,
        "time": found.time,
        "because": reasons,
        "bindings": found.bindings,
    }

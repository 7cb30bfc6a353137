"""Everything the command line prints: words and tables for people, JSON Lines for machines.

Results go to standard output and everything about them (errors, progress, what was refused) to standard error, so that
`tidings ... --json | jq` always works. Colours are for terminals only.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.status import Status
from rich.table import Table
from rich.text import Text

from tidings.core import durations
from tidings.core.text import plural
from tidings.errors import InputError, PublicationError, TextWarning, TidingsError
from tidings.model import Notification, Subscription
from tidings.notification_text import (
    escape_line,
    find_change,
    format_bindings,
    format_change,
    format_limits,
    format_reasons,
)

if TYPE_CHECKING:
    from tidings.core.drawing.picture import Picture
    from tidings.metadata.resources import Resource, Value
    from tidings.service.subscriptions import AcceptedSubscription
    from tidings.store.journal import AppendResult
    from tidings.store.subscriptions.admission import AddedSubscription
    from tidings.values import Scalar


EXIT_WITH_REJECTS = 3
"""The exit code of work that is done, but not with all of its input."""


def make_console(*, stderr: bool = False) -> Console:
    """A console of the stream as it is now; off a terminal nothing is wrapped, coloured or cut."""
    stream = sys.stderr if stderr else sys.stdout
    return Console(file=stream, highlight=False, soft_wrap=True, emoji=False)


def print_line(*cells: str | tuple[str, str], stderr: bool = False) -> None:
    """One line of cells; a cell may carry a style."""
    text = Text("  ").join(Text(cell) if isinstance(cell, str) else Text(*cell) for cell in cells)
    make_console(stderr=stderr).print(text)


def print_note(message: str) -> None:
    """Something about the work, not its result."""
    make_console(stderr=True).print(Text(message, "dim"))


@contextmanager
def show_spinner(words: str) -> Iterator[Callable[[str], None]]:
    """Something turns beside the words while this is open, on terminals. It gives a function that changes the words."""
    to = make_console(stderr=True)
    if not to.is_terminal:
        yield lambda words: None
        return
    with Status(words, console=to) as status:
        yield status.update


def print_json(record: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(record, ensure_ascii=False, separators=(", ", ": ")) + "\n")
    sys.stdout.flush()


def print_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table for people: folded to the terminal's width, whole where there is none."""
    to = make_console()
    drawn = Table(*header, box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for row in rows:
        drawn.add_row(*(Text(cell, overflow="fold") for cell in row))
    width = to.width if to.is_terminal else 100_000
    for segments in to.render_lines(drawn, to.options.update(width=width), pad=False):
        drawn_line = Text.assemble(*((s.text, s.style or "") for s in segments))
        drawn_line.rstrip()
        to.print(drawn_line)


def print_error(problem: TidingsError, as_json: bool = False, *, stderr: bool = True) -> None:
    """What was wrong, where (drawn), and what to do about it."""
    if as_json:
        sys.stderr.write(json.dumps(problem.facts(), ensure_ascii=False) + "\n")
        return
    label = "refused" if isinstance(problem, PublicationError) else "error"
    headline, *drawing = problem.message().split("\n")
    to = make_console(stderr=stderr)
    to.print(Text.assemble((f"{label}: ", "bold red"), (headline, "bold")))
    for drawn in drawing:
        to.print(_highlight_marker(drawn))


def print_refusal(what: str, reason: str, hint: object = None) -> None:
    """One of many: a line, without the drawing; a hint that stands in the drawing follows the line."""
    headline, *drawing = reason.split("\n", 1)
    headline += f"; {hint}" if drawing and hint else ""
    make_console(stderr=True).print(Text.assemble(("refused: ", "bold red"), f"{what}: {headline}"))


def _highlight_marker(drawn: str) -> Text:
    under = re.fullmatch(r"( *)(\^+)(.*)", drawn)
    if under is None:
        return Text(drawn)
    return Text.assemble(under[1], (under[2], "bold red"), (under[3], "yellow"))


def print_subscription(made: AcceptedSubscription, colour: str = "") -> None:
    how = f"{plural(made.predicates, 'predicate')}, reached through {made.reached_through}"
    how += f", told within {durations.show(made.within)}" if made.within else ""
    print_line((made.id, "bold cyan"), (made.subscriber, colour), (made.language, "dim"), how)
    for warning in made.warnings:
        print_warning(warning)


def print_warning(warning: TextWarning) -> None:
    """Print a warning about an accepted text, with its place underlined."""
    headline, *drawing = warning.message().split("\n")
    to = make_console(stderr=True)
    to.print(Text.assemble(("warning: ", "bold yellow"), headline))
    for drawn in drawing:
        to.print(_highlight_marker(drawn))


def print_warning_line(where: str, warning: TextWarning) -> None:
    """Print a warning about one of many texts: a line, without the drawing."""
    hint = f"; {warning.hint}" if warning.hint else ""
    make_console(stderr=True).print(
        Text.assemble(("warning: ", "bold yellow"), f"{where}: {warning.headline()}{hint}")
    )


def subscription_record(one: AcceptedSubscription | Subscription) -> dict[str, object]:
    """The fields of a subscription, with the delay as people and subscription files write it."""
    return asdict(one) | {"within": format_delay(one) or None}


def new_subscription_record(made: AcceptedSubscription) -> dict[str, object]:
    """The fields of a subscription that was made, with the warnings about its text."""
    return subscription_record(made) | {"warnings": [warning.facts() for warning in made.warnings]}


def format_delay(one: AcceptedSubscription | Subscription) -> str:
    """The delay that a subscription accepts; empty if it accepts none."""
    return "" if one.within is None else durations.show(one.within)


def print_removal(named: dict[str, str], found: bool, done: str, missing: str, as_json: bool) -> None:
    """What became of something to be removed; if there was none, the command ends with the code of that."""
    [name] = named.values()
    if as_json:
        print_json({**named, "removed": found})
    elif found:
        print_line((name, "bold cyan"), done)
    else:
        print_line((name, "bold red"), missing, stderr=True)
    if not found:
        raise typer.Exit(EXIT_WITH_REJECTS)


def print_notification(found: Notification, as_json: bool) -> None:
    if as_json:
        print_json(notification_record(found))
        return
    print_line(
        (f"#{found.sequence}", "bold cyan"),
        (found.subscription, "dim"),
        *((found.publication, "dim") for _ in range(bool(found.publication))),
        *((each, "green") for each in (format_bindings(found.bindings), format_change(found)) if each),
        _format_reason(found),
        *((limits, "yellow") for limits in (format_limits(found),) if limits),
    )


def _format_reason(found: Notification) -> str:
    """Rules over metadata tell what a resource did; of subscriptions a match is all there is, or that it is
    withheld. What an object did stands before the reasons."""
    why = format_reasons(found.because)
    if find_change(found) is not None:
        return escape_line(why)
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


# What becomes of many, one a line: each is told, and in the end how many were taken, known already and refused.


@dataclass
class Tally:
    """What became of several things so far: `what` they are, and what has been `done` with those that were taken."""

    what: str
    done: str
    as_json: bool
    new: int = 0
    again: int = 0
    refused: int = 0

    def take(
        self, outcome: AddedSubscription | AppendResult, where: str = "", warnings: Sequence[TextWarning] = ()
    ) -> None:
        """Count and print one that was taken, or was there already; with the warnings about it, if there are any."""
        if outcome.new:
            self.new += 1
        else:
            self.again += 1
        if self.as_json:
            facts = [warning.facts() for warning in warnings]
            print_json(asdict(outcome) | ({"warnings": facts} if facts else {}))
            return
        for warning in warnings:
            print_warning_line(where, warning)

    def refuse(self, where: str, facts: Mapping[str, Any], reason: str, hint: object = None) -> None:
        """One that was not, with the reason: in words, or as facts for machines."""
        self.refused += 1
        if self.as_json:
            sys.stderr.write(json.dumps({"where": where, **facts}, ensure_ascii=False) + "\n")
        else:
            print_refusal(where, reason, hint)

    def describe(self) -> str:
        again = f", {self.again:,} known already" if self.again else ""
        refused = f", {self.refused:,} refused" if self.refused else ""
        return f"{plural(self.new, self.what)} {self.done}{again}{refused}"

    def end(self) -> None:
        """Say how many there were of each; the exit code says whether some were refused."""
        if not self.as_json:
            print_line(self.describe())
        if self.refused:
            raise typer.Exit(EXIT_WITH_REJECTS)


# Pictures as files, or on standard output.


PictureOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Where to write it; otherwise standard output.", show_default=False),
]


def check_picture_format(out: Path | None) -> None:
    """Before anything is drawn: an SVG in a file that is called otherwise is opened by nobody."""
    if out is not None and out.suffix.lower() not in ("", ".svg"):
        raise InputError(
            "the picture is an SVG", where="--out", received=str(out), accepted="a name with .svg at its end"
        )


def write_picture(picture: Picture, out: Path | None) -> None:
    from tidings.core.drawing.svg import render_svg

    svg = render_svg(picture)
    if out is None:
        typer.echo(svg, nl=False)
        return
    try:
        out.write_text(svg, encoding="utf-8")
    except OSError as error:
        raise InputError("the picture cannot be written", where=str(out), received=error.strerror) from error
    print_note(f"{out}: {picture.notes[0]}")


# Resources and what becomes of them under rules, as lines.


_CHANGE_STYLES = {"entered": "bold green", "changed": "bold yellow", "left": "bold red"}


def print_result_changes(what: str, pairs: Iterable[tuple[str, str]], as_json: bool) -> None:
    for name, uri in sorted(pairs):
        if as_json:
            print_json({"rule": name, "kind": what, "uri": uri})
        else:
            print_line((name, "bold cyan"), (what, _CHANGE_STYLES[what]), uri)


def print_resource(resource: Resource, as_json: bool) -> None:
    from tidings.metadata.queries.browser import display_value
    from tidings.metadata.resources import Ref

    if as_json:
        values = {name: [_value_as_json(value) for value in each] for name, each in resource.values.items()}
        print_json({"uri": resource.uri, "class": resource.cls, "values": values})
        return
    told = [
        f"{name} {', '.join(f'-> {value.uri}' if isinstance(value, Ref) else display_value(value) for value in each)}"
        for name, each in resource.values.items()
    ]
    print_line((resource.uri, "bold cyan"), (resource.cls, "dim"), *told)


def _value_as_json(value: Value) -> Scalar | dict[str, str]:
    from tidings.metadata.resources import Ref

    return {"ref": value.uri} if isinstance(value, Ref) else value

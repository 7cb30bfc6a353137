"""Output of commands: tables, lines and remarks for people, JSON Lines for programs.

Results go to standard output; errors, progress and remarks go to standard error, so that `tidings ... --json | jq`
always works. Colours are for terminals only.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar

import typer
from rich.console import Console
from rich.status import Status
from rich.table import Table
from rich.text import Text

from tidings.core.text import plural
from tidings.errors import InputError, PublicationError, TextWarning, TidingsError

if TYPE_CHECKING:
    from tidings.core.drawing.picture import Picture
    from tidings.store.journal import AppendResult
    from tidings.store.subscriptions.admission import AddedSubscription

T = TypeVar("T")
Cell = str | tuple[str, str]
"""A text, or a text with its style."""

EXIT_WITH_REJECTS = 3
"""The exit code of a command that is done, except for some of its input."""


# Streams and terminals.


def make_console(*, stderr: bool = False) -> Console:
    """Make a console for a standard stream; off a terminal it neither wraps, colours nor cuts lines."""
    stream = sys.stderr if stderr else sys.stdout
    return Console(file=stream, highlight=False, soft_wrap=True, emoji=False)


def print_line(*cells: Cell, stderr: bool = False) -> None:
    """Print cells on one line, two spaces apart."""
    text = Text("  ").join(Text(cell) if isinstance(cell, str) else Text(*cell) for cell in cells)
    make_console(stderr=stderr).print(text)


def print_note(message: str) -> None:
    """Print a remark about the work, not a result."""
    make_console(stderr=True).print(Text(message, "dim"))


@contextmanager
def show_spinner(words: str) -> Iterator[Callable[[str], None]]:
    """Show a spinner with words while the block runs, on terminals; yield a function that changes the words."""
    console = make_console(stderr=True)
    if not console.is_terminal:
        yield lambda words: None
        return
    with Status(words, console=console) as status:
        yield status.update


def print_json(record: Mapping[str, Any], *, stderr: bool = False) -> None:
    """Print an object as one line of JSON."""
    stream = sys.stderr if stderr else sys.stdout
    stream.write(json.dumps(record, ensure_ascii=False) + "\n")
    stream.flush()


def print_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table, folded to the width of a terminal; elsewhere each row is one line."""
    console = make_console()
    table = Table(*header, box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for row in rows:
        table.add_row(*(Text(cell, overflow="fold") for cell in row))
    width = console.width if console.is_terminal else 100_000
    for segments in console.render_lines(table, console.options.update(width=width), pad=False):
        line = Text.assemble(*((segment.text, segment.style or "") for segment in segments))
        line.rstrip()
        console.print(line)


UNITS = (("GB", 1e9), ("MB", 1e6), ("kB", 1e3))


def format_bytes(count: int) -> str:
    """Format a size: `1.2 GB`."""
    for unit, size in UNITS:
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} B"


# Records: one declaration of how a type is shown, one function that prints it.


def to_record(item: Any) -> dict[str, Any]:
    """Return the fields of a dataclass."""
    return asdict(item)


def select_fields(item: object, *names: str) -> dict[str, Any]:
    """Return some fields of an object, in this order."""
    return {name: getattr(item, name) for name in names}


@dataclass(frozen=True)
class View(Generic[T]):
    """Layout of records of one type: a table of `columns`, or a `line` each; `record` with --json.

    A column is a title and an attribute or a function; those named in `optional` are left out if no record has a
    value there. `empty` is the remark if there are no records.
    """

    empty: str
    columns: Sequence[tuple[str, str | Callable[[T], str]]] = ()
    line: Callable[[T], Iterable[Cell]] | None = None
    record: Callable[[T], Mapping[str, Any]] = to_record
    optional: Collection[str] = ()

    def print(self, items: Iterable[T]) -> bool:
        """Print records for people; return whether there were any."""
        if self.line is not None:
            is_printed = False
            for item in items:
                is_printed = True
                print_line(*self.line(item))
            return is_printed
        rows = [[_read_cell(item, cell) for _, cell in self.columns] for item in items]
        shown = [
            index
            for index, (title, _) in enumerate(self.columns)
            if title not in self.optional or any(row[index] for row in rows)
        ]
        if rows:
            print_table(
                [self.columns[index][0] for index in shown], ([row[index] for index in shown] for row in rows)
            )
        return bool(rows)


def _read_cell(item: Any, cell: str | Callable[[Any], str]) -> str:
    value = getattr(item, cell) if isinstance(cell, str) else cell(item)
    return "" if value is None else str(value)


def _remember_json(context: typer.Context, as_json: bool) -> bool:
    """Keep --json for errors, which are printed outside the command that raised them."""
    context.meta["json"] = as_json
    return as_json


JsonOption = Annotated[
    bool, typer.Option("--json", help="Print results as JSON Lines, for programs.", callback=_remember_json)
]


@dataclass(frozen=True)
class Output:
    """Output format of a command: for people, or with --json for programs."""

    as_json: JsonOption = False

    def print_record(self, record: Mapping[str, Any], *cells: Cell) -> None:
        """Print one result: a line of cells, or the record as JSON."""
        if self.as_json:
            print_json(record)
        else:
            print_line(*cells)

    def print_records(self, items: Iterable[T], view: View[T]) -> None:
        """Print results as their view declares it."""
        if self.as_json:
            for item in items:
                print_json(view.record(item))
        elif not view.print(items):
            print_note(view.empty)

    def print_removal(self, named: Mapping[str, str], is_removed: bool, done: str, missing: str) -> None:
        """Print whether something was removed; if it was not there, end with the exit code of rejects."""
        [name] = named.values()
        if self.as_json:
            print_json({**named, "removed": is_removed})
        else:
            print_line(
                (name, "bold cyan" if is_removed else "bold red"),
                done if is_removed else missing,
                stderr=not is_removed,
            )
        exit_if_rejects(not is_removed)

    def print_note(self, message: str) -> None:
        """Print a remark for people."""
        if not self.as_json:
            print_note(message)

    def print_error(self, problem: TidingsError) -> None:
        """Print an error, with its place underlined."""
        if self.as_json:
            print_json(problem.facts(), stderr=True)
        else:
            print_error(problem)


def exit_if_rejects(count: int) -> None:
    """End with the exit code of rejects if there are any."""
    if count:
        raise typer.Exit(EXIT_WITH_REJECTS)


# Errors, refusals and warnings.


def print_error(problem: TidingsError, *, stderr: bool = True) -> None:
    """Print a problem with its place underlined, and the hint."""
    label = "refused" if isinstance(problem, PublicationError) else "error"
    _print_drawing((f"{label}: ", "bold red"), problem.message(), "bold", stderr)


def print_refusal(subject: str, reason: str, hint: object = None) -> None:
    """Print why one of many was refused: one line, with the hint instead of the underlined text."""
    headline, *drawing = reason.split("\n", 1)
    headline += f"; {hint}" if drawing and hint else ""
    make_console(stderr=True).print(Text.assemble(("refused: ", "bold red"), f"{subject}: {headline}"))


def print_warning(warning: TextWarning) -> None:
    """Print a warning about an accepted text, with its place underlined."""
    _print_drawing(("warning: ", "bold yellow"), warning.message())


def print_warning_line(where: str, warning: TextWarning) -> None:
    """Print a warning about one of many texts, on one line."""
    hint = f"; {warning.hint}" if warning.hint else ""
    make_console(stderr=True).print(
        Text.assemble(("warning: ", "bold yellow"), f"{where}: {warning.headline()}{hint}")
    )


def _print_drawing(label: tuple[str, str], message: str, style: str = "", stderr: bool = True) -> None:
    headline, *drawing = message.split("\n")
    console = make_console(stderr=stderr)
    console.print(Text.assemble(label, (headline, style)))
    for line in drawing:
        marked = re.fullmatch(r"( *)(\^+)(.*)", line)
        parts = [marked[1], (marked[2], "bold red"), (marked[3], "yellow")] if marked else [line]
        console.print(Text.assemble(*parts))


@dataclass
class Tally:
    """Outcome counts for many inputs: `what` names the inputs, `done` the result for accepted ones."""

    out: Output
    what: str
    done: str
    new: int = 0
    again: int = 0
    refused: int = 0

    def accept(
        self, outcome: AddedSubscription | AppendResult, where: str = "", warnings: Sequence[TextWarning] = ()
    ) -> None:
        """Count and print an input that was accepted, or was stored before, with its warnings."""
        self.new, self.again = self.new + outcome.new, self.again + (not outcome.new)
        if self.out.as_json:
            facts = [warning.facts() for warning in warnings]
            print_json(asdict(outcome) | ({"warnings": facts} if facts else {}))
            return
        for warning in warnings:
            print_warning_line(where, warning)

    def refuse(self, where: str, facts: Mapping[str, Any], reason: str, hint: object = None) -> None:
        """Count and print an input that was refused."""
        self.refused += 1
        if self.out.as_json:
            print_json({"where": where, **facts}, stderr=True)
        else:
            print_refusal(where, reason, hint)

    def describe(self) -> str:
        """Return the counts in words."""
        again = f", {self.again:,} known already" if self.again else ""
        refused = f", {self.refused:,} refused" if self.refused else ""
        return f"{plural(self.new, self.what)} {self.done}{again}{refused}"

    def end(self) -> None:
        """Print the counts, and end with the exit code of rejects if some were refused."""
        if not self.out.as_json:
            print_line(self.describe())
        exit_if_rejects(self.refused)


# Pictures and other texts that go to a file or to standard output.


PictureOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="The file to write; standard output by default.")
]


def check_picture_format(out: Path | None) -> None:
    """Refuse a file name that does not end in .svg: no program would open the picture."""
    if out is not None and out.suffix.lower() not in ("", ".svg"):
        raise InputError(
            "the picture is an SVG",
            where="--out",
            received=str(out),
            accepted="a file name that ends in .svg",
        )


def write_picture(picture: Picture, out: Path | None) -> None:
    """Write a picture as SVG."""
    from tidings.core.drawing.svg import render_svg

    write_text(render_svg(picture), out, "the picture", picture.notes[0])


def write_text(text: str, out: Path | None, title: str, remark: str) -> None:
    """Write a text to a file, with a remark, or to standard output."""
    if out is None:
        typer.echo(text, nl=False)
        return
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write {title}", where=str(out), received=error.strerror) from error
    print_note(f"{out}: {remark}")

"""`query`: asking the metadata of a repository, or of a provider."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidings.cli import output
from tidings.cli.options import DEFAULT_HOME, REPOSITORY_HINT, REPOSITORY_HOME, JsonOption, open_tidings
from tidings.core.text import plural
from tidings.errors import InputError, SetupError, SyntaxProblem

if TYPE_CHECKING:
    from tidings.metadata.queries.answers import Cell, QueryAnswer
    from tidings.metadata.queries.engine import QueryEngine
    from tidings.metadata.resources import Resource, Value

_DEFAULTS = {
    False: ("TIDINGS_REPOSITORY_HOME", REPOSITORY_HOME, "TIDINGS_REPOSITORY_STORE"),
    True: ("TIDINGS_HOME", DEFAULT_HOME, "TIDINGS_STORE"),
}
"""Where a repository and a provider are when nothing is said."""

Text = Annotated[
    str,
    typer.Argument(
        metavar="TEXT",
        help="[cyan]search ... where ... select ... order by ... limit ...[/]; - reads it from standard input.",
        show_default=False,
    ),
]
QueryHomeOption = Annotated[
    Path | None,
    typer.Option(
        "--home",
        help="The repository's folder: [cyan]TIDINGS_REPOSITORY_HOME[/], or [cyan].tidings-repository[/]. "
        "With [cyan]--at-provider[/] it is [cyan]TIDINGS_HOME[/], or [cyan].tidings[/].",
        file_okay=False,
        show_default=False,
    ),
]
QueryStoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URL",
        help="Another store than the folder's: [cyan]sqlite:///path[/] or [cyan]postgresql://...[/]",
        show_default=False,
    ),
]


def query(
    text: Text,
    sparql: Annotated[
        bool, typer.Option("--sparql", help="The text is SPARQL 1.1: SELECT, ASK, CONSTRUCT or DESCRIBE.")
    ] = False,
    at_provider: Annotated[
        bool, typer.Option("--at-provider", help="Ask all metadata of a provider on this machine.")
    ] = False,
    home: QueryHomeOption = None,
    store: QueryStoreOption = None,
    as_json: JsonOption = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="CSV with a header, for spreadsheets.")] = False,
) -> None:
    """Ask the metadata that a repository has, also while it is cut off from its provider.

    Without [cyan]select[/], whole resources are shown, with what they refer to strongly.

    [dim]Examples[/]
      tidings query "search CycleProvider c where c.serverInformation.memory > 64"
      tidings query "search CycleProvider c select c, c.serverHost order by c.serverPort desc limit 10" --csv
      tidings query --sparql "SELECT ?c { ?c a <http://example.org/servers#CycleProvider> }"
    """
    if as_json and as_csv:
        raise InputError("--json and --csv contradict each other", accepted="one of them, or none")
    asked = sys.stdin.read() if text == "-" else text
    with _opened(at_provider, home, store) as queries, _hint_at_other_language(asked, sparql):
        if sparql:
            _show_sparql(queries, asked, as_json, as_csv)
        else:
            _show_answer(queries, queries.ask(asked), as_json, as_csv)


_SPARQL = re.compile(r"\s*(prefix|base|select|ask|construct|describe)\b", re.IGNORECASE)
_SEARCH = re.compile(r"\s*search\b", re.IGNORECASE)


@contextmanager
def _hint_at_other_language(asked: str, sparql: bool) -> Iterator[None]:
    """What cannot be read because it is written in the other language is told so."""
    try:
        yield
    except SyntaxProblem as problem:
        if (_SEARCH if sparql else _SPARQL).match(asked) is None:
            raise
        hint = "this is no SPARQL: leave --sparql out" if sparql else "SPARQL is asked with --sparql"
        raise problem.with_hint(hint) from problem


@contextmanager
def _opened(at_provider: bool, home: Path | None, store: str | None) -> Iterator[QueryEngine]:
    from tidings.metadata.queries.engine import QueryEngine

    variable, usual, address = _DEFAULTS[at_provider]
    folder = home or Path(os.environ.get(variable) or usual)
    store = store or (None if home else os.environ.get(address))
    if store is None and not (folder / "store.db").is_file():
        what = "provider" if at_provider else "repository"
        hint = f"{REPOSITORY_HINT}; --at-provider asks a provider's home"
        raise SetupError(f"there is no {what} here", where=str(folder), hint=None if at_provider else hint)
    with open_tidings(folder, store) as opened:
        yield (QueryEngine.at_provider if at_provider else QueryEngine.at_repository)(opened.store)


def _show_answer(queries: QueryEngine, answer: QueryAnswer, as_json: bool, as_csv: bool) -> None:
    from tidings.metadata.queries.answers import answer_to_csv as in_csv
    from tidings.metadata.queries.answers import answer_to_records

    if as_json:
        for record in answer_to_records(answer):
            output.print_json(record)
    elif as_csv:
        sys.stdout.write(in_csv(answer, queries.schema()))
    elif not len(answer):
        output.print_note("nothing")
    elif answer.columns:
        output.print_table(answer.columns, ([_cell(cell) for cell in row] for row in answer.rows))
    else:
        beside = queries.referred(answer)
        for resource in answer.resources:
            _show_resource(resource, beside)


def _show_resource(resource: Resource, beside: Mapping[str, Resource]) -> None:
    told = [
        f"{name} {', '.join(_value(value, beside) for value in values)}"
        for name, values in resource.values.items()
    ]
    output.print_line((resource.uri, "bold cyan"), *told)


def _value(value: Value, beside: Mapping[str, Resource]) -> str:
    """A value; of a reference also what it leads to, if that is to be shown."""
    from tidings.metadata.resources import Ref

    if not isinstance(value, Ref):
        return _cell(value)
    found = beside.get(value.uri)
    own = found.values.items() if found else ()
    inner = ", ".join(f"{name} {', '.join(_value(each, {}) for each in values)}" for name, values in own)
    return f"-> {value.uri} ({inner})" if inner else f"-> {value.uri}"


def _cell(cell: Cell) -> str:
    from tidings.metadata.resources import Ref

    if cell is None:
        return ""
    if isinstance(cell, Ref):
        return cell.uri
    if isinstance(cell, tuple):
        return ", ".join(map(_cell, cell))
    return str(cell).lower() if isinstance(cell, bool) else str(cell)


def _show_sparql(queries: QueryEngine, text: str, as_json: bool, as_csv: bool) -> None:
    import json

    from tidings.metadata.queries.sparql import CSV, JSON, N_TRIPLES

    answer = queries.sparql(text, CSV if as_csv else JSON)
    if answer.left_out:
        output.print_note(
            f"{plural(answer.left_out, 'URI')} left out with what is said of it: SPARQL knows IRIs only"
        )
    if answer.media_type == N_TRIPLES or as_csv:
        sys.stdout.write(answer.body.decode())
        return
    if as_json:
        sys.stdout.write(answer.body.decode() + "\n")
        return
    found = json.loads(answer.body)
    if "boolean" in found:
        output.print_line(str(found["boolean"]).lower())
    elif not found["results"]["bindings"]:
        output.print_note("nothing")
    else:
        names = found["head"]["vars"]
        rows = (
            [row[name]["value"] if name in row else "" for name in names]
            for row in found["results"]["bindings"]
        )
        output.print_table(names, rows)

"""`query`, `provider browse` and `provider pick`: queries on metadata, and rules made from their results."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidings.cli import output
from tidings.cli.metadata.rules import RuleOptions, rule
from tidings.cli.options import DEFAULT_HOME, REPOSITORY_HINT, REPOSITORY_HOME, STORE_HELP, Home
from tidings.cli.output import Output
from tidings.core.text import plural
from tidings.errors import InputError, SetupError, SyntaxProblem

if TYPE_CHECKING:
    from tidings.metadata.queries.answers import Cell, QueryAnswer
    from tidings.metadata.queries.browser import Browser, ClassSummary, InstancePage, Link, ResourceView
    from tidings.metadata.queries.engine import QueryEngine
    from tidings.metadata.resources import Resource, Value

_DEFAULTS = {
    False: ("TIDINGS_REPOSITORY_HOME", REPOSITORY_HOME, "TIDINGS_REPOSITORY_STORE"),
    True: ("TIDINGS_HOME", DEFAULT_HOME, "TIDINGS_STORE"),
}
"""Variables and default folders of a repository and of a provider."""


@dataclass(frozen=True)
class QueryTarget:
    """The repository or provider whose metadata is queried."""

    at_provider: Annotated[
        bool, typer.Option("--at-provider", help="Query all metadata of a provider on this machine.")
    ] = False
    home: Annotated[
        Path | None,
        typer.Option(
            "--home",
            help="The folder of the repository: `TIDINGS_REPOSITORY_HOME`, or `.tidings-repository`. With "
            "`--at-provider`, the home folder: `TIDINGS_HOME`, or `.tidings`.",
            file_okay=False,
        ),
    ] = None
    store: Annotated[str | None, typer.Option("--store", metavar="URL", help=STORE_HELP)] = None

    @contextmanager
    def open(self) -> Iterator[QueryEngine]:
        """Open the query engine of a store that exists."""
        from tidings.metadata.queries.engine import QueryEngine

        variable, default, store_variable = _DEFAULTS[self.at_provider]
        folder = self.home or Path(os.environ.get(variable) or default)
        home = Home(folder, self.store or (None if self.home else os.environ.get(store_variable)))
        if not home.has_store():
            title = "provider" if self.at_provider else "repository"
            hint = None if self.at_provider else f"{REPOSITORY_HINT}; --at-provider queries a provider"
            raise SetupError(f"there is no {title} here", where=str(folder), hint=hint)
        with home.open() as tidings:
            open_engine = QueryEngine.at_provider if self.at_provider else QueryEngine.at_repository
            yield open_engine(tidings.store)


def query(
    target: QueryTarget,
    out: Output,
    text: Annotated[
        str,
        typer.Argument(
            metavar="TEXT",
            help="`search ... where ... select ... order by ... limit ...`; - reads it from standard input.",
        ),
    ],
    sparql: Annotated[
        bool, typer.Option("--sparql", help="The text is SPARQL 1.1: SELECT, ASK, CONSTRUCT or DESCRIBE.")
    ] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="CSV with a header, for spreadsheets.")] = False,
) -> None:
    """Query the metadata of a repository, even while it has no connection to its provider.

    Examples:
      tidings query "search CycleProvider c where c.serverInformation.memory > 64"
      tidings query "search CycleProvider c select c, c.serverHost order by c.serverPort desc limit 10" --csv
      tidings query --sparql "SELECT ?c { ?c a <http://example.org/servers#CycleProvider> }"

    Without `select`, whole resources are printed, with those that they refer to strongly.
    """
    if out.as_json and as_csv:
        raise InputError("--json and --csv exclude each other", accepted="one of them, or none")
    statement = sys.stdin.read() if text == "-" else text
    with target.open() as queries, _hint_at_other_language(statement, sparql):
        if sparql:
            _print_sparql(queries, statement, out, as_csv)
        else:
            _print_answer(queries, queries.ask(statement), out, as_csv)


_SPARQL = re.compile(r"\s*(prefix|base|select|ask|construct|describe)\b", re.IGNORECASE)
_SEARCH = re.compile(r"\s*search\b", re.IGNORECASE)


@contextmanager
def _hint_at_other_language(statement: str, sparql: bool) -> Iterator[None]:
    """Add a hint to a syntax error if the text is in the other language."""
    try:
        yield
    except SyntaxProblem as problem:
        if (_SEARCH if sparql else _SPARQL).match(statement) is None:
            raise
        hint = "this is not SPARQL: omit --sparql" if sparql else "for SPARQL add --sparql"
        raise problem.with_hint(hint) from problem


def _print_answer(queries: QueryEngine, answer: QueryAnswer, out: Output, as_csv: bool) -> None:
    from tidings.metadata.queries.answers import answer_to_csv, answer_to_records

    if out.as_json:
        for record in answer_to_records(answer):
            output.print_json(record)
    elif as_csv:
        sys.stdout.write(answer_to_csv(answer, queries.schema()))
    elif not len(answer):
        output.print_note("no results")
    elif answer.columns:
        output.print_table(answer.columns, ([_format_cell(cell) for cell in row] for row in answer.rows))
    else:
        referred = queries.find_referred(answer)
        for resource in answer.resources:
            output.print_line((resource.uri, "bold cyan"), *_list_values(resource, referred))


def _list_values(resource: Resource, referred: Mapping[str, Resource]) -> Iterator[str]:
    for name, values in resource.values.items():
        yield f"{name} {', '.join(_format_value(value, referred) for value in values)}"


def _format_value(value: Value, referred: Mapping[str, Resource]) -> str:
    """Format a value; a reference with the resource that it leads to, if that is among `referred`."""
    from tidings.metadata.resources import Ref

    if not isinstance(value, Ref):
        return _format_cell(value)
    resource = referred.get(value.uri)
    inner = ", ".join(_list_values(resource, {})) if resource else ""
    return f"-> {value.uri} ({inner})" if inner else f"-> {value.uri}"


def _format_cell(cell: Cell) -> str:
    from tidings.metadata.resources import Ref

    if cell is None:
        return ""
    if isinstance(cell, Ref):
        return cell.uri
    if isinstance(cell, tuple):
        return ", ".join(map(_format_cell, cell))
    return str(cell).lower() if isinstance(cell, bool) else str(cell)


def _print_sparql(queries: QueryEngine, text: str, out: Output, as_csv: bool) -> None:
    from tidings.metadata.queries.sparql import CSV, JSON, N_TRIPLES

    answer = queries.sparql(text, CSV if as_csv else JSON)
    if answer.left_out:
        count = plural(answer.left_out, "URI")
        output.print_note(f"{count} left out with all statements about it: SPARQL accepts IRIs only")
    if answer.media_type == N_TRIPLES or as_csv:
        sys.stdout.write(answer.body.decode())
        return
    if out.as_json:
        sys.stdout.write(answer.body.decode() + "\n")
        return
    result = json.loads(answer.body)
    if "boolean" in result:
        output.print_line(str(result["boolean"]).lower())
    elif not result["results"]["bindings"]:
        output.print_note("no results")
    else:
        names = result["head"]["vars"]
        rows = (
            [row[name]["value"] if name in row else "" for name in names]
            for row in result["results"]["bindings"]
        )
        output.print_table(names, rows)


# Browsing.


def browse(
    home: Home,
    out: Output,
    name: Annotated[
        str, typer.Argument(metavar="CLASS|URI", help="A class or a resource; by default, all classes.")
    ] = "",
    after: Annotated[
        str,
        typer.Option("--after", metavar="MARK", help="The start of a page, as the previous page prints it."),
    ] = "",
    limit: Annotated[
        int, typer.Option("--limit", min=1, max=1_000, metavar="N", help="The size of a page.")
    ] = 50,
) -> None:
    """Browse metadata: classes with counts, the resources of a class, a resource with references to and from it.

    Examples:
      tidings provider browse
      tidings provider browse CycleProvider
      tidings provider browse http://example.org/doc.rdf#host
    """
    with _open_browser(home) as browser:
        if not name:
            _print_classes(browser.classes(), out)
        elif browser.is_class(name):
            _print_instances(browser.instances(name, after, limit), out)
        else:
            _print_view(browser.resource(name, after, limit), out)


def pick(
    home: Home,
    out: Output,
    subject: Annotated[str, typer.Argument(metavar="CLASS|URI", help="The class or the resource.")],
    subscriber: Annotated[
        str | None, typer.Option("--as", metavar="NAME", help="Add the rule for this subscriber.")
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", metavar="RULE", help="The name of the added rule.")
    ] = None,
) -> None:
    """Print the rule that registers all resources of a class, or one resource; with `--as`, add it.

    Examples:
      tidings provider pick http://example.org/doc.rdf#host
      tidings provider pick CycleProvider --as ana --name providers
    """
    if name is not None and subscriber is None:
        raise InputError("only added rules have a name", where="--name", hint="add --as NAME")
    with _open_browser(home) as browser:
        picked = browser.pick(subject)
    if subscriber is not None:
        rule(RuleOptions(), home, out, name or picked.name, picked.text, subscriber)
    else:
        out.print_record({"name": picked.name, "text": picked.text}, picked.text)


@contextmanager
def _open_browser(home: Home) -> Iterator[Browser]:
    from tidings.metadata.queries.browser import Browser

    with home.open() as tidings:
        yield Browser(tidings.store)


def _print_classes(classes: tuple[ClassSummary, ...], out: Output) -> None:
    from tidings.metadata.queries.browser import class_to_json, class_tree

    if out.as_json:
        for cls in classes:
            output.print_json(class_to_json(cls))
        return
    for depth, cls in class_tree(classes):
        own = f", {cls.own:,} its own" if cls.own != cls.all else ""
        output.print_line(("  " * depth + cls.name, "bold cyan"), plural(cls.all, "resource") + own)


def _print_instances(page: InstancePage, out: Output) -> None:
    for instance in page.instances:
        record = {"uri": instance.uri, "class": instance.cls}
        out.print_record(record, (instance.uri, "bold cyan"), (instance.cls, "dim"))
    if not page.instances:
        output.print_note("no resources")
    _print_more(page.of.name, page.more)


def _print_view(view: ResourceView, out: Output) -> None:
    from tidings.metadata.queries.browser import display_value, view_to_json
    from tidings.metadata.resources import Ref

    if out.as_json:
        output.print_json(view_to_json(view))
        return
    output.print_line((view.resource.uri, "bold cyan"), (view.resource.cls, "dim"))
    for name, values in view.resource.values.items():
        literals = [display_value(value) for value in values if not isinstance(value, Ref)]
        if literals:
            output.print_line(f"  {name}", ", ".join(literals))
    _print_links("->", view.references)
    _print_links("<-", view.referrers)
    _print_more(view.resource.uri, view.more)


def _print_links(arrow: str, links: tuple[Link, ...]) -> None:
    for link in links:
        cls = link.cls or "not there"
        mismatch = [("invalid target: another class", "yellow")] if link.cls and not link.leads else []
        strength = (link.reference.value, "bold" if link.reference.value == "strong" else "dim")
        cells = f"  {link.property}", strength, arrow, (link.uri, "cyan"), (cls, "dim")
        output.print_line(*cells, *mismatch)


def _print_more(subject: str, cursor: str | None) -> None:
    if cursor is not None:
        output.print_note(f"more: tidings provider browse '{subject}' --after '{cursor}'")

"""`model triggers`: what a model says, as triggers of a database: written, installed, compared, removed."""

from __future__ import annotations

from collections import Counter
from contextlib import AbstractContextManager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidings.cli import output
from tidings.cli.options import JsonOption
from tidings.core.text import plural
from tidings.errors import InputError

if TYPE_CHECKING:
    from tidings.objects.model.table_mapping import MappedModel
    from tidings.objects.outbox.database import ObjectDatabase
    from tidings.objects.outbox.installation import SchemaDifference
    from tidings.objects.propagation import Limits
    from tidings.objects.triggers.dialect import Dialect


# A model that a word of the command line names. What reads it is imported then: `tidings --help` needs none of it.


def read_model(what: str) -> MappedModel:
    """The model, or what is wrong with it."""
    from tidings.objects.readers import model_loader

    return model_loader.read_model(what)


class DialectName(StrEnum):
    """Databases that have triggers as they are generated."""

    SQLITE = "sqlite"
    POSTGRESQL = "postgresql"


def _address(flag: str, help: str) -> object:
    return typer.Option(flag, metavar="URL", help=help, show_default=False)


TriggerModelArgument = Annotated[
    str,
    typer.Argument(
        metavar="FILE|MODULE:BASE", help="A model, as in [cyan]tidings model check[/].", show_default=False
    ),
]


def triggers(
    model: TriggerModelArgument,
    dialect: Annotated[
        DialectName | None,
        typer.Option(help="For which database to write them; an address says it itself.", show_default=False),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Where to write them; otherwise standard output.", show_default=False
        ),
    ] = None,
    into: Annotated[
        str | None,
        _address("--install", "Install them there: make what is missing or differs, drop the rest."),
    ] = None,
    diff: Annotated[
        str | None,
        _address("--diff", "Only say what installing would do there; the exit code is 3 if something."),
    ] = None,
    remove: Annotated[
        str | None, _address("--remove", "Take everything away there that was installed, watches included.")
    ] = None,
    most_steps: Annotated[
        int | None,
        typer.Option(
            min=0, metavar="N", help="Follow a change for so many steps only.", show_default="no limit"
        ),
    ] = None,
    most_told: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Tell so many only, the first by class and key; that there were more is noted.",
            show_default="no limit",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Write or install triggers with which a database finds out itself whom a change concerns.

    They write what changed, and who is told and why, into tables of the same database, in the transaction of the
    change. Everything is called [cyan]tidings_...[/]; nothing else is touched.

    [dim]Examples[/]
      tidings model triggers university.puml --dialect postgresql --out triggers.sql
      tidings model triggers university.puml --install sqlite:///university.db
      tidings model triggers university.puml --diff postgresql://localhost/university
      tidings model triggers university.puml --install sqlite:///university.db --most-steps 5 --most-told 10000
    """
    from tidings.objects.propagation import Limits

    said = [url for url in (into, diff, remove) if url is not None]
    if len(said) > 1 or (said and out is not None):
        accepted = "one of --out, --install, --diff and --remove"
        raise InputError("these exclude each other", where="model triggers", accepted=accepted)
    limits = Limits(most_steps, most_told)
    if remove is not None and limits != Limits():
        raise InputError("what is removed has no limits", where="--remove", accepted="--remove alone")
    placed = read_model(model)
    if not said:
        _write(placed, model, dialect, out, limits)
        return
    with _opened(said[0], dialect) as site:
        if into is not None:
            _install(site, placed, limits, as_json)
        elif diff is not None:
            _diff(site, placed, limits, as_json)
        else:
            _remove(site, as_json)


def _write(
    placed: MappedModel, source: str, dialect: DialectName | None, out: Path | None, limits: Limits
) -> None:
    from tidings.objects.triggers.generator import render_script

    if dialect is None:
        accepted = "--dialect sqlite or --dialect postgresql, or --install URL"
        raise InputError("for which database?", where="--dialect", accepted=accepted)
    written = render_script(placed, _dialect(dialect), Path(source).name, limits)
    if out is None:
        typer.echo(written, nl=False)
        return
    try:
        out.write_text(written, encoding="utf-8")
    except OSError as error:
        what = "the triggers cannot be written"
        raise InputError(what, where=str(out), received=error.strerror) from error
    output.print_note(f"{out}: {_counted(placed, _dialect(dialect))}")


def _dialect(name: DialectName) -> Dialect:
    from tidings.objects.triggers.postgresql_dialect import PostgresqlDialect
    from tidings.objects.triggers.sqlite_dialect import SqliteDialect

    return SqliteDialect() if name is DialectName.SQLITE else PostgresqlDialect()


def _counted(placed: MappedModel, dialect: Dialect) -> str:
    from tidings.objects.triggers.generator import count_triggers, generate_schema

    return plural(count_triggers(generate_schema(placed, dialect)), "trigger")


def _opened(url: str, dialect: DialectName | None) -> AbstractContextManager[ObjectDatabase]:
    from tidings.objects.outbox.database import detect_dialect, open_database

    if dialect not in (None, detect_dialect(url)):
        raise InputError("the address is of another database", where="--dialect", received=dialect)
    return open_database(url)


def _install(site: ObjectDatabase, placed: MappedModel, limits: Limits, as_json: bool) -> None:
    from tidings.objects.model.summary import summarize_model
    from tidings.objects.outbox.installation import install_triggers

    found = install_triggers(site, placed, limits)
    if as_json:
        _rows(found)
        return
    output.print_line(summarize_model(placed.model), f"{_counted(placed, site.dialect)} {_done(found)}")


def _done(found: tuple[SchemaDifference, ...]) -> str:
    """Names are counted: a trigger of PostgreSQL and its function are one thing for people."""
    from tidings.objects.outbox.installation import InstallationState
    from tidings.objects.triggers.dialect import SchemaObjectKind

    if not found:
        return "were there already"
    if all(each.state is InstallationState.MISSING for each in found) and any(
        each.what is SchemaObjectKind.TABLE for each in found
    ):
        return "installed"
    counted = Counter({each.name: each.state for each in found}.values())
    words = {
        InstallationState.MISSING: "new",
        InstallationState.DIFFERENT: "replaced",
        InstallationState.LEFT_OVER: "removed",
    }
    said = ", ".join(f"{counted[state]} {word}" for state, word in words.items() if counted[state])
    return f"installed: {said}"


def _diff(site: ObjectDatabase, placed: MappedModel, limits: Limits, as_json: bool) -> None:
    from tidings.objects.outbox.installation import find_differences

    found = find_differences(site, placed, limits)
    if as_json:
        _rows(found)
    elif not found:
        output.print_line(f"{_counted(placed, site.dialect)}, as the model says")
    else:
        rows = [(each.state.value, each.what.value, each.name, each.on or "–") for each in found]
        output.print_table(("state", "what", "name", "on"), rows)
    if found:
        raise typer.Exit(output.EXIT_WITH_REJECTS)


def _rows(found: tuple[SchemaDifference, ...]) -> None:
    for each in found:
        output.print_json(
            {"state": each.state.value, "what": each.what.value, "name": each.name, "on": each.on}
        )


def _remove(site: ObjectDatabase, as_json: bool) -> None:
    from tidings.objects.outbox.installation import remove_triggers

    count, watches = remove_triggers(site)
    if as_json:
        output.print_json({"triggers": count, "watches": watches})
        return
    output.print_line(
        f"{plural(count, 'trigger')} removed, the outbox and {plural(watches, 'watch')} with them"
    )

"""`watch`, `unwatch` and `watches`: what people want to be told about besides what concerns them by the model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidings.errors import InputError
from tidings.interfaces.cli import output
from tidings.interfaces.cli.objects import Source
from tidings.interfaces.cli.options import DEFAULT_HOME, AsJson, Home, Store, open_tidings

if TYPE_CHECKING:
    from tidings.service.watching import Watched, Watches
    from tidings.store import ObjectSource

Who = Annotated[
    str,
    typer.Option("--as", metavar="CLASS:KEY", help="The subscriber: an object by its key or its label."),
]
What = Annotated[
    list[str],
    typer.Argument(
        metavar="CLASS[:KEY]...", help="Objects by key or label, or whole classes.", show_default=False
    ),
]
Model = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|MODULE:BASE", help="A model that was not added; with --database.", show_default=False
    ),
]
Database = Annotated[
    str | None,
    typer.Option(metavar="URL", help="A database that was not added; with --model.", show_default=False),
]


def watch(
    what: What,
    subscriber: Who,
    source: Source = None,
    model: Model = None,
    database: Database = None,
    home: Home = DEFAULT_HOME,
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Have somebody told about changes of an object, or of all objects of a class and of those below it.

    Watches stand in the database of the objects, where its triggers see them: they count from the next change on.

    [dim]Examples[/]
      tidings watch --as Student:1 Course:ProgrammingBasics
      tidings watch --as Student:2 Course
      tidings watch --as Student:1 Course:1 --model university.puml --database sqlite:///university.db
    """
    with _watches(home, store, source, model, database) as watches:
        for each in what:
            watched, is_new = watches.add(subscriber, each)
            if as_json:
                output.json_line({**watched.record(), "new": is_new})
            else:
                output.line(*_said(watched, "watches"), *(() if is_new else ("already",)))


def unwatch(
    what: What,
    subscriber: Who,
    source: Source = None,
    model: Model = None,
    database: Database = None,
    home: Home = DEFAULT_HOME,
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Undo watches. Whom a change concerns by the model is told all the same.

    [dim]Example[/]
      tidings unwatch --as Student:1 Course:ProgrammingBasics
    """
    missing = False
    with _watches(home, store, source, model, database) as watches:
        for each in what:
            watched, was = watches.remove(subscriber, each)
            missing = missing or not was
            if as_json:
                output.json_line({**watched.record(), "removed": was})
            else:
                said = "no longer watches" if was else "did not watch"
                output.line(*_said(watched, said), stderr=not was)
    if missing:
        raise typer.Exit(output.WITH_REJECTS)


def watches(
    subscriber: Annotated[
        str | None, typer.Option("--as", metavar="CLASS:KEY", help="Only this subscriber's.")
    ] = None,
    source: Source = None,
    model: Model = None,
    database: Database = None,
    home: Home = DEFAULT_HOME,
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """List who watches what.

    [dim]Example[/]
      tidings watches --as Student:1
    """
    with _watches(home, store, source, model, database) as kept:
        found = kept.of(subscriber)
    if as_json:
        for one in found:
            output.json_line(one.record())
    elif found:
        rows = [(each.subscriber, each.subscriber_label, *_object(each)) for each in found]
        output.table(("subscriber", "", "watches", ""), rows)
    else:
        output.note("no watches: tidings watch --as CLASS:KEY CLASS:KEY")


def _said(one: Watched, does: str) -> tuple[Any, ...]:
    what, label = _object(one)
    return (one.subscriber, "bold cyan"), one.subscriber_label, (does, "dim"), (what, "bold cyan"), label


def _object(one: Watched) -> tuple[str, str]:
    return (one.object, one.label or "") if one.object is not None else (one.cls, "all of them")


@contextmanager
def _watches(
    home: Path, store: str | None, source: str | None, model: str | None, database: str | None
) -> Iterator[Watches]:
    from tidings.service.sources import opened
    from tidings.service.watching import Watches

    with opened(chosen(home, store, source, model, database)) as found:
        yield Watches(found)


def chosen(
    home: Path, store: str | None, source: str | None, model: str | None, database: str | None
) -> ObjectSource:
    """The database that was added under a name, or one that is said with its model."""
    from tidings.service.sources import Sources, unnamed

    if model is not None and database is not None and source is None:
        return unnamed(model, database)
    if model is not None or database is not None:
        accepted = "--source NAME, or --model MODEL with --database URL"
        raise InputError("which database?", accepted=accepted)
    with open_tidings(home, store) as tidings:
        return Sources(tidings.store).chosen(source)

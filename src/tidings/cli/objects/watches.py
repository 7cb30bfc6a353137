"""`watch`, `unwatch` and `watches`: what people want to be told about besides what concerns them by the model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidings.cli import output
from tidings.cli.objects.sources import SourceOption
from tidings.cli.options import DEFAULT_HOME, HomeOption, JsonOption, StoreOption, open_tidings
from tidings.errors import InputError

if TYPE_CHECKING:
    from tidings.objects.sql.object_store import ObjectSource
    from tidings.objects.watches import WatchDescription, WatchRegistry

WatcherOption = Annotated[
    str,
    typer.Option("--as", metavar="CLASS:KEY", help="The subscriber: an object by its key or its label."),
]
WatchedObjects = Annotated[
    list[str],
    typer.Argument(
        metavar="CLASS[:KEY]...", help="Objects by key or label, or whole classes.", show_default=False
    ),
]
ModelOption = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|MODULE:BASE", help="A model that was not added; with --database.", show_default=False
    ),
]
DatabaseOption = Annotated[
    str | None,
    typer.Option(metavar="URL", help="A database that was not added; with --model.", show_default=False),
]


def watch(
    what: WatchedObjects,
    subscriber: WatcherOption,
    source: SourceOption = None,
    model: ModelOption = None,
    database: DatabaseOption = None,
    home: HomeOption = DEFAULT_HOME,
    store: StoreOption = None,
    as_json: JsonOption = False,
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
                output.print_json({**watched.record(), "new": is_new})
            else:
                output.print_line(*_said(watched, "watches"), *(() if is_new else ("already",)))


def unwatch(
    what: WatchedObjects,
    subscriber: WatcherOption,
    source: SourceOption = None,
    model: ModelOption = None,
    database: DatabaseOption = None,
    home: HomeOption = DEFAULT_HOME,
    store: StoreOption = None,
    as_json: JsonOption = False,
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
                output.print_json({**watched.record(), "removed": was})
            else:
                said = "no longer watches" if was else "did not watch"
                output.print_line(*_said(watched, said), stderr=not was)
    if missing:
        raise typer.Exit(output.EXIT_WITH_REJECTS)


def watches(
    subscriber: Annotated[
        str | None, typer.Option("--as", metavar="CLASS:KEY", help="Only this subscriber's.")
    ] = None,
    source: SourceOption = None,
    model: ModelOption = None,
    database: DatabaseOption = None,
    home: HomeOption = DEFAULT_HOME,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """List who watches what.

    [dim]Example[/]
      tidings watches --as Student:1
    """
    with _watches(home, store, source, model, database) as kept:
        found = kept.list_watches(subscriber)
    if as_json:
        for one in found:
            output.print_json(one.record())
    elif found:
        rows = [(each.subscriber, each.subscriber_label, *_object(each)) for each in found]
        output.print_table(("subscriber", "", "watches", ""), rows)
    else:
        output.print_note("no watches: tidings watch --as CLASS:KEY CLASS:KEY")


def _said(one: WatchDescription, does: str) -> tuple[Any, ...]:
    what, label = _object(one)
    return (one.subscriber, "bold cyan"), one.subscriber_label, (does, "dim"), (what, "bold cyan"), label


def _object(one: WatchDescription) -> tuple[str, str]:
    return (one.object, one.label or "") if one.object is not None else (one.cls, "all of them")


@contextmanager
def _watches(
    home: Path, store: str | None, source: str | None, model: str | None, database: str | None
) -> Iterator[WatchRegistry]:
    from tidings.objects.sources import open_source
    from tidings.objects.watches import WatchRegistry

    with open_source(choose_source(home, store, source, model, database)) as found:
        yield WatchRegistry(found)


def choose_source(
    home: Path, store: str | None, source: str | None, model: str | None, database: str | None
) -> ObjectSource:
    """The database that was added under a name, or one that is said with its model."""
    from tidings.objects.sources import SourceRegistry, build_unregistered_source

    if model is not None and database is not None and source is None:
        return build_unregistered_source(model, database)
    if model is not None or database is not None:
        accepted = "--source NAME, or --model MODEL with --database URL"
        raise InputError("which database?", accepted=accepted)
    with open_tidings(home, store) as tidings:
        return SourceRegistry(tidings.store).select(source)

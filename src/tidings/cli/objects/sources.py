"""`objects ...`, `watch`, `unwatch` and `watches`: databases with objects, and watches of objects in them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from tidings.cli import output
from tidings.cli.command import make_group
from tidings.cli.options import Home
from tidings.cli.output import Cell, Output, View, exit_if_rejects, to_record
from tidings.errors import InputError

if TYPE_CHECKING:
    from tidings.objects.sql.object_store import ObjectSource
    from tidings.objects.watches import WatchDescription, WatchRegistry

SourceName = Annotated[str, typer.Argument(metavar="NAME", help="The name of the database.")]


def add(
    home: Home,
    out: Output,
    name: SourceName,
    model: Annotated[
        str, typer.Option(metavar="FILE|MODULE:BASE", help="A model, as in `tidings model check`.")
    ],
    database: Annotated[
        str, typer.Option(metavar="URL", help="The database: `sqlite:///path` or `postgresql://...`")
    ],
) -> None:
    """Store a database and its model under a name, for other commands. An existing name is replaced.

    Examples:
      tidings objects add university --model university.puml --database sqlite:///university.db
      tidings objects add shop --model shop.tables:Base --database postgresql://tidings@localhost/shop

    The URL is kept in the store, so a password in it is refused: use `PGPASSWORD` or `~/.pgpass` when the database is
    opened.
    """
    from tidings.objects.model.summary import summarize_model
    from tidings.objects.sources import SourceRegistry

    with home.open() as tidings:
        sources = SourceRegistry(tidings.store)
        mapped = sources.add(name, model, database).mapped
        source = sources.select(name)
    out.print_record(to_record(source), (name, "bold cyan"), summarize_model(mapped.model))


def list_sources(home: Home, out: Output) -> None:
    """List the databases that were added.

    Example:
      tidings objects list
    """
    from tidings.objects.sources import ADD_COMMAND, SourceRegistry

    with home.open() as tidings:
        sources = SourceRegistry(tidings.store).list_sources()
    columns = (("name", "name"), ("model", "model"), ("database", "database"))
    out.print_records(sources, View(f"no databases with objects: {ADD_COMMAND}", columns))


def remove(home: Home, out: Output, name: SourceName) -> None:
    """Remove a database from the list. Its watches and triggers stay, and so do notifications.

    Example:
      tidings objects remove university
    """
    from tidings.objects.sources import SourceRegistry

    with home.open() as tidings:
        removed = SourceRegistry(tidings.store).remove(name)
    out.print_removal({"name": name}, removed, "removed", "there is no such database")


app = make_group(
    "Databases with objects that are watched, each under a name with its model.",
    {"add": add, "list": list_sources, "remove": remove},
)


# Watches.


@dataclass(frozen=True)
class SourceChoice:
    """The database with the watched objects: one that was added, or one with its model."""

    source: Annotated[
        str | None,
        typer.Option(
            "--source",
            metavar="NAME",
            help="A database that `tidings objects add` has added; optional if there is only one.",
        ),
    ] = None
    model: Annotated[
        str | None,
        typer.Option(metavar="FILE|MODULE:BASE", help="The model of a database that was not added."),
    ] = None
    database: Annotated[
        str | None, typer.Option(metavar="URL", help="A database that was not added; with --model.")
    ] = None

    @contextmanager
    def open_watches(self, home: Home) -> Iterator[WatchRegistry]:
        """Open the watches of the chosen database."""
        from tidings.objects.sources import open_source
        from tidings.objects.watches import WatchRegistry

        with open_source(self._choose(home)) as opened:
            yield WatchRegistry(opened)

    def _choose(self, home: Home) -> ObjectSource:
        from tidings.objects.sources import SourceRegistry, build_unregistered_source

        if self.model is not None and self.database is not None and self.source is None:
            return build_unregistered_source(self.model, self.database)
        if self.model is not None or self.database is not None:
            accepted = "--source NAME, or --model MODEL with --database URL"
            raise InputError("the database is not clear", accepted=accepted)
        with home.open() as tidings:
            return SourceRegistry(tidings.store).select(self.source)


WatcherOption = Annotated[
    str, typer.Option("--as", metavar="CLASS:KEY", help="The subscriber: an object by its key or its label.")
]
WatchedObjects = Annotated[
    list[str], typer.Argument(metavar="CLASS[:KEY]...", help="Objects by key or label, or whole classes.")
]


def watch(
    choice: SourceChoice, home: Home, out: Output, watched: WatchedObjects, subscriber: WatcherOption
) -> None:
    """Watch an object, or all objects of a class and its subclasses, for a subscriber.

    Examples:
      tidings watch --as Student:1 Course:ProgrammingBasics
      tidings watch --as Student:2 Course
      tidings watch --as Student:1 Course:1 --model university.puml --database sqlite:///university.db

    Watches are stored in the database of the objects, for its triggers: they take effect with the next change.
    """
    with choice.open_watches(home) as registry:
        for target in watched:
            description, is_new = registry.add(subscriber, target)
            already = () if is_new else ("already",)
            record = {**description.record(), "new": is_new}
            out.print_record(record, *_list_cells(description, "watches"), *already)


def unwatch(
    choice: SourceChoice, home: Home, out: Output, watched: WatchedObjects, subscriber: WatcherOption
) -> None:
    """Remove watches. Notifications that follow from the model are not affected.

    Example:
      tidings unwatch --as Student:1 Course:ProgrammingBasics
    """
    missing = 0
    with choice.open_watches(home) as registry:
        for target in watched:
            description, was_there = registry.remove(subscriber, target)
            missing += not was_there
            if out.as_json:
                output.print_json({**description.record(), "removed": was_there})
            else:
                verb = "no longer watches" if was_there else "did not watch"
                output.print_line(*_list_cells(description, verb), stderr=not was_there)
    exit_if_rejects(missing)


def _list_cells(description: WatchDescription, verb: str) -> tuple[Cell, ...]:
    subscriber = (description.subscriber, "bold cyan"), description.subscriber_label
    return *subscriber, (verb, "dim"), (_get_object(description), "bold cyan"), _get_label(description)


def _get_object(description: WatchDescription) -> str:
    return description.cls if description.object is None else description.object


def _get_label(description: WatchDescription) -> str:
    return "all of them" if description.object is None else description.label or ""


WATCHES: View[WatchDescription] = View(
    "no watches: tidings watch --as CLASS:KEY CLASS:KEY",
    columns=(
        ("subscriber", "subscriber"),
        ("", "subscriber_label"),
        ("watches", _get_object),
        ("", _get_label),
    ),
    record=lambda description: description.record(),
)


def watches(
    choice: SourceChoice,
    home: Home,
    out: Output,
    subscriber: Annotated[
        str | None, typer.Option("--as", metavar="CLASS:KEY", help="Only those of this subscriber.")
    ] = None,
) -> None:
    """List watches.

    Example:
      tidings watches --as Student:1
    """
    with choice.open_watches(home) as registry:
        descriptions = registry.list_watches(subscriber)
    out.print_records(descriptions, WATCHES)

"""Installation of triggers as a migration: create what is missing, replace what differs, drop what is left over.

Only objects whose names begin with tidings_ are touched, and tables are never recreated: they hold watches, and changes
that are not read yet.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from tidings.core.suggest import printable, shorten_list
from tidings.core.text import plural
from tidings.errors import InputError
from tidings.objects.model.relational_view import quote_name
from tidings.objects.model.table_mapping import ForeignKey, LinkTable, MappedModel
from tidings.objects.outbox.database import ObjectDatabase
from tidings.objects.propagation import UNLIMITED, Limits
from tidings.objects.triggers.dialect import SchemaObject, SchemaObjectKind
from tidings.objects.triggers.generator import generate_schema


class InstallationState(Enum):
    """How an installed object differs from the generated one."""

    MISSING = "missing"
    DIFFERENT = "different"
    LEFT_OVER = "left over"


@dataclass(frozen=True, slots=True)
class SchemaDifference:
    """An object that installing would change; `piece` is None if it is left over."""

    state: InstallationState
    what: SchemaObjectKind
    name: str
    on: str | None
    piece: SchemaObject | None = None


def find_differences(
    site: ObjectDatabase, mapped: MappedModel, limits: Limits = UNLIMITED
) -> tuple[SchemaDifference, ...]:
    pieces = generate_schema(mapped, site.dialect, limits)
    found, wanted = site.found(), {(piece.what, piece.name) for piece in pieces}
    tables = set(site.tables([piece.name for piece in pieces if piece.what is SchemaObjectKind.TABLE]))
    differing = []
    for piece in pieces:
        key = piece.what, piece.name
        if piece.name not in tables if piece.what is SchemaObjectKind.TABLE else key not in found:
            differing.append(
                SchemaDifference(InstallationState.MISSING, piece.what, piece.name, piece.on, piece)
            )
        elif piece.mark is not None and found[key][1] != piece.mark:
            differing.append(
                SchemaDifference(InstallationState.DIFFERENT, piece.what, piece.name, piece.on, piece)
            )
        differing += _columns(site, piece) if piece.name in tables else ()
    left = [
        SchemaDifference(InstallationState.LEFT_OVER, *key, found[key][0])
        for key in found
        if key not in wanted
    ]
    return (*differing, *sorted(left, key=lambda each: (each.what.value, each.name)))


def _columns(site: ObjectDatabase, table: SchemaObject) -> Iterator[SchemaDifference]:
    """Find the columns that a table of an earlier version lacks; its rows are kept."""
    there = site.columns(table.name) if table.later else []
    for piece in table.later:
        if piece.name not in there:
            yield SchemaDifference(InstallationState.MISSING, piece.what, piece.name, piece.on, piece)


def install_triggers(
    site: ObjectDatabase, mapped: MappedModel, limits: Limits = UNLIMITED
) -> tuple[SchemaDifference, ...]:
    """Install triggers in one transaction, and return what changed."""
    _check(site, mapped)
    found = find_differences(site, mapped, limits)
    gone = [each for each in found if each.state is not InstallationState.MISSING and not _is_replaced(each)]
    made = [_make(each) for each in found if each.piece is not None]
    if found:
        site.run([*_drops(site, gone), *made])
    return found


def _is_replaced(each: SchemaDifference) -> bool:
    """Return whether an object is replaced instead of dropped and created.

    PostgreSQL cannot drop a function that a trigger calls. Other functions are dropped, since their return type may
    differ.
    """
    of_trigger = each.piece is not None and "RETURNS trigger" in each.piece.sql
    return each.what is SchemaObjectKind.FUNCTION and each.state is InstallationState.DIFFERENT and of_trigger


def _make(each: SchemaDifference) -> str:
    assert each.piece is not None, "what is left over is not made"
    sql = each.piece.sql
    return sql.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION", 1) if _is_replaced(each) else sql


def remove_triggers(site: ObjectDatabase) -> tuple[int, int]:
    """Drop everything that is installed, with the outbox; return the numbers of triggers and of watches."""
    found = site.found()
    everything = [SchemaDifference(InstallationState.LEFT_OVER, *key, found[key][0]) for key in found]
    names = [piece.name for piece in site.dialect.tables() if piece.what is SchemaObjectKind.TABLE]
    tables = site.tables(names)
    watches = site.count("tidings_watches") if "tidings_watches" in tables else 0
    # Tables that refer to others were created after them, and are dropped before them.
    site.run([*_drops(site, everything), *(f"DROP TABLE {name}" for name in reversed(tables))])
    return sum(each.what is SchemaObjectKind.TRIGGER for each in everything), watches


DROP_ORDER = (SchemaObjectKind.TRIGGER, SchemaObjectKind.FUNCTION, SchemaObjectKind.INDEX)


def _drops(site: ObjectDatabase, gone: Sequence[SchemaDifference]) -> Iterator[str]:
    in_schemas = site.dialect.name == "postgresql"
    for each in sorted(gone, key=lambda one: DROP_ORDER.index(one.what)):
        schema, _, _ = (each.on or "").rpartition(".")
        within = f"{quote_name(schema)}." if each.what is SchemaObjectKind.INDEX and schema else ""
        on = f" ON {quote_name(str(each.on))}" if each.what is SchemaObjectKind.TRIGGER and in_schemas else ""
        yield f"DROP {each.what.name} {within}{quote_name(each.name)}{on}"


def _folded(site: ObjectDatabase, name: str) -> str:
    return name.lower() if site.dialect.name == "sqlite" else name


def _check(site: ObjectDatabase, mapped: MappedModel) -> None:
    """Raise if columns of the model are missing: their triggers would make the user's statements fail later.

    Quoted names are case-sensitive in PostgreSQL, but not in SQLite.
    """
    missing = [
        f"{printable(table)}.{printable(column)}"
        for table, columns in _needed(mapped).items()
        for there in [{_folded(site, each) for each in site.columns(table)}]
        for column in columns
        if _folded(site, column) not in there
    ]
    if missing:
        raise InputError(
            f"the database lacks {plural(len(missing), 'column')} of the model",
            received=shorten_list(missing),
            accepted="the tables and columns that `tidings model show` lists",
            hint="tagged values set tables and columns: <<stored {table = ..., key = ...}>>",
        )


def _needed(mapped: MappedModel) -> dict[str, list[str]]:
    needed: dict[str, list[str]] = {}
    for table in mapped.tables.values():
        kept = table.discriminator
        needed.setdefault(table.name, []).extend((table.key, *table.columns.values()))
        if kept is not None:
            needed.setdefault(kept.table or table.name, []).append(kept.column)
    for link in mapped.links.values():
        if isinstance(link, LinkTable):
            needed.setdefault(link.name, []).extend((link.source, link.target))
        elif isinstance(link, ForeignKey):
            needed.setdefault(link.table, []).append(link.column)
    return needed

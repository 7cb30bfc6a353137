"""Installation of triggers as a migration: create missing objects, replace different ones, drop obsolete ones.

Only objects whose names begin with tidings_ are touched, and tables are never recreated: they hold watches, and changes
that have not been read yet.
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
    """Difference between an installed object and the generated one."""

    MISSING = "missing"
    DIFFERENT = "different"
    LEFT_OVER = "left over"


@dataclass(frozen=True, slots=True)
class SchemaDifference:
    """An object that installing would change; `schema_object` is None if the object is left over."""

    state: InstallationState
    what: SchemaObjectKind
    name: str
    on: str | None
    schema_object: SchemaObject | None = None


def find_differences(
    database: ObjectDatabase, mapped: MappedModel, limits: Limits = UNLIMITED
) -> tuple[SchemaDifference, ...]:
    schema_objects = generate_schema(mapped, database.dialect, limits)
    installed, generated = (
        database.installed_objects(),
        {(wanted_object.what, wanted_object.name) for wanted_object in schema_objects},
    )
    tables = set(
        database.tables(
            [
                wanted_object.name
                for wanted_object in schema_objects
                if wanted_object.what is SchemaObjectKind.TABLE
            ]
        )
    )
    differences = []
    for wanted_object in schema_objects:
        key = wanted_object.what, wanted_object.name
        if (
            wanted_object.name not in tables
            if wanted_object.what is SchemaObjectKind.TABLE
            else key not in installed
        ):
            differences.append(
                SchemaDifference(
                    InstallationState.MISSING,
                    wanted_object.what,
                    wanted_object.name,
                    wanted_object.on,
                    wanted_object,
                )
            )
        elif wanted_object.mark is not None and installed[key][1] != wanted_object.mark:
            differences.append(
                SchemaDifference(
                    InstallationState.DIFFERENT,
                    wanted_object.what,
                    wanted_object.name,
                    wanted_object.on,
                    wanted_object,
                )
            )
        differences += _find_missing_columns(database, wanted_object) if wanted_object.name in tables else ()
    left_over = [
        SchemaDifference(InstallationState.LEFT_OVER, *key, installed[key][0])
        for key in installed
        if key not in generated
    ]
    return (*differences, *sorted(left_over, key=lambda difference: (difference.what.value, difference.name)))


def _find_missing_columns(database: ObjectDatabase, table: SchemaObject) -> Iterator[SchemaDifference]:
    """Find the columns that a table of an earlier version lacks; its rows are kept."""
    existing = database.columns(table.name) if table.added_columns else []
    for schema_object in table.added_columns:
        if schema_object.name not in existing:
            yield SchemaDifference(
                InstallationState.MISSING,
                schema_object.what,
                schema_object.name,
                schema_object.on,
                schema_object,
            )


def install_triggers(
    database: ObjectDatabase, mapped: MappedModel, limits: Limits = UNLIMITED
) -> tuple[SchemaDifference, ...]:
    """Install triggers in one transaction, and return the changes."""
    _check_columns(database, mapped)
    differences = find_differences(database, mapped, limits)
    dropped = [
        difference
        for difference in differences
        if difference.state is not InstallationState.MISSING and not _is_replaced(difference)
    ]
    creations = [
        _build_creation(difference) for difference in differences if difference.schema_object is not None
    ]
    if differences:
        database.run([*_build_drops(database, dropped), *creations])
    return differences


def _is_replaced(difference: SchemaDifference) -> bool:
    """Return whether an object is replaced instead of dropped and created.

    PostgreSQL cannot drop a function that a trigger calls. Other functions are dropped, since their return type may
    differ.
    """
    is_trigger_function = (
        difference.schema_object is not None and "RETURNS trigger" in difference.schema_object.sql
    )
    return (
        difference.what is SchemaObjectKind.FUNCTION
        and difference.state is InstallationState.DIFFERENT
        and is_trigger_function
    )


def _build_creation(difference: SchemaDifference) -> str:
    assert difference.schema_object is not None, "an object that is left over is not created"
    sql = difference.schema_object.sql
    return (
        sql.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION", 1) if _is_replaced(difference) else sql
    )


def remove_triggers(database: ObjectDatabase) -> tuple[int, int]:
    """Drop everything that is installed, with the outbox; return the numbers of triggers and of watches."""
    installed = database.installed_objects()
    dropped = [SchemaDifference(InstallationState.LEFT_OVER, *key, installed[key][0]) for key in installed]
    names = [
        schema_object.name
        for schema_object in database.dialect.tables()
        if schema_object.what is SchemaObjectKind.TABLE
    ]
    tables = database.tables(names)
    watches = database.count("tidings_watches") if "tidings_watches" in tables else 0
    # Tables that refer to others were created after them, and are dropped before them.
    database.run([*_build_drops(database, dropped), *(f"DROP TABLE {name}" for name in reversed(tables))])
    return sum(difference.what is SchemaObjectKind.TRIGGER for difference in dropped), watches


DROP_ORDER = (SchemaObjectKind.TRIGGER, SchemaObjectKind.FUNCTION, SchemaObjectKind.INDEX)


def _build_drops(database: ObjectDatabase, dropped: Sequence[SchemaDifference]) -> Iterator[str]:
    in_schemas = database.dialect.name == "postgresql"
    for difference in sorted(dropped, key=lambda difference: DROP_ORDER.index(difference.what)):
        schema, _, _ = (difference.on or "").rpartition(".")
        prefix = f"{quote_name(schema)}." if difference.what is SchemaObjectKind.INDEX and schema else ""
        on = (
            f" ON {quote_name(str(difference.on))}"
            if difference.what is SchemaObjectKind.TRIGGER and in_schemas
            else ""
        )
        yield f"DROP {difference.what.name} {prefix}{quote_name(difference.name)}{on}"


def _fold_case(database: ObjectDatabase, name: str) -> str:
    return name.lower() if database.dialect.name == "sqlite" else name


def _check_columns(database: ObjectDatabase, mapped: MappedModel) -> None:
    """Raise if columns of the model are missing: their triggers would make the user's statements fail later.

    Quoted names are case-sensitive in PostgreSQL, but not in SQLite.
    """
    missing = [
        f"{printable(table)}.{printable(column)}"
        for table, columns in _list_required_columns(mapped).items()
        for existing in [{_fold_case(database, name) for name in database.columns(table)}]
        for column in columns
        if _fold_case(database, column) not in existing
    ]
    if missing:
        raise InputError(
            f"the database lacks {plural(len(missing), 'column')} of the model",
            received=shorten_list(missing),
            accepted="the tables and columns that `tidings model show` lists",
            hint="tagged values set tables and columns: <<stored {table = ..., key = ...}>>",
        )


def _list_required_columns(mapped: MappedModel) -> dict[str, list[str]]:
    required: dict[str, list[str]] = {}
    for table in mapped.tables.values():
        discriminator = table.discriminator
        required.setdefault(table.name, []).extend((table.key, *table.columns.values()))
        if discriminator is not None:
            required.setdefault(discriminator.table or table.name, []).append(discriminator.column)
    for link in mapped.links.values():
        if isinstance(link, LinkTable):
            required.setdefault(link.name, []).extend((link.source, link.target))
        elif isinstance(link, ForeignKey):
            required.setdefault(link.table, []).append(link.column)
    return required

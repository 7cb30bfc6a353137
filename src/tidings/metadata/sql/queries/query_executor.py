"""Execution of queries over the metadata of a store: bindings, order and selected values.

The statement finds URIs only. Sort values are read for all of them, selected values for those within the limit, all as
of one moment.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, Row, select, text
from sqlalchemy.exc import DBAPIError

from tidings.core.limits import check_limits, limits_from
from tidings.errors import TooLarge
from tidings.metadata.queries.answers import (
    Binding,
    QueryAnswer,
    column_names,
    evaluate_cell,
    selected_variables,
    sort_bindings,
)
from tidings.metadata.resources import Ref, Resource, Value
from tidings.metadata.rules.normal_form import class_of, normalize_rule
from tidings.metadata.rules.syntax import Path, Query, Rule
from tidings.metadata.schema.model import Schema
from tidings.metadata.sql import resource_rows
from tidings.metadata.sql.queries.query_statement import (
    QueryStatement,
    StatementBuilder,
    choose_start,
    find_smallest_set,
)
from tidings.metadata.sql.queries.query_tree import build_query_tree
from tidings.metadata.sql.resource_rows import from_comparable
from tidings.metadata.sql.tables import metadata_atoms, metadata_resources
from tidings.store import bulk
from tidings.store.database import Database

RULE_RESULTS_SQL = (
    "SELECT m.uri FROM rule_ends e CROSS JOIN rule_results m WHERE e.name = {rule} AND m.rule = e.rule"
)
"""The results of a rule at a provider."""

REPOSITORY_MEMBERS_SQL = "SELECT m.uri FROM repository_members m WHERE m.rule = {rule}"
"""The results of a rule at a repository."""

COUNT_LIMIT = 1_000
"""The limit of counting candidates. Beyond it, the choice of the first variable matters little."""

QUERY_BATCH = 10_000
"""Rows in memory at a time when all are read."""

PROGRESS_STEPS = 10_000
"""Number of steps of SQLite's virtual machine between checks of the deadline: about a millisecond."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a query: results, and seconds in the database."""

    results: int = 100_000
    seconds: int = 30

    def __post_init__(self) -> None:
        check_limits(self, {})


_NO_MORE: tuple[str, Iterator[Row[*tuple[Any, ...]]]] = "", iter(())

QUERY_LIMITS = limits_from("TIDINGS_QUERY_LIMITS", Limits)


class QueryExecutor:
    """Executor of queries; `members` is the SQL for the results of a rule."""

    def __init__(
        self, database: Database, members: str = RULE_RESULTS_SQL, limits: Limits = QUERY_LIMITS
    ) -> None:
        self._database, self._members, self._limits = database, members, limits

    def answer(self, query: Query, schema: Schema, types: Mapping[str, str]) -> QueryAnswer:
        """Answer a valid query. `types` are the classes of the rules that it searches."""
        with self._database.moment() as connection, _deadline(connection, self._limits.seconds):
            run = _QueryRun(connection, query, schema, types, self._members)
            limit = self._limits.results if query.limit is None else query.limit
            bindings = run.bindings(limit + 1 if query.limit is None else limit)
            sorted_bindings = sort_bindings(bindings, run.order(bindings), query.limit)
            if len(sorted_bindings) > self._limits.results:
                raise _build_too_large_error(self._limits.results)
            return run.build_answer(sorted_bindings)

    def resources(self) -> Iterator[Resource]:
        """Stream all resources ordered by URI, as of one moment."""
        r, a = metadata_resources.c, metadata_atoms.c
        with self._database.moment() as connection:
            atoms = select(a.uri, a.property, a.value, a.kind).order_by(a.uri, a.property, a.place)
            groups = groupby(
                connection.execution_options(yield_per=QUERY_BATCH).execute(atoms), key=itemgetter(0)
            )
            uri, rows = next(groups, _NO_MORE)
            for resource_uri, cls in connection.execute(select(r.uri, r["class"]).order_by(r.uri)):
                values: dict[str, tuple[Value, ...]] = {}
                if resource_uri == uri:
                    for _, name, value, kind in rows:
                        values[name] = (*values.get(name, ()), from_comparable(value, kind))
                    uri, rows = next(groups, _NO_MORE)
                yield Resource(resource_uri, cls, values)

    def find_referred(self, resources: Iterable[Resource], schema: Schema) -> dict[str, Resource]:
        """Return the existing strong targets of resources, if they have the class of the reference."""
        accepted = dict[str, set[str]]()
        for referrer in resources:
            for row in resource_rows.build_atom_rows(referrer, schema):
                if row.strong is not None:
                    accepted.setdefault(row.text, set()).update(schema.at_or_below(row.strong))
        with self._database.moment() as connection:
            targets = resource_rows.load_resources(connection, accepted)
        return {uri: resource for uri, resource in targets.items() if resource.cls in accepted[uri]}


def _build_too_large_error(limit: int) -> TooLarge:
    accepted = f"at most {limit:,} (the limit results)"
    return TooLarge("the answer has too many results", accepted=accepted, hint="ask for fewer with limit")


@dataclass(frozen=True, slots=True)
class _QueryRun:
    connection: Connection
    query: Query
    schema: Schema
    types: Mapping[str, str]
    members: str

    def bindings(self, limit: int) -> set[Binding]:
        """Return the bindings of the selected variables; without an order, no more than the limit."""
        bindings: set[Binding] = set()
        for normal in normalize_rule(self.query.rule, self.schema, self.types):
            sql, parameters = self.statement(normal)
            if not self.query.order:
                columns = ", ".join(str(at) for at in range(1, len(selected_variables(self.query)) + 1))
                sql += f" ORDER BY {columns} LIMIT {limit}"
            rows = self.connection.execute(text(sql), parameters)
            bindings.update(tuple(row) for row in rows)
        return bindings

    def statement(self, normal: Rule) -> tuple[str, dict[str, object]]:
        tree = build_query_tree(normal, self.schema, self.types)
        sizes = {variable: find_smallest_set(node, self.count) for variable, node in tree.items()}
        statement = self.new()
        builder = StatementBuilder(tree, sizes, statement)
        resource_set = builder.build_path(choose_start(tree, sizes, self.query.of), self.query.of)
        return statement.text(
            builder.bindings(selected_variables(self.query), resource_set)
        ), statement.parameters

    def new(self) -> QueryStatement:
        return QueryStatement(self.connection.dialect.name, self.members)

    def count(self, candidates: Callable[[QueryStatement], str]) -> int:
        """Count the candidates of a list up to a limit."""
        statement = self.new()
        sql = f"SELECT count(*) FROM ({candidates(statement)} LIMIT {COUNT_LIMIT}) f"
        return int(self.connection.execute(text(sql), statement.parameters).scalar_one())

    def order(self, unsorted: Iterable[Binding]) -> list[tuple[dict[Binding, Any], bool]]:
        bindings = list(unsorted)
        return [(self.keys(path, bindings), is_descending) for path, is_descending in self.query.order]

    def keys(self, path: Path, bindings: Sequence[Binding]) -> dict[Binding, Any]:
        """Return the sort value of each binding that has one."""
        index = selected_variables(self.query).index(path.variable)
        values = self.values(path, {binding[index] for binding in bindings})
        keys = ((binding, evaluate_cell(path, values.get(binding[index], ()))) for binding in bindings)
        return {binding: key for binding, key in keys if key is not None}

    def build_answer(self, bindings: Sequence[Binding]) -> QueryAnswer:
        if not self.query.select:
            loaded = resource_rows.load_resources(self.connection, [uri for (uri,) in bindings])
            return QueryAnswer(resources=tuple(loaded[uri] for (uri,) in bindings))
        variables = selected_variables(self.query)
        cells: list[list[Any]] = []
        for path in self.query.select:
            index = variables.index(path.variable)
            values = self.values(path, {binding[index] for binding in bindings})
            cells.append([evaluate_cell(path, values.get(binding[index], ())) for binding in bindings])
        return QueryAnswer(column_names(self.query), tuple(zip(*cells, strict=True)))

    def values(self, path: Path, uris: Iterable[str]) -> dict[str, list[Value]]:
        """Return the values at the end of a path for each resource, one step at a time for all."""
        extension = next(each.extension for each in self.query.searched if each.variable == path.variable)
        cls: str | None = class_of(extension, self.schema, self.types)
        reached: dict[str, list[Value]] = {uri: [Ref(uri)] for uri in uris}
        for index, step in enumerate(path.steps):
            assert cls is not None, "queries are checked before"
            declared = self.schema.property_of(cls, step.property)
            assert declared is not None, "queries are checked before"
            uris_in_step = {
                each.uri for values_of in reached.values() for each in values_of if isinstance(each, Ref)
            }
            instances = self.instances(uris_in_step, cls) if index else uris_in_step
            values = self.property(instances, step.property)
            reached = {
                uri: [
                    value for each in values_of if isinstance(each, Ref) for value in values.get(each.uri, ())
                ]
                for uri, values_of in reached.items()
            }
            cls = declared.leads_to
        return reached

    def instances(self, uris: Iterable[str], cls: str) -> list[str]:
        """Return the resources that exist and have a class."""
        classes_below = self.schema.at_or_below(cls)
        stored = resource_rows.load_classes(self.connection, uris)
        return [uri for uri, cls_of in stored.items() if cls_of in classes_below]

    def property(self, uris: Iterable[str], name: str) -> dict[str, list[Value]]:
        c = metadata_atoms.c
        # Not the column itself: SQLite would scan all values of the property for each chunk of URIs.
        statement = select(c.uri, c.value, c.kind).where(c.property + "" == name)
        values: dict[str, list[Value]] = {}
        for uri, value, kind in bulk.select_among(self.connection, statement, c.uri, list(uris)):
            values.setdefault(uri, []).append(from_comparable(value, kind))
        return values


@contextmanager
def _deadline(connection: Connection, seconds: int) -> Iterator[None]:
    """Cancel statements at the deadline."""
    sqlite = connection.dialect.name == "sqlite"
    driver: Any = connection.connection.driver_connection
    if sqlite:
        deadline = time.monotonic() + seconds
        driver.set_progress_handler(lambda: time.monotonic() > deadline, PROGRESS_STEPS)
    else:
        connection.execute(text(f"SET LOCAL statement_timeout = {1_000 * seconds}"))
    try:
        yield
    except DBAPIError as error:
        if not _is_over(error):
            raise
        accepted = f"at most {seconds} s (the limit seconds)"
        raise TooLarge("the query takes too long", accepted=accepted) from error
    finally:
        if sqlite:
            driver.set_progress_handler(None, 0)


def _is_over(error: DBAPIError) -> bool:
    return getattr(error.orig, "sqlstate", None) == "57014" or str(error.orig) == "interrupted"

"""Tables of metadata, of its log, of rules (section 3.3.4 of paper 001), of filter runs, and of repositories.

The paper's FilterData is `metadata_atoms`, without the rows for the resources themselves: those are
`metadata_resources`. AtomicRules and RuleDependencies are `atomic_rules` and `join_rules`, RuleGroups is `rule_groups`.
The materialized results are `rule_results`.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column, Index, Integer, LargeBinary, MetaData, Numeric, SmallInteger, Table, Text, func
from sqlalchemy.schema import SchemaItem
from sqlalchemy.types import TypeEngine

from tidings.store.tables import Name, Whole, metadata

INDEXED_LENGTH = 200
"""Number of indexed characters of a value: PostgreSQL limits keys to 2,704 bytes."""

LOG_COUNTER, APPLIED_COUNTER = "metadata_log", "metadata_applied"
RULE_CHANGES_COUNTER = "metadata_rule_changes"
"""Counters: the last position of the log, the last applied position, and the number of changes of rules."""


def _keys(type_: TypeEngine[Any], *names: str) -> list[SchemaItem]:
    return [Column(name, type_, primary_key=True, autoincrement=False) for name in names]


def _columns(
    type_: TypeEngine[Any] | type[TypeEngine[Any]], *names: str, null: bool = False
) -> list[SchemaItem]:
    return [Column(name, type_, nullable=null) for name in names]


def _value() -> tuple[Column[str], Column[int], Column[object]]:
    """Columns of a value. Values are equal if text and kind are; numbers and instants are ordered by `number`."""
    number: Column[object] = Column("number", Numeric(asdecimal=False), nullable=True)
    return Column("value", Name, nullable=True), Column("kind", SmallInteger, nullable=True), number


def _table(name: str, *parts: SchemaItem) -> Table:
    return Table(name, metadata, *parts)


def _clustered(name: str, *parts: SchemaItem) -> Table:
    """Declare a table that SQLite stores in the order of its key."""
    return Table(name, metadata, *parts, sqlite_with_rowid=False)


# Registrations in one order. The log begins later than at the first position if it was trimmed.
metadata_log = _table(
    "metadata_log",
    *_keys(Whole, "position"),
    *_columns(Text, "operation", "uri", "media_type"),
    *_columns(LargeBinary, "body"),
    *_columns(Text, "time"),
)
_is_schema = metadata_log.c.operation == "schema"
Index("metadata_log_schemas", metadata_log.c.position, sqlite_where=_is_schema, postgresql_where=_is_schema)

# One row: the id of this store among providers. It is generated once, so that each store is a different provider.
metadata_identity = _table("metadata_identity", *_keys(Name, "id"))

# Which rules search which others by name.
rule_uses = _clustered("rule_uses", *_keys(Name, "name", "used"), Index("rule_uses_of", "used"))

LOG_TABLES = (metadata_log, metadata_identity, rule_uses)

# Each class with itself and its superclasses, for the evaluation of rules in the database.
metadata_classes = _clustered("metadata_classes", *_keys(Name, "class", "superclass"))

# The current schema as it was loaded: one row.
metadata_schema = _table(
    "metadata_schema", *_keys(Whole, "version"), *_columns(Name, "media_type"), *_columns(LargeBinary, "body")
)

metadata_resources = _clustered(
    "metadata_resources",
    *_keys(Name, "uri"),
    Column("class", Name, nullable=False, index=True),
    Column("document", Name, nullable=False, index=True),
)

# `place` orders the values of a property. `strong` is the class of the target of a strong reference.
metadata_atoms = _clustered(
    "metadata_atoms",
    *_keys(Name, "uri", "property"),
    *_keys(Integer(), "place"),
    *_columns(Name, "class"),
    *_value(),
    *_columns(Name, "strong", null=True),
)
_start = func.substr(metadata_atoms.c.value, 1, INDEXED_LENGTH)
_strong = metadata_atoms.c.strong.is_not(None)
Index("metadata_atoms_value", metadata_atoms.c.property, _start)
Index("metadata_atoms_strong", _start, sqlite_where=_strong, postgresql_where=_strong)

# `key` is a hash of the condition and the inputs: equal rules are stored once. Joins have more in `join_rules`.
atomic_rules = _table(
    "atomic_rules",
    *_keys(Whole, "rule"),
    Column("key", Name, nullable=False, unique=True),
    *_columns(Integer, "level"),
    *_columns(Name, "class", "property", null=True),
    *_columns(Text, "compares", null=True),
    *_value(),
)

# The conditions of join rules, without their inputs: the paper's rule groups. `further_predicates` counts those in
# `rule_group_predicates`, if there are any.
rule_groups = _table(
    "rule_groups",
    *_keys(Whole, "grp"),
    *_columns(Name, "left_class"),
    *_columns(Name, "left_property", null=True),
    *_columns(Text, "compares"),
    *_columns(Name, "right_class"),
    *_columns(Name, "right_property", null=True),
    *_columns(SmallInteger, "registers_left"),
    *_columns(SmallInteger, "further_predicates", null=True),
)

# Further predicates for the same two resources. With `swapped`, the right text contains the left one.
rule_group_predicates = _clustered(
    "rule_group_predicates",
    *_keys(Whole, "grp"),
    *_keys(Integer(), "place"),
    *_columns(Name, "left_property", null=True),
    *_columns(Text, "compares"),
    *_columns(Name, "right_property", null=True),
    *_columns(SmallInteger, "swapped"),
)

join_rules = _table(
    "join_rules",
    *_keys(Whole, "rule"),
    *_columns(Whole, "grp", "left_rule", "right_rule"),
    *_columns(Integer, "level"),
    Index("join_rules_left", "left_rule", "grp", "right_rule", unique=True),
    Index("join_rules_right", "right_rule", "grp", "left_rule"),
)

# Which rules are inputs of which group on which level: `join_rules` without the other input. A rule that is an input of
# 100,000 others has one row here.
rule_inputs = _clustered(
    "rule_inputs", *_keys(Whole, "rule", "grp"), *_keys(Integer(), "level"), *_keys(SmallInteger(), "is_left")
)

rule_results = _clustered("rule_results", *_keys(Name, "uri"), *_keys(Whole, "rule"))
Index("rule_results_of", rule_results.c.rule, rule_results.c.uri)

# `name` is the scope, which may be empty, and the name in it. `within` is the accepted delay.
metadata_rules = _clustered(
    "metadata_rules",
    *_keys(Name, "name"),
    Column("owner", Name, nullable=False, index=True),
    *_columns(Text, "text"),
    *_columns(Name, "scope", null=True),
    *_columns(Integer, "within", null=True),
)
_waits = metadata_rules.c.within.is_not(None)
Index("metadata_rules_delayed", metadata_rules.c.name, sqlite_where=_waits, postgresql_where=_waits)

# The end rules of a rule: one for each alternative of `or`.
rule_ends = _clustered(
    "rule_ends", *_keys(Name, "name"), *_keys(Whole, "rule"), Index("rule_ends_of", "rule")
)

RULE_TABLES = (
    *(metadata_schema, metadata_classes, metadata_resources, metadata_atoms),
    *(atomic_rules, rule_groups, rule_group_predicates, join_rules, rule_inputs, rule_results),
    *(metadata_rules, rule_ends),
)

# Results of paused rules, with the resources of their strong closure: `content` is a resource as JSON.
paused_results = _clustered("paused_results", *_keys(Name, "rule", "uri"))
paused_resources = _clustered("paused_resources", *_keys(Name, "rule", "uri"), *_columns(Text, "content"))
PAUSED_TABLES = (paused_results, paused_resources)

# The log that this provider follows, if any.
followed_log = _table("followed_log", *_keys(Name, "name"), *_columns(Text, "value"))

# Temporary tables of a filter run, which are emptied when the transaction ends.

_run_tables = MetaData()


def _run_table(name: str, *parts: SchemaItem) -> Table:
    return Table(name, _run_tables, *parts, prefixes=["TEMPORARY"], postgresql_on_commit="DELETE ROWS")


# The differences of a run: resources with their classes before and after, properties, and removed values.
run_changed = _run_table("run_changed", *_keys(Name, "uri", "class"))
run_touched = _run_table("run_touched", *_columns(Name, "uri", "property", null=True))
run_gone = _run_table(
    "run_gone",
    *_columns(Name, "uri", "property", null=True),
    *_value(),
    Index("run_gone_uri", "uri", "property"),
)

# Results that were added or removed in a run.
run_delta = _run_table(
    "run_delta",
    *_keys(Name, "uri"),
    *_keys(Whole, "rule"),
    *_columns(Integer, "level"),
    *_columns(SmallInteger, "went"),
    Index("run_delta_level", "level"),
)

# Results of inputs with the groups to evaluate for them: added ones, and those that may remove others.
_INPUT = ("level", "grp", "is_left", "rule")
run_moved = _run_table(
    "run_moved",
    *_columns(Whole, *_INPUT, null=True),
    *_columns(Name, "uri", null=True),
    *_columns(SmallInteger, "comes", "goes", null=True),
    Index("run_moved_at", "level", "grp", "is_left"),
)

# Inputs of new join rules; all of their results are evaluated.
run_seeds = _run_table("run_seeds", *_columns(Whole, *_INPUT, null=True))

# Results of join rules whose partners are needed for an explanation.
run_asked = _run_table("run_asked", *_columns(Whole, "rule", null=True), *_columns(Name, "uri", null=True))

RUN_TABLES = (run_changed, run_touched, run_gone, run_delta, run_moved, run_seeds, run_asked)

# Tables of a repository, which stores resources and atoms in the same tables as a provider.

# The resources that rules register. One that is not stored was deleted when it was requested: a later move removes it.
repository_members = _clustered("repository_members", *_keys(Name, "uri", "rule"))
Index("repository_members_of", repository_members.c.rule, repository_members.c.uri)

# The rules of the members.
repository_rules = _clustered("repository_rules", *_keys(Name, "name"), *_columns(Text, "text"))

# Local documents of this repository. `shadows`: the provider has a document with the same URI.
repository_documents = _clustered(
    "repository_documents",
    *_keys(Name, "document"),
    *_columns(Name, "media_type"),
    *_columns(LargeBinary, "body"),
    *_columns(SmallInteger, "shadows"),
)

# One row: the name of the repository, and its cursor.
repository_state = _table(
    "repository_state",
    *_keys(Name, "name"),
    *_columns(Name, "provider", null=True),
    *_columns(Whole, "sequence", "position", null=True),
    *_columns(Text, "mark", null=True),
)

REPOSITORY_TABLES = (repository_members, repository_rules, repository_documents, repository_state)

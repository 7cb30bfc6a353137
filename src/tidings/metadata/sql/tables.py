"""Tables of metadata, of rules (section 3.3.4 of paper 001), of filter runs, and of repositories.

The paper's FilterData is `metadata_atoms`, without the rows for the resources themselves: those are
`metadata_resources`. AtomicRules and RuleDependencies are `atomic_rules` and `join_rules`, RuleGroups is `rule_groups`.
The materialized results are `rule_results`.
"""

from __future__ import annotations

from sqlalchemy import Column, Index, Integer, LargeBinary, MetaData, Numeric, SmallInteger, Table, Text, func
from sqlalchemy.schema import SchemaItem

from tidings.store.tables import Name, Whole, metadata

INDEXED_LENGTH = 200
"""How many characters of a value are indexed: PostgreSQL limits keys to 2,704 bytes."""

LOG_COUNTER, APPLIED_COUNTER, RULE_CHANGES_COUNTER = (
    "metadata_log",
    "metadata_applied",
    "metadata_rule_changes",
)
"""Counters: the last position of the log, the last applied position, and the number of changes of rules."""

# Registrations in one order. The log begins later than at the first position if it was trimmed.
metadata_log = Table(
    "metadata_log",
    metadata,
    Column("position", Whole, primary_key=True, autoincrement=False),
    Column("what", Text, nullable=False),
    Column("uri", Text, nullable=False),
    Column("media_type", Text, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("time", Text, nullable=False),
)
_is_schema = metadata_log.c.what == "schema"
Index("metadata_log_schemas", metadata_log.c.position, sqlite_where=_is_schema, postgresql_where=_is_schema)

# One row: the id of this store among providers. It is generated once, so that each store is a different provider.
metadata_identity = Table("metadata_identity", metadata, Column("id", Name, primary_key=True))

# Which rules search which others by name.
rule_uses = Table(
    "rule_uses",
    metadata,
    Column("name", Name, primary_key=True),
    Column("used", Name, primary_key=True),
    Index("rule_uses_of", "used"),
    sqlite_with_rowid=False,
)

LOG_TABLES = (metadata_log, metadata_identity, rule_uses)

# Each class with itself and its superclasses, for the evaluation of rules in the database.
metadata_classes = Table(
    "metadata_classes",
    metadata,
    Column("class", Name, primary_key=True),
    Column("above", Name, primary_key=True),
    sqlite_with_rowid=False,
)

# The current schema as it was loaded: one row.
metadata_schema = Table(
    "metadata_schema",
    metadata,
    Column("version", Whole, primary_key=True, autoincrement=False),
    Column("media_type", Name, nullable=False),
    Column("body", LargeBinary, nullable=False),
)

metadata_resources = Table(
    "metadata_resources",
    metadata,
    Column("uri", Name, primary_key=True),
    Column("class", Name, nullable=False, index=True),
    Column("document", Name, nullable=False, index=True),
    sqlite_with_rowid=False,
)


def _value() -> tuple[Column[str], Column[int], Column[object]]:
    """Columns of a value. Values are equal if text and kind are; numbers and instants are ordered by `number`."""
    number: Column[object] = Column("number", Numeric(asdecimal=False), nullable=True)
    return Column("value", Name, nullable=True), Column("kind", SmallInteger, nullable=True), number


# `place` orders the values of a property. `strong` is the class of the target of a strong reference.
metadata_atoms = Table(
    "metadata_atoms",
    metadata,
    Column("uri", Name, primary_key=True),
    Column("property", Name, primary_key=True),
    Column("place", Integer, primary_key=True, autoincrement=False),
    Column("class", Name, nullable=False),
    *_value(),
    Column("strong", Name, nullable=True),
    sqlite_with_rowid=False,
)
_start = func.substr(metadata_atoms.c.value, 1, INDEXED_LENGTH)
_strong = metadata_atoms.c.strong.is_not(None)
Index("metadata_atoms_value", metadata_atoms.c.property, _start)
Index("metadata_atoms_strong", _start, sqlite_where=_strong, postgresql_where=_strong)

# `key` is a hash of the condition and the inputs: equal rules are stored once. Joins have more in `join_rules`.
atomic_rules = Table(
    "atomic_rules",
    metadata,
    Column("rule", Whole, primary_key=True, autoincrement=False),
    Column("key", Name, nullable=False, unique=True),
    Column("level", Integer, nullable=False),
    Column("class", Name, nullable=True),
    Column("property", Name, nullable=True),
    Column("compares", Text, nullable=True),
    *_value(),
)

# What join rules ask, whatever their inputs: the paper's rule groups. `further` is how many comparisons there are
# beside the one that stands here, if there are any.
rule_groups = Table(
    "rule_groups",
    metadata,
    Column("grp", Whole, primary_key=True, autoincrement=False),
    Column("left_class", Name, nullable=False),
    Column("left_property", Name, nullable=True),
    Column("compares", Text, nullable=False),
    Column("right_class", Name, nullable=False),
    Column("right_property", Name, nullable=True),
    Column("registers_left", SmallInteger, nullable=False),
    Column("further", SmallInteger, nullable=True),
)

# Further predicates for the same two resources. With `turned`, the right text contains the left one.
rule_group_also = Table(
    "rule_group_also",
    metadata,
    Column("grp", Whole, primary_key=True, autoincrement=False),
    Column("place", Integer, primary_key=True, autoincrement=False),
    Column("left_property", Name, nullable=True),
    Column("compares", Text, nullable=False),
    Column("right_property", Name, nullable=True),
    Column("turned", SmallInteger, nullable=False),
    sqlite_with_rowid=False,
)

join_rules = Table(
    "join_rules",
    metadata,
    Column("rule", Whole, primary_key=True, autoincrement=False),
    Column("grp", Whole, nullable=False),
    Column("left_rule", Whole, nullable=False),
    Column("right_rule", Whole, nullable=False),
    Column("level", Integer, nullable=False),
    Index("join_rules_left", "left_rule", "grp", "right_rule", unique=True),
    Index("join_rules_right", "right_rule", "grp", "left_rule"),
)

# Which rules are inputs, of which group, on which level: `join_rules` without the other input. A rule that 100,000
# others have as an input has one row here.
rule_feeds = Table(
    "rule_feeds",
    metadata,
    Column("rule", Whole, primary_key=True, autoincrement=False),
    Column("grp", Whole, primary_key=True, autoincrement=False),
    Column("level", Integer, primary_key=True, autoincrement=False),
    Column("is_left", SmallInteger, primary_key=True, autoincrement=False),
    sqlite_with_rowid=False,
)

rule_results = Table(
    "rule_results",
    metadata,
    Column("uri", Name, primary_key=True),
    Column("rule", Whole, primary_key=True, autoincrement=False),
    sqlite_with_rowid=False,
)
Index("rule_results_of", rule_results.c.rule, rule_results.c.uri)

# `name` is the scope, which may be empty, and the name in it. `within` is the accepted delay.
metadata_rules = Table(
    "metadata_rules",
    metadata,
    Column("name", Name, primary_key=True),
    Column("owner", Name, nullable=False, index=True),
    Column("text", Text, nullable=False),
    Column("scope", Name, nullable=True),
    Column("within", Integer, nullable=True),
    sqlite_with_rowid=False,
)
_waits = metadata_rules.c.within.is_not(None)
Index("metadata_rules_delayed", metadata_rules.c.name, sqlite_where=_waits, postgresql_where=_waits)

# The end rules of a rule: one for each alternative of `or`.
rule_ends = Table(
    "rule_ends",
    metadata,
    Column("name", Name, primary_key=True),
    Column("rule", Whole, primary_key=True, autoincrement=False),
    Index("rule_ends_of", "rule"),
    sqlite_with_rowid=False,
)

RULE_TABLES = (
    metadata_schema,
    metadata_classes,
    metadata_resources,
    metadata_atoms,
    atomic_rules,
    rule_groups,
    rule_group_also,
    join_rules,
    rule_feeds,
    rule_results,
    metadata_rules,
    rule_ends,
)

_of_a_run = MetaData()


def _of_run(name: str, *parts: SchemaItem) -> Table:
    """Declare a temporary table, which is emptied when the transaction ends."""
    return Table(name, _of_a_run, *parts, prefixes=["TEMPORARY"], postgresql_on_commit="DELETE ROWS")


# The differences of a run: resources with their classes before and after, properties, and removed values.
run_changed = _of_run(
    "run_changed", Column("uri", Name, primary_key=True), Column("class", Name, primary_key=True)
)
run_touched = _of_run("run_touched", Column("uri", Name), Column("property", Name))
run_gone = _of_run(
    "run_gone",
    Column("uri", Name),
    Column("property", Name),
    *_value(),
    Index("run_gone_uri", "uri", "property"),
)

# Results that were added or removed in a run.
run_delta = _of_run(
    "run_delta",
    Column("uri", Name, primary_key=True),
    Column("rule", Whole, primary_key=True, autoincrement=False),
    Column("level", Integer, nullable=False),
    Column("went", SmallInteger, nullable=False),
    Index("run_delta_level", "level"),
)


def _of_a_stage() -> tuple[Column[int], ...]:
    """Columns of a group on a level, and the input that a rule is."""
    names = ("level", "grp", "is_left", "rule")
    return tuple(Column(name, Whole) for name in names)


# Results of inputs with the groups to evaluate for them: added ones, and those that may remove others.
run_moved = _of_run(
    "run_moved",
    *_of_a_stage(),
    Column("uri", Name),
    Column("comes", SmallInteger),
    Column("goes", SmallInteger),
    Index("run_moved_at", "level", "grp", "is_left"),
)

# Inputs of new join rules, of which all results are evaluated.
run_seeds = _of_run("run_seeds", *_of_a_stage())

# Results of join rules whose partners are needed for an explanation.
run_asked = _of_run("run_asked", Column("rule", Whole), Column("uri", Name))

RUN_TABLES = (run_changed, run_touched, run_gone, run_delta, run_moved, run_seeds, run_asked)


# Tables of a repository, which stores resources and atoms in the same tables as a provider.


# What the rules register. A resource of which nothing is stored may stand here: it was gone when it was asked for, and
# the move that says so is on its way.
repository_members = Table(
    "repository_members",
    metadata,
    Column("uri", Name, primary_key=True),
    Column("rule", Name, primary_key=True),
    sqlite_with_rowid=False,
)
Index("repository_members_of", repository_members.c.rule, repository_members.c.uri)

# The rules of the members.
repository_rules = Table(
    "repository_rules",
    metadata,
    Column("name", Name, primary_key=True),
    Column("text", Text, nullable=False),
    sqlite_with_rowid=False,
)

# Local documents of this repository. `shadows`: the provider has a document with the same URI.
repository_documents = Table(
    "repository_documents",
    metadata,
    Column("document", Name, primary_key=True),
    Column("media_type", Name, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("shadows", SmallInteger, nullable=False),
    sqlite_with_rowid=False,
)

# One row: the name of the repository, and its cursor.
repository_state = Table(
    "repository_state",
    metadata,
    Column("name", Name, primary_key=True),
    Column("provider", Name, nullable=True),
    Column("sequence", Whole, nullable=True),
    Column("position", Whole, nullable=True),
    Column("mark", Text, nullable=True),
)

REPOSITORY_TABLES = (repository_members, repository_rules, repository_documents, repository_state)


# Replication state of a provider.


# The followed log.
metadata_backbone = Table(
    "metadata_backbone",
    metadata,
    Column("name", Name, primary_key=True),
    Column("value", Text, nullable=False),
)

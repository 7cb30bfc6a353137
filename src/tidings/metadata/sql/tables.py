"""The tables of metadata and of the rules over it (section 3.3.4 of paper 001), and those of a filter run.

The paper's FilterData is `metadata_atoms`, without the rows for the resources themselves: those are
`metadata_resources`. AtomicRules and RuleDependencies are `atomic_rules` and `join_rules`, RuleGroups is `rule_groups`.
What is materialised stands in `rule_results`.
"""

from __future__ import annotations

from sqlalchemy import Column, Index, Integer, LargeBinary, MetaData, Numeric, SmallInteger, Table, Text, func
from sqlalchemy.schema import SchemaItem

from tidings.store.tables import Name, Whole, metadata

INDEXED_LENGTH = 200
"""So many characters of a value are in an index: PostgreSQL takes no key of more than 2,704 bytes."""

# Each class, and each that it is or stands below. Rules over what is stored are evaluated in the database.
metadata_classes = Table(
    "metadata_classes",
    metadata,
    Column("class", Name, primary_key=True),
    Column("above", Name, primary_key=True),
    sqlite_with_rowid=False,
)

# The schema that everything is checked by, as it was loaded: one row.
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
    """A value: two are equal if text and kind are. Numbers and instants have a number by which they are ordered."""
    number: Column[object] = Column("number", Numeric(asdecimal=False), nullable=True)
    return Column("value", Name, nullable=True), Column("kind", SmallInteger, nullable=True), number


# `place` is the value's among those of its property. `strong` is the class that a strong reference leads to.
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

# `key` is a hash of what a rule asks, inputs included: equal rules are one. Of a join rule the rest is in `join_rules`.
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

# What must hold between the same two resources, too. `turned` is for contains: the right one has the left one in it.
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

# `name` is the scope and what the rule is called in it; no scope is an empty one. `within` is the accepted delay.
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

# The atomic rules whose results a rule has: several where an `or` was split up.
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
    """A table that a connection has to itself, empty again when the transaction ends."""
    return Table(name, _of_a_run, *parts, prefixes=["TEMPORARY"], postgresql_on_commit="DELETE ROWS")


# What is different in a run: resources with their class (before and after), properties, and values that are no more.
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

# Results that came (or went) in a run.
run_delta = _of_run(
    "run_delta",
    Column("uri", Name, primary_key=True),
    Column("rule", Whole, primary_key=True, autoincrement=False),
    Column("level", Integer, nullable=False),
    Column("went", SmallInteger, nullable=False),
    Index("run_delta_level", "level"),
)


def _of_a_stage() -> tuple[Column[int], ...]:
    """A group on a level, and which of its inputs a rule is."""
    names = ("level", "grp", "is_left", "rule")
    return tuple(Column(name, Whole) for name in names)


# Results of inputs, and for which groups they have to be looked at: because they came, or may have taken others away.
run_moved = _of_run(
    "run_moved",
    *_of_a_stage(),
    Column("uri", Name),
    Column("comes", SmallInteger),
    Column("goes", SmallInteger),
    Index("run_moved_at", "level", "grp", "is_left"),
)

# Inputs of new join rules, all of whose results have to be looked at.
run_seeds = _of_run("run_seeds", *_of_a_stage())

# Results of join rules that are explained: what do they meet?
run_asked = _of_run("run_asked", Column("rule", Whole), Column("uri", Name))

RUN_TABLES = (run_changed, run_touched, run_gone, run_delta, run_moved, run_seeds, run_asked)


# The tables of a repository, beside those of metadata: resources and their atoms are stored as a provider's are.


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

# The rules by which the members came.
repository_rules = Table(
    "repository_rules",
    metadata,
    Column("name", Name, primary_key=True),
    Column("text", Text, nullable=False),
    sqlite_with_rowid=False,
)

# Documents that are of this repository alone. `shadows`: the provider has a document that is called the same.
repository_documents = Table(
    "repository_documents",
    metadata,
    Column("document", Name, primary_key=True),
    Column("media_type", Name, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("shadows", SmallInteger, nullable=False),
    sqlite_with_rowid=False,
)

# One row: what the repository is called, and its cursor, as far as there is one.
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


# The table of what a provider remembers of the others.


# Whom the provider follows.
metadata_backbone = Table(
    "metadata_backbone",
    metadata,
    Column("name", Name, primary_key=True),
    Column("value", Text, nullable=False),
)

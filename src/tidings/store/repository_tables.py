"""The tables of a repository, beside those of metadata: resources and their atoms are stored as a provider's are."""

from __future__ import annotations

from sqlalchemy import Column, Index, LargeBinary, SmallInteger, Table, Text

from tidings.store.tables import Name, Whole, metadata

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

ALL = (repository_members, repository_rules, repository_documents, repository_state)

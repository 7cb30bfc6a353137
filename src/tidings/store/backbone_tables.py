"""The table of what a provider remembers of the others."""

from __future__ import annotations

from sqlalchemy import Column, Table, Text

from tidings.store.tables import Name, metadata

# Whom the provider follows.
metadata_backbone = Table(
    "metadata_backbone",
    metadata,
    Column("name", Name, primary_key=True),
    Column("value", Text, nullable=False),
)

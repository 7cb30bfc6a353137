"""Queries over metadata as SQL statements."""

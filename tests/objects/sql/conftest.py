"""Stores on SQLite and PostgreSQL for every test of this folder."""

from __future__ import annotations

from tests.store.conftest import new_url, release_databases, store, url

__all__ = ["new_url", "release_databases", "store", "url"]

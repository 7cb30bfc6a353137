"""Copied and reused test stores equal migrated ones, with an identity of their own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import inspect, text

from tests.support.stores.ready_stores import ReadyStores, migrated_anew, open_ready
from tidings.errors import StoreError
from tidings.model import Publication
from tidings.store.store import open_store

SHAPES = {
    "sqlite": "SELECT name, sql FROM sqlite_master",
    "postgresql": """
        SELECT table_name, concat_ws(' ', column_name, data_type, is_nullable, column_default)
        FROM information_schema.columns WHERE table_schema = current_schema
        UNION ALL
        SELECT indexname, replace(indexdef, current_schema || '.', '')
        FROM pg_indexes WHERE schemaname = current_schema
        UNION ALL
        SELECT conname, replace(pg_get_constraintdef(oid), current_schema || '.', '')
        FROM pg_constraint WHERE connamespace = current_schema::regnamespace
    """,
}
VARYING_COLUMNS = {"metadata_identity": "id", "tidings_migrations": "applied"}


def read_contents(url: str) -> tuple[Counter[str], dict[str, Counter[str]], str]:
    """Return the tables of a store, their rows, and its identity.

    The rows are without the identity and the times of the migrations.
    """
    with open_store(url) as store, store.database.read() as connection:
        rows = {}
        for table in inspect(connection).get_table_names():
            table_rows = connection.execute(text(f"SELECT * FROM {table}")).mappings()
            rows[table] = Counter(str({**row, VARYING_COLUMNS.get(table): None}) for row in table_rows)
        shape = connection.execute(text(SHAPES[connection.dialect.name])).all()
        name = connection.execute(text("SELECT id FROM metadata_identity")).scalar_one()
        return Counter(map(str, shape)), rows, name


def test_open_ready_equals_migrated_store_with_new_identity(new_url: Callable[[], str]) -> None:
    with migrated_anew():
        shape, rows, name = read_contents(new_url())
    assert len(shape) > 100 and sum(map(len, rows.values())) > 30
    with open_store(new_url()) as store:
        store.journal.append([Publication("p-1", "application/json", b"{}")])
    for places in set(ReadyStores.of.values()):
        places.take_back()
    again, other = read_contents(new_url()), read_contents(new_url())
    assert again[:2] == other[:2] == (shape, rows)
    assert len({name, again[2], other[2]}) == 3


def test_open_ready_rejected_address_creates_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StoreError, match="unsupported store address"):
        open_ready("sqlite:///:memory:")
    assert list(tmp_path.iterdir()) == []

"""A store that is copied or used again is what the migrations make, with a name of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import inspect, text

from tests.support.stores.ready_stores import Places, migrated_anew, open_ready
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
ITS_OWN = {"metadata_identity": "id", "tidings_migrations": "applied"}


def all_of(url: str) -> tuple[Counter[str], dict[str, Counter[str]], str]:
    """What a store's tables are, what is in them but for its name and when it was made, and that name."""
    with open_store(url) as store, store.database.read() as connection:
        rows = {}
        for table in inspect(connection).get_table_names():
            found = connection.execute(text(f"SELECT * FROM {table}")).mappings()
            rows[table] = Counter(str({**row, ITS_OWN.get(table): None}) for row in found)
        shape = connection.execute(text(SHAPES[connection.dialect.name])).all()
        name = connection.execute(text("SELECT id FROM metadata_identity")).scalar_one()
        return Counter(map(str, shape)), rows, name


def test_a_new_store_is_as_the_migrations_make_it(new_url: Callable[[], str]) -> None:
    with migrated_anew():
        shape, rows, name = all_of(new_url())
    assert len(shape) > 100 and sum(map(len, rows.values())) > 30
    with open_store(new_url()) as store:
        store.journal.append([Publication("p-1", "application/json", b"{}")])
    for places in set(Places.of.values()):
        places.take_back()
    again, other = all_of(new_url()), all_of(new_url())
    assert again[:2] == other[:2] == (shape, rows)
    assert len({name, again[2], other[2]}) == 3


def test_at_an_address_that_is_refused_there_is_nothing_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StoreError, match="unsupported store address"):
        open_ready("sqlite:///:memory:")
    assert list(tmp_path.iterdir()) == []

"""Registered databases with watched objects: each has a name, a model, and a URL without a password."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tidings.core.suggest import did_you_mean, shorten_list
from tidings.errors import InputError, NotFound
from tidings.objects.model.table_mapping import MappedModel
from tidings.objects.outbox.database import (
    DATABASE_URL_FORMS,
    ObjectDatabase,
    detect_dialect,
    get_database_name,
    has_password,
    open_database,
    redact_url,
)
from tidings.objects.readers.model_loader import read_model, resolve_model_path
from tidings.objects.sql.object_store import ObjectSource
from tidings.store.store import Store

ADD_COMMAND = "tidings objects add NAME --model MODEL --database URL"
PASSWORD_HINT = (
    "remove it, and set PGPASSWORD or add a line to ~/.pgpass: PostgreSQL reads these whenever it connects"
)


@dataclass(frozen=True, slots=True)
class OpenSource:
    """A source with its model read and its database open."""

    name: str
    mapped: MappedModel
    database: ObjectDatabase


class SourceRegistry:
    """Sources registered in a store."""

    def __init__(self, store: Store) -> None:
        self._table = store.object_sources

    def add(self, name: str, model: str, database: str) -> OpenSource:
        """Register a source whose model and database can be read; it replaces a source of the same name.

        URLs with a password are rejected: readers of the store, or of a backup, would see it.
        """
        if has_password(database):
            received = redact_url(database)
            raise InputError(
                "database URLs are stored without a password", received=received, hint=PASSWORD_HINT
            )
        source = ObjectSource(name, resolve_model_path(model), _absolute(database))
        with open_source(source) as opened:
            self._table.add(source)
            return opened

    def remove(self, name: str) -> bool:
        """Remove a source, and return whether there was one; its database does not change."""
        return self._table.remove(name)

    def list_sources(self) -> list[ObjectSource]:
        return self._table.load()

    def select(self, name: str | None = None) -> ObjectSource:
        """Return the source of this name, or the only one."""
        registered = {source.name: source for source in self.list_sources()}
        if not registered:
            raise NotFound("no database is registered", hint=ADD_COMMAND)
        if name is None and len(registered) > 1:
            raise InputError(
                "several databases are registered", where="--source", accepted=shorten_list(list(registered))
            )
        if name is not None and name not in registered:
            hint = did_you_mean(name, list(registered)) or ADD_COMMAND
            raise NotFound(
                "no such source", received=name, accepted=shorten_list(list(registered)), hint=hint
            )
        return registered[name] if name is not None else next(iter(registered.values()))


@contextmanager
def open_source(
    source: ObjectSource, read: Callable[[str], MappedModel] = read_model
) -> Iterator[OpenSource]:
    """Read the model of a source and open its database until the end of the `with` block."""
    mapped = read(source.model)
    with open_database(source.database) as database:
        yield OpenSource(source.name, mapped, database)


def build_unregistered_source(model: str, database: str, name: str | None = None) -> ObjectSource:
    """Build a source that is not registered; its default name is the name of its database."""
    detect_dialect(database)
    source_name = name or get_database_name(database)
    if not source_name:
        raise InputError(
            "the URL has no database name", received=redact_url(database), accepted=DATABASE_URL_FORMS
        )
    return ObjectSource(source_name, model, database)


def _absolute(url: str) -> str:
    """Make the path of a SQLite database independent of the working directory."""
    if detect_dialect(url) != "sqlite":
        return url
    scheme, _, path = url.partition(":///")
    return f"{scheme}:///{Path(path).absolute()}"

"""Databases whose objects are watched and told about: each has a name, a model, and an address without a password."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tidings.core.suggest import did_you_mean, shorten_list
from tidings.errors import Absent, InputError
from tidings.objects.model.table_mapping import MappedModel
from tidings.objects.outbox.database import DATABASE_URL_FORMS, ObjectDatabase, redact_url
from tidings.objects.outbox.database_url import detect_dialect, get_database_name, has_password, open_database
from tidings.objects.readers.model_loader import read_model, resolve_model_path
from tidings.objects.sql.object_sources import ObjectSource
from tidings.store.store import Store

ADD_COMMAND = "tidings objects add NAME --model MODEL --database URL"
PASSWORD_HINT = (
    "leave it out: PostgreSQL's PGPASSWORD, or a line in ~/.pgpass, says it whenever the database is opened"
)


@dataclass(frozen=True, slots=True)
class OpenSource:
    """A source while its database is open."""

    name: str
    placed: MappedModel
    site: ObjectDatabase


class SourceRegistry:
    """The sources of a store."""

    def __init__(self, store: Store) -> None:
        self._kept = store.object_sources

    def add(self, name: str, model: str, database: str) -> OpenSource:
        """Keep a source whose model and database can be read; one of the same name makes room.

        A password is refused: whoever reads the store, or a copy of it, would have it.
        """
        if has_password(database):
            received = redact_url(database)
            raise InputError("addresses are kept without a password", received=received, hint=PASSWORD_HINT)
        source = ObjectSource(name, resolve_model_path(model), _absolute(database))
        with open_source(source) as found:
            self._kept.add(source)
            return found

    def remove(self, name: str) -> bool:
        """Forget a source, and say whether there was one. In its database nothing changes."""
        return self._kept.remove(name)

    def all(self) -> list[ObjectSource]:
        return self._kept.load()

    def chosen(self, name: str | None = None) -> ObjectSource:
        """The source of this name, or the only one there is."""
        known = {each.name: each for each in self.all()}
        if not known:
            raise Absent("no database with objects is known here", hint=ADD_COMMAND)
        if name is None and len(known) > 1:
            raise InputError("which database?", where="--source", accepted=shorten_list(list(known)))
        if name is not None and name not in known:
            hint = did_you_mean(name, list(known)) or ADD_COMMAND
            raise Absent("no such source", received=name, accepted=shorten_list(list(known)), hint=hint)
        return known[name] if name is not None else next(iter(known.values()))


@contextmanager
def open_source(
    source: ObjectSource, read: Callable[[str], MappedModel] = read_model
) -> Iterator[OpenSource]:
    """A source with its model read and its database open, until the end of a `with`."""
    placed = read(source.model)
    with open_database(source.database) as site:
        yield OpenSource(source.name, placed, site)


def build_unregistered_source(model: str, database: str, name: str | None = None) -> ObjectSource:
    """A source that is kept nowhere; it is called as its database is."""
    detect_dialect(database)
    called = name or get_database_name(database)
    if not called:
        raise InputError(
            "the address names no database", received=redact_url(database), accepted=DATABASE_URL_FORMS
        )
    return ObjectSource(called, model, database)


def _absolute(url: str) -> str:
    """The same for whoever stands in another folder."""
    if detect_dialect(url) != "sqlite":
        return url
    scheme, _, path = url.partition(":///")
    return f"{scheme}:///{Path(path).absolute()}"

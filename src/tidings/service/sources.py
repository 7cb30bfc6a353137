"""Databases whose objects are watched and told about: each has a name, a model, and an address without a password."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tidings.errors import Absent, InputError
from tidings.objects.model_files import absolute, read_model
from tidings.objects.placing import Placed
from tidings.objects.triggers.opening import dialect_of, has_password, name_of, open_site
from tidings.objects.triggers.sites import ACCEPTED, Site, without_password
from tidings.schema.names import did_you_mean, some
from tidings.store import ObjectSource, Store

ADD = "tidings objects add NAME --model MODEL --database URL"
NO_PASSWORD = (
    "leave it out: PostgreSQL's PGPASSWORD, or a line in ~/.pgpass, says it whenever the database is opened"
)


@dataclass(frozen=True, slots=True)
class Opened:
    """A source while its database is open."""

    name: str
    placed: Placed
    site: Site


class Sources:
    """The sources of a store."""

    def __init__(self, store: Store) -> None:
        self._kept = store.object_sources

    def add(self, name: str, model: str, database: str) -> Opened:
        """Keep a source whose model and database can be read; one of the same name makes room.

        A password is refused: whoever reads the store, or a copy of it, would have it.
        """
        if has_password(database):
            received = without_password(database)
            raise InputError("addresses are kept without a password", received=received, hint=NO_PASSWORD)
        source = ObjectSource(name, absolute(model), _absolute(database))
        with opened(source) as found:
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
            raise Absent("no database with objects is known here", hint=ADD)
        if name is None and len(known) > 1:
            raise InputError("which database?", where="--source", accepted=some(list(known)))
        if name is not None and name not in known:
            hint = did_you_mean(name, list(known)) or ADD
            raise Absent("no such source", received=name, accepted=some(list(known)), hint=hint)
        return known[name] if name is not None else next(iter(known.values()))


@contextmanager
def opened(source: ObjectSource, read: Callable[[str], Placed] = read_model) -> Iterator[Opened]:
    """A source with its model read and its database open, until the end of a `with`."""
    placed = read(source.model)
    with open_site(source.database) as site:
        yield Opened(source.name, placed, site)


def unnamed(model: str, database: str, name: str | None = None) -> ObjectSource:
    """A source that is kept nowhere; it is called as its database is."""
    dialect_of(database)
    called = name or name_of(database)
    if not called:
        raise InputError(
            "the address names no database", received=without_password(database), accepted=ACCEPTED
        )
    return ObjectSource(called, model, database)


def _absolute(url: str) -> str:
    """The same for whoever stands in another folder."""
    if dialect_of(url) != "sqlite":
        return url
    scheme, _, path = url.partition(":///")
    return f"{scheme}:///{Path(path).absolute()}"

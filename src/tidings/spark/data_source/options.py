"""Options of the data source, and the stores that they name.

path, store          the URL of the store
kind                 journal (default), subscriptions, notifications or dead_letters
on_error             fail or dead_letter: what becomes of rows that cannot be published
id_field             the field that holds the id of an event, for rows without a column `id`
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from tidings.core.suggest import closest, did_you_mean
from tidings.errors import InputError
from tidings.store.store import Store, open_existing_store, open_store

KIND, PATH, STORE = "kind", "path", "store"
ON_ERROR, ID_FIELD = "on_error", "id_field"
MAX_ROWS, START, END, SUBSCRIBER = "maxRowsPerBatch", "startingPosition", "endingPosition", "subscriber"
NAMES = (KIND, PATH, STORE, ON_ERROR, ID_FIELD, MAX_ROWS, START, END, SUBSCRIBER)

SIMILAR = 0.7
"""How similar to ours the name of an option is that must be a typing error: Spark has similar ones of its own."""

JOURNAL = "journal"
FAIL, DEAD_LETTER = "fail", "dead_letter"

Options = Mapping[str, str]
"""Options as Spark passes them; names have no case."""


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """The store that rows are published into, and how."""

    url: str
    on_error: str
    id_field: str | None = None

    @classmethod
    def of(cls, options: Options, on_error: str) -> WriteOptions:
        """Read the options of a writer, and create the store if there is none; `on_error` is the default."""
        check_names(options)
        kind = options.get(KIND, JOURNAL)
        if kind != JOURNAL:
            raise InputError(
                "only the journal can be written",
                where=KIND,
                received=kind,
                accepted=JOURNAL,
                hint="leave the option out",
            )
        chosen = find_choice(options, ON_ERROR, (FAIL, DEAD_LETTER), on_error)
        with open_store(find_url(options)) as store:
            return cls(_absolute_url(store), chosen, options.get(ID_FIELD))


def find_url(options: Options) -> str:
    """Return the URL of the store as it is given."""
    given = {options[name] for name in (PATH, STORE) if options.get(name)}
    if len(given) != 1:
        raise InputError(
            "two stores are named" if given else "no store is named",
            where=f"{PATH} and {STORE}" if given else STORE,
            accepted="the URL of one store: sqlite:///path/to/store.db or postgresql://user@host/database",
            hint='.load("sqlite:///.tidings/store.db"), or .option("store", "...")',
        )
    return given.pop()


def find_existing_store(options: Options) -> str:
    """Return the URL of an existing store, independent of the working directory."""
    with open_existing_store(find_url(options)) as store:
        return _absolute_url(store)


def _absolute_url(store: Store) -> str:
    return store.database.engine.url.render_as_string(hide_password=False)


@lru_cache(maxsize=4)
def open_task_store(url: str) -> Store:
    """Open a store once per process: Python workers live across tasks. The driver has created or migrated it."""
    return open_existing_store(url, migrates=False)


def find_choice(options: Options, name: str, accepted: tuple[str, ...], default: str) -> str:
    """Return the value of an option that has a few."""
    chosen = options.get(name, default)
    if chosen not in accepted:
        hint = did_you_mean(chosen, accepted)
        raise InputError(
            "unknown value", where=name, received=chosen, accepted=", ".join(accepted), hint=hint
        )
    return chosen


def check_names(options: Options) -> None:
    """Reject options that are ours but for a typing error. Others may be Spark's own."""
    known = {name.lower(): name for name in NAMES}
    for name in options:
        meant = None if name.lower() in known else closest(name.lower(), known, cutoff=SIMILAR)
        if meant is not None:
            raise InputError(
                "unknown option",
                received=name,
                accepted=", ".join(NAMES),
                hint=f"did you mean '{known[meant]}'?",
            )

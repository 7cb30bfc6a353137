"""The store: what must survive, on SQLite or PostgreSQL. The only place that imports SQLAlchemy."""

from tidings.store.database import sqlite_url
from tidings.store.dead_letters import DeadLetter
from tidings.store.found import Found
from tidings.store.held import Held
from tidings.store.journal import Appended
from tidings.store.notifications import Committed
from tidings.store.store import Store, open_store
from tidings.store.subscriptions import Changes
from tidings.store.taxonomies import TaxonomyFile

__all__ = [
    "Appended",
    "Changes",
    "Committed",
    "DeadLetter",
    "Found",
    "Held",
    "Store",
    "TaxonomyFile",
    "open_store",
    "sqlite_url",
]

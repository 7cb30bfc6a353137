"""The store: one database, with an object for each of its parts."""

from __future__ import annotations

from threading import Lock

from sqlalchemy import Connection

from tidings.core.lifecycle import Closeable
from tidings.delivery.sql.cursors import DeliveryCursors
from tidings.delivery.sql.dead_deliveries import DeadDeliveries
from tidings.delivery.sql.destination_store import DestinationStore, SubscriberPreferences
from tidings.delivery.sql.pending import PendingEntries
from tidings.errors import StoreError
from tidings.feeds.sql.feed_addresses import FeedAddresses
from tidings.feeds.sql.hub_store import HubStore
from tidings.feeds.sql.polled_feeds import PolledFeeds
from tidings.metadata.sql.log_rows import ReplicationStore
from tidings.metadata.sql.metadata_reader import BrowseQueries
from tidings.metadata.sql.repository.repository_store import RepositoryStore
from tidings.metadata.sql.repository_feeds import RepositoryFeeds
from tidings.metadata.sql.rule_graph import RuleGraph
from tidings.metadata.sql.transaction import MetadataStore
from tidings.objects.sql.object_store import ObjectNotifications, ObjectSources
from tidings.store import counters
from tidings.store.audiences import Audiences
from tidings.store.clock_recovery import ClockRecovery
from tidings.store.database import Database, open_database, sqlite_path
from tidings.store.dead_letters import DeadLetters
from tidings.store.encoding import Clock, utc_now
from tidings.store.journal import Journal
from tidings.store.migrations import check_version, migrate, read_version
from tidings.store.notifications.acknowledgements import Acknowledgements, Heads
from tidings.store.notifications.notification_log import NotificationLog
from tidings.store.notifications.notification_store import Notifications
from tidings.store.notifications.staged_rows import StagedRows
from tidings.store.notifications.subscription_entries import NumberedNotifications
from tidings.store.reference_data import EventSchemas, ReferenceTables, Taxonomies
from tidings.store.subscriptions.registry import Subscriptions
from tidings.store.subscriptions.snapshot import SubscriptionSnapshots
from tidings.store.subscriptions.suspension import BudgetOverruns, PausedSubscriptions
from tidings.store.subscriptions.view import SubscriptionView
from tidings.store.telemetry import TimeSeries, Traces
from tidings.store.tokens import Tokens


class Store(Closeable):
    """One database with its parts. Several processes and threads may use the same database."""

    def __init__(self, database: Database, clock: Clock = utc_now) -> None:
        self.database, self._trying = database, Lock()
        self.journal = Journal(database, clock)
        self.subscriptions = Subscriptions(database)
        self.subscription_snapshots = SubscriptionSnapshots(database)
        self.paused = PausedSubscriptions(database, clock)
        self.subscription_view = SubscriptionView(database)
        self.notifications = Notifications(database, clock)
        self.staged_rows = StagedRows(database, clock)
        self.numbered_notifications = NumberedNotifications(database, self.notifications, clock)
        self.notification_log = NotificationLog(database, self.notifications)
        self.acknowledgements = Acknowledgements(database, clock)
        self.heads = Heads(database)
        self.object_notifications = ObjectNotifications(database, clock)
        self.object_sources = ObjectSources(database)
        self.dead_letters = DeadLetters(database)
        self.overruns = BudgetOverruns(database, clock)
        self.schemas = EventSchemas(database)
        self.references = ReferenceTables(database)
        self.taxonomies = Taxonomies(database)
        self.polled_feeds = PolledFeeds(database)
        self.feed_addresses = FeedAddresses(database, clock)
        self.hub = HubStore(database, clock)
        self.metadata = MetadataStore(database, clock)
        self.repositories = RepositoryFeeds(database)
        self.replication = ReplicationStore(database)
        self.metadata_browsing = BrowseQueries(database)
        self.rule_graph = RuleGraph(database)
        self.repository = RepositoryStore(database)
        self.tokens = Tokens(database, clock)
        self.audiences = Audiences(database, clock)
        self.destinations = DestinationStore(database, clock)
        self.delivery_cursors = DeliveryCursors(database, clock)
        self.pending_entries = PendingEntries(database)
        self.dead_deliveries = DeadDeliveries(database, clock)
        self.preferences = SubscriberPreferences(database)
        self.time_series = TimeSeries(database, clock)
        self.traces = Traces(database, clock)
        self.clock_recovery = ClockRecovery(database, clock)

    def check(self) -> None:
        """Raise if the store is unreachable, has another version, or cannot be written, for example on a full disk.

        After a failed write, a write is tried here: a service that is not ready gets no requests that would show that
        writes work again.
        """
        check_version(self.database)
        refused = self.database.refused
        if refused is None:
            return
        if not self._trying.acquire(blocking=False):  # another check is trying, and may wait for a lock
            raise refused.with_traceback(None)  # raised many times: its traceback would grow
        try:
            self.database.transact(_write_nothing)
        finally:
            self._trying.release()
        if self.database.refused is not None:  # there is room for this write only
            raise refused.with_traceback(None)

    def close(self) -> None:
        self.database.close()


def _write_nothing(connection: Connection) -> None:
    """Write to the disk without a change."""
    counters.advance(connection, "journal", counters.lock(connection, "journal"))


def open_store(url: str, clock: Clock = utc_now, migrates: bool = True) -> Store:
    """Open the store at `sqlite:///path` or `postgresql://...`, and create or migrate its tables.

    Without `migrates`, a store of another version is an error. The clock decides when deferred notifications are due.
    """
    database = open_database(url)
    if migrates:
        migrate(database)
    else:
        check_version(database)
    return Store(database, clock)


def open_existing_store(url: str, migrates: bool = True) -> Store:
    """Open a store like `open_store`, but raise if there is none at this address, and create nothing."""
    path = sqlite_path(url)
    if path is not None and not path.exists():
        raise _absent_error(str(path))
    database = open_database(url)
    if not read_version(database):
        database.close()
        raise _absent_error(database.name)
    if migrates:
        migrate(database)
    else:
        check_version(database)
    return Store(database)


def _absent_error(where: str) -> StoreError:
    return StoreError(
        "there is no store at this address",
        where=where,
        hint="a relative path begins at the folder of the process; a SQLite store is a file of one machine",
    )

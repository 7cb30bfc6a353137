"""A store: the journal, subscriptions, notifications, dead letters, the event schema, reference tables, taxonomies,
feeds, metadata, what a repository holds, what is told about objects of other databases, tokens,
destinations of deliveries."""

from __future__ import annotations

from threading import Lock

from sqlalchemy import Connection

from tidings.closing import Closing
from tidings.store import counters
from tidings.store.acknowledgements import Acknowledgements
from tidings.store.audiences import Audiences
from tidings.store.backbone import Backbone
from tidings.store.clock_recovery import ClockRecovery
from tidings.store.database import Database, open_database
from tidings.store.dead_letters import DeadLetters
from tidings.store.destinations import Destinations
from tidings.store.encoding import Clock, utc
from tidings.store.feeds import Feeds
from tidings.store.hub import Hub
from tidings.store.intake import Intake
from tidings.store.journal import Journal
from tidings.store.lanes import Lanes
from tidings.store.matched import Matched
from tidings.store.measures import Measures
from tidings.store.metadata import Metadata
from tidings.store.metadata_browsing import MetadataBrowsing
from tidings.store.migrations import check_version, migrate
from tidings.store.news import News
from tidings.store.notifications import Notifications
from tidings.store.object_notifications import ObjectNotifications
from tidings.store.object_sources import ObjectSources
from tidings.store.overruns import Overruns
from tidings.store.paused import Paused
from tidings.store.personal_feeds import PersonalFeeds
from tidings.store.preferences import Preferences
from tidings.store.references import References
from tidings.store.repositories import Repositories
from tidings.store.repository import Repository
from tidings.store.rule_graph import RuleGraph
from tidings.store.runs import Runs
from tidings.store.schemas import Schemas
from tidings.store.standings import Standings
from tidings.store.subscriptions import Subscriptions
from tidings.store.taxonomies import Taxonomies
from tidings.store.tokens import Tokens
from tidings.store.traces import Traces
from tidings.store.undelivered import Undelivered


class Store(Closing):
    """One database, seen as its parts. Several processes and threads may use the same one at the same time."""

    def __init__(self, database: Database, clock: Clock = utc) -> None:
        self.database, self._trying = database, Lock()
        self.journal = Journal(database)
        self.intake = Intake(database, clock)
        self.subscriptions = Subscriptions(database)
        self.paused = Paused(database, clock)
        self.standings = Standings(database)
        self.notifications = Notifications(database, clock)
        self.acknowledgements = Acknowledgements(database, clock)
        self.news = News(database)
        self.object_notifications = ObjectNotifications(database, clock)
        self.object_sources = ObjectSources(database)
        self.dead_letters = DeadLetters(database)
        self.overruns = Overruns(database, clock)
        self.schemas = Schemas(database)
        self.references = References(database)
        self.taxonomies = Taxonomies(database)
        self.feeds = Feeds(database)
        self.personal_feeds = PersonalFeeds(database, self.notifications, clock)
        self.matched = Matched(database, self.personal_feeds)
        self.hub = Hub(database, clock)
        self.metadata = Metadata(database, clock)
        self.repositories = Repositories(database)
        self.backbone = Backbone(database)
        self.metadata_browsing = MetadataBrowsing(database)
        self.rule_graph = RuleGraph(database)
        self.repository = Repository(database)
        self.tokens = Tokens(database, clock)
        self.audiences = Audiences(database, clock)
        self.destinations = Destinations(database, clock)
        self.lanes = Lanes(database, clock)
        self.runs = Runs(database)
        self.undelivered = Undelivered(database, clock)
        self.preferences = Preferences(database)
        self.measures = Measures(database, clock)
        self.traces = Traces(database, clock)
        self.clock_recovery = ClockRecovery(database, clock)

    def check(self) -> None:
        """Refuse a store that does not answer, that is not of the version that this code works with, or in which
        nothing can be written, as on a full disk: if the last one who tried could not, it is tried again here. A
        service that is not ready may be sent nobody any more who would find out.
        """
        check_version(self.database)
        refused = self.database.refused
        if refused is None:
            return
        if not self._trying.acquire(blocking=False):  # it may take as long as somebody else holds a lock
            raise refused.with_traceback(None)  # it is told again and again, and would grow each time
        try:
            self.database.transact(_write_nothing)
        finally:
            self._trying.release()
        if self.database.refused is not None:  # there is room for this, and not for more
            raise refused.with_traceback(None)

    def close(self) -> None:
        self.database.close()


def _write_nothing(connection: Connection) -> None:
    """What takes a place on the disk, and changes nothing."""
    counters.advance(connection, "journal", counters.lock(connection, "journal"))


def open_store(url: str, clock: Clock = utc, migrates: bool = True) -> Store:
    """The store at `sqlite:///path` or `postgresql://...`, with its tables made or brought up to date; if it may not be
    migrated, one of another version is refused.

    The clock says when a notification that is held has to be handed over.
    """
    database = open_database(url)
    if migrates:
        migrate(database)
    else:
        check_version(database)
    return Store(database, clock)

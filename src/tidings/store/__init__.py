"""The store: what must survive, on SQLite or PostgreSQL. The only place that imports SQLAlchemy."""

from tidings.store.acknowledgements import Standing
from tidings.store.audiences import Grant
from tidings.store.database import sqlite_url
from tidings.store.dead_letters import DeadLetter
from tidings.store.destinations import Destination, Health
from tidings.store.encoding import Clock, instant, utc
from tidings.store.feed_items import Seen, Taken, Taking
from tidings.store.feeds import PolledFeed
from tidings.store.finishing import Progress
from tidings.store.found import Found
from tidings.store.held import Held
from tidings.store.hub import Delivery, HubSubscription, Intent
from tidings.store.intake import Outcomes, Ready
from tidings.store.journal import Appended, Entry
from tidings.store.lane_rows import Lane, Stretch
from tidings.store.measures import Measured
from tidings.store.notifications import Committed
from tidings.store.object_notifications import Telling
from tidings.store.object_sources import ObjectSource
from tidings.store.personal_feeds import FeedAddress, FeedEntry
from tidings.store.preferences import QuietHours
from tidings.store.runs import Read
from tidings.store.standings import Kept, Wanted
from tidings.store.store import Store, open_store
from tidings.store.subscription_offers import Added
from tidings.store.subscriptions import Changes
from tidings.store.taxonomies import TaxonomyFile
from tidings.store.tokens import Token
from tidings.store.undelivered import Letter

__all__ = [
    "Added",
    "Appended",
    "Changes",
    "Clock",
    "Committed",
    "DeadLetter",
    "Delivery",
    "Destination",
    "Entry",
    "FeedAddress",
    "FeedEntry",
    "Found",
    "Grant",
    "Health",
    "Held",
    "HubSubscription",
    "Intent",
    "Kept",
    "Lane",
    "Letter",
    "Measured",
    "ObjectSource",
    "Outcomes",
    "PolledFeed",
    "Progress",
    "QuietHours",
    "Read",
    "Ready",
    "Seen",
    "Standing",
    "Store",
    "Stretch",
    "Taken",
    "Taking",
    "TaxonomyFile",
    "Telling",
    "Token",
    "Wanted",
    "instant",
    "open_store",
    "sqlite_url",
    "utc",
]

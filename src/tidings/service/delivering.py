"""Delivery of a store, put together: who sends what, how it is described to people, and who may see what."""

from __future__ import annotations

from datetime import timedelta

from tidings.delivery import Courier, DeliveryLoop, Destinations, Listener, Rules
from tidings.delivery.apprise_targets import Described
from tidings.delivery.happened import nobody
from tidings.delivery.kinds import senders
from tidings.feeds.entries import entry_of
from tidings.model import Publication
from tidings.operating.settings import Settings
from tidings.store import FeedEntry, Store
from tidings.web.posting import Times


def rules_of(settings: Settings) -> Rules:
    """The rules that settings say."""
    said = settings.delivery
    return Rules(
        retries=said.retries,
        jitter=said.jitter,
        patience=said.patience,
        times=Times(min(5.0, said.timeout), said.timeout, said.timeout),
        workers=said.workers,
        per_place=said.per_host,
        letters=timedelta(days=said.letters),
        overlap=timedelta(hours=said.overlap),
        grace=settings.drain,
        inside=said.private_callbacks,
        brokers=said.brokers,
        schemes=said.services,
        per_subscriber=said.destinations,
    )


def described(entry: FeedEntry, publication: Publication | None) -> Described:
    """A notification as people read it, in the words of its entry in a feed."""
    found = entry_of(entry, publication)
    return Described(found.title, found.summary, found.link)


def destinations_of(store: Store, rules: Rules | None = None) -> Destinations:
    """The destinations of a store, as their subscribers make and change them."""
    said = rules or Rules()
    return Destinations(store, senders(said, describe=described), said)


def delivery_loop(store: Store, rules: Rules | None = None, listener: Listener = nobody) -> DeliveryLoop:
    """What delivers, from `with` to the end of it; `listener` hears of each delivery."""
    said = rules or Rules()
    return DeliveryLoop(Courier(store, senders(said, describe=described), said), listener)

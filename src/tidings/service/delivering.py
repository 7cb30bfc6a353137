"""Delivery of a store, put together: who sends what, how it is described to people, and who may see what."""

from __future__ import annotations

from tidings.delivery import Courier, DeliveryLoop, Destinations, Listener, Rules
from tidings.delivery.apprise_targets import Described
from tidings.delivery.courier import MaySee, sees_all
from tidings.delivery.happened import nobody
from tidings.delivery.kinds import senders
from tidings.feeds.entries import entry_of
from tidings.model import Publication
from tidings.store import FeedEntry, Store


def described(entry: FeedEntry, publication: Publication | None) -> Described:
    """A notification as people read it, in the words of its entry in a feed."""
    found = entry_of(entry, publication)
    return Described(found.title, found.summary, found.link)


def destinations_of(store: Store, rules: Rules | None = None) -> Destinations:
    """The destinations of a store, as their subscribers make and change them."""
    said = rules or Rules()
    return Destinations(store, senders(said, describe=described), said)


def delivery_loop(
    store: Store, rules: Rules | None = None, listener: Listener = nobody, may_see: MaySee = sees_all
) -> DeliveryLoop:
    """What delivers, from `with` to the end of it; `listener` hears of each delivery."""
    said = rules or Rules()
    return DeliveryLoop(Courier(store, senders(said, describe=described), said, may_see), listener)

"""Delivery of a store, put together: who sends what, how it is described to people, and who may see what."""

from __future__ import annotations

from datetime import timedelta

from tidings.delivery.destination_types.apprise_targets import Description
from tidings.delivery.destination_types.registry import create_senders
from tidings.delivery.destinations import Destinations
from tidings.delivery.dispatcher import DeliveryListener, Dispatcher, ignore_event
from tidings.delivery.retry_policy import DeliveryPolicy
from tidings.delivery.sql.destination_store import HUB
from tidings.delivery.worker import DeliveryWorker
from tidings.feeds.hub.callback_sender import CallbackSender
from tidings.feeds.hub.hub import Hub
from tidings.feeds.outbound.entries import build_entry
from tidings.model import Publication
from tidings.operations.http_client import HttpLimits
from tidings.operations.settings import Settings
from tidings.store.numbered_notifications import NumberedNotification
from tidings.store.store import Store


def build_delivery_policy(settings: Settings) -> DeliveryPolicy:
    """The rules that settings say."""
    said = settings.delivery
    return DeliveryPolicy(
        retries=said.retries,
        jitter=said.jitter,
        patience=said.patience,
        times=HttpLimits(min(5.0, said.timeout), said.timeout, said.timeout),
        workers=said.workers,
        per_host=said.per_host,
        letters=timedelta(days=said.letters),
        overlap=timedelta(hours=said.overlap),
        grace=settings.drain,
        inside=said.private_callbacks,
        brokers=said.brokers,
        schemes=said.services,
        per_subscriber=said.destinations,
    )


def describe_notification(entry: NumberedNotification, publication: Publication | None) -> Description:
    """A notification as people read it, in the words of its entry in a feed."""
    found = build_entry(entry, publication)
    return Description(found.title, found.summary, found.link)


def open_destinations(store: Store, rules: DeliveryPolicy | None = None) -> Destinations:
    """The destinations of a store, as their subscribers make and change them."""
    said = rules or DeliveryPolicy()
    return Destinations(store, create_senders(said, describe=describe_notification), said)


def create_dispatcher(
    store: Store,
    rules: DeliveryPolicy | None = None,
    listener: DeliveryListener = ignore_event,
    hub: Hub | None = None,
) -> DeliveryWorker:
    """What delivers, from `with` to the end of it; `listener` hears of each delivery."""
    policy = rules or DeliveryPolicy()
    senders = create_senders(policy, describe=describe_notification)
    if hub is not None:
        senders[HUB] = CallbackSender(hub, policy)
    return DeliveryWorker(Dispatcher(store, senders, policy), listener)

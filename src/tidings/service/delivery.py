"""Delivery of a store: its policy from the settings, its destinations and worker, and their telemetry."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from time import monotonic
from typing import TYPE_CHECKING

from tidings.delivery.delivery_policy import DeliveryPolicy
from tidings.delivery.destination_types.apprise_targets import Description
from tidings.delivery.destinations import Destinations, create_senders
from tidings.delivery.dispatcher import DeliveryEvent, DeliveryListener, Dispatcher, ignore_event
from tidings.delivery.sql.destination_store import HUB
from tidings.delivery.worker import DeliveryWorker
from tidings.feeds.hub.callback_sender import CallbackSender
from tidings.feeds.hub.hub import Hub
from tidings.feeds.outbound.entries import build_entry
from tidings.model import Publication
from tidings.operations import logs, traces
from tidings.operations.http_client import HttpLimits
from tidings.operations.settings import Settings
from tidings.store.notifications.subscription_entries import NumberedNotification
from tidings.store.store import Store

if TYPE_CHECKING:
    from tidings.service.context import ServiceContext

FLUSH_SECONDS = 10.0
"""Interval at which counts are written to the store: a transaction for each delivery would be too many."""
MAX_LOGGED_IDS = 20
"""Maximum number of notifications of one delivery that are logged or traced: a digest may have thousands."""

_log = logs.get_logger("tidings.delivery")


def build_delivery_policy(settings: Settings) -> DeliveryPolicy:
    """Return the delivery policy that the settings describe."""
    delivery = settings.delivery
    return DeliveryPolicy(
        retry_delays=delivery.retry_delays,
        jitter=delivery.jitter,
        max_retry_after=delivery.max_retry_after,
        times=HttpLimits(min(5.0, delivery.timeout), delivery.timeout, delivery.timeout),
        workers=delivery.workers,
        per_host=delivery.per_host,
        dead_letter_age=timedelta(days=delivery.dead_letter_days),
        secret_overlap=timedelta(hours=delivery.secret_overlap_hours),
        grace=settings.drain,
        inside=delivery.private_callbacks,
        brokers=delivery.brokers,
        schemes=delivery.services,
        per_subscriber=delivery.max_destinations,
    )


def describe_notification(entry: NumberedNotification, publication: Publication | None) -> Description:
    """Describe a notification for people, as its entry in a feed does."""
    feed_entry = build_entry(entry, publication)
    return Description(feed_entry.title, feed_entry.summary, feed_entry.link)


def open_destinations(store: Store, policy: DeliveryPolicy | None = None) -> Destinations:
    """Return the destinations of a store, which their subscribers create and change."""
    policy = policy or DeliveryPolicy()
    return Destinations(store, create_senders(policy, describe=describe_notification), policy)


def create_delivery_worker(
    store: Store,
    policy: DeliveryPolicy | None = None,
    listener: DeliveryListener = ignore_event,
    hub: Hub | None = None,
) -> DeliveryWorker:
    """Return the worker that delivers, with a hub also to its callbacks; `listener` is called with each delivery."""
    policy = policy or DeliveryPolicy()
    senders = create_senders(policy, describe=describe_notification)
    if hub is not None:
        senders[HUB] = CallbackSender(hub, policy)
    return DeliveryWorker(Dispatcher(store, senders, policy), listener)


class DeliveryTelemetry:
    """Counts, logs and traces deliveries; it is called in the thread of the worker. `close` writes the last counts."""

    def __init__(self, context: ServiceContext) -> None:
        self._store, self._metrics = context.tidings.store, context.metrics
        self._counts: Counter[str] = Counter()
        self._flushed = monotonic()

    def __call__(self, event: DeliveryEvent) -> None:
        self._metrics.count_delivery(event.kind, event.what)
        self._counts[f"deliveries_{event.what}"] += 1
        _log.info(
            "delivery",
            outcome=event.what,
            channel=event.kind,
            destination=event.destination,
            subscription=event.subscription,
            notifications=event.ids[:MAX_LOGGED_IDS],
            problem=event.problem,
            seconds=round(event.seconds, 3),
        )
        if traces.is_tracing():
            self._trace(event)
        if monotonic() - self._flushed > FLUSH_SECONDS:
            self.close()

    def close(self) -> None:
        if self._counts:
            self._store.time_series.add(self._counts)
        self._counts, self._flushed = Counter(), monotonic()

    def _trace(self, event: DeliveryEvent) -> None:
        """Add a span to the trace of each publication that is traced."""
        attributes = {
            "tidings.channel": event.kind,
            "tidings.outcome": event.what,
            "tidings.destination": event.destination,
            "tidings.subscription": event.subscription,
        }
        kind: traces.SpanKind = "producer" if event.kind == "kafka" else "client"
        for publication in self._store.notifications.publications(event.ids[:MAX_LOGGED_IDS]):
            if parent := self._store.traces.of(publication):
                with traces.start_span(
                    "deliver", parent=parent, attributes=attributes, kind=kind, lasted=event.seconds
                ):
                    traces.annotate_span({}, failed=event.what != "delivered")

"""Delivery beside the requests: to destinations, by the hub, and telling about objects."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack, closing
from time import monotonic

from tidings.delivery.dispatcher import DeliveryEvent
from tidings.feeds.hub.worker import HubWorker
from tidings.operations import logs, traces
from tidings.operations.settings import ServicePart
from tidings.service.context import ServiceContext
from tidings.service.delivery import build_delivery_policy, create_dispatcher
from tidings.service.outbox_worker import OutboxOptions, OutboxWorker

# What delivery tells is counted, logged with its ids, kept over time, and traced.


FLUSH_SECONDS = 10.0
"""How often what was counted goes to the store: for each delivery would be a transaction more."""
MAX_LOGGED_IDS = 20
"""How many notifications of one delivery are named in the log, or traced: a digest may have thousands."""

_log = logs.get_logger("tidings.delivery")


class DeliveryTelemetry:
    """Hears of each delivery, in the thread of the loop; `close` writes down what is left."""

    def __init__(self, context: ServiceContext) -> None:
        self._store, self._metrics = context.tidings.store, context.metrics
        self._counts: Counter[str] = Counter()
        self._flushed = monotonic()

    def __call__(self, happened: DeliveryEvent) -> None:
        self._metrics.delivered(happened.kind, happened.what)
        self._counts[f"deliveries_{happened.what}"] += 1
        _log.info(
            "delivery",
            outcome=happened.what,
            channel=happened.kind,
            destination=happened.destination,
            subscription=happened.subscription,
            notifications=happened.ids[:MAX_LOGGED_IDS],
            problem=happened.problem,
            seconds=round(happened.seconds, 3),
        )
        if traces.is_tracing():
            self._trace(happened)
        if monotonic() - self._flushed > FLUSH_SECONDS:
            self.close()

    def close(self) -> None:
        if self._counts:
            self._store.time_series.add(self._counts)
        self._counts, self._flushed = Counter(), monotonic()

    def _trace(self, happened: DeliveryEvent) -> None:
        """In the trace of each publication that was traced, with the time it took."""
        attributes = {"tidings.channel": happened.kind, "tidings.outcome": happened.what}
        attributes |= {
            "tidings.destination": happened.destination,
            "tidings.subscription": happened.subscription,
        }
        kind: traces.SpanKind = "producer" if happened.kind == "kafka" else "client"
        for publication in self._store.notifications.publications(happened.ids[:MAX_LOGGED_IDS]):
            if parent := self._store.traces.of(publication):
                with traces.start_span(
                    "deliver", parent=parent, attributes=attributes, kind=kind, lasted=happened.seconds
                ):
                    traces.annotate_span({}, failed=happened.what != "delivered")


class DeliveryWorkers(ExitStack):
    """Runs from `with` to the end of it, if this process is to deliver; else nothing does."""

    def __init__(self, context: ServiceContext) -> None:
        super().__init__()
        self._context = context

    def __enter__(self) -> DeliveryWorkers:
        if self._context.has(ServicePart.DELIVERY):
            self._begin()
        return self

    def _begin(self) -> None:
        context, objects = self._context, self._context.settings.objects
        hub = self.enter_context(HubWorker(context.hub))
        context.health.watch("hub", lambda: hub.problem, lambda: hub.is_alive)
        context.under_way.count(lambda: hub.calls_in_progress, "hub call")
        heard = self.enter_context(closing(DeliveryTelemetry(context)))
        deliveries = self.enter_context(
            create_dispatcher(
                context.tidings.store, build_delivery_policy(context.settings), heard, context.hub
            )
        )
        context.under_way.count(lambda: deliveries.deliveries_in_progress, "delivery")
        context.health.watch("delivery", lambda: deliveries.problem, lambda: deliveries.is_alive)
        if objects.tell:
            how = OutboxOptions(tell_author=objects.tell_author, publish=objects.publish)
            telling = self.enter_context(OutboxWorker(context.tidings, how))
            context.health.watch("objects", lambda: telling.problem, lambda: telling.is_alive)

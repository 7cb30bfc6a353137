"""Background workers of a service: the one list of them, by the part of the service that runs them.

    part        worker         task
    stream      stream         matches publications on Spark, and restarts after failures
                heartbeat      records that the stream runs, and deletes old measurements
    delivery    hub            verifies the callbacks of WebSub subscribers
                delivery       sends notifications to destinations and callbacks
                objects        notifies about changes in the outboxes of databases
    api         feeds          polls feeds that are due
                replication    follows the metadata log of another provider

All of them are a `core.lifecycle.Worker`. They start with the HTTP server, which has the probes, and end after its last
request.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Self

from tidings.core.lifecycle import Worker
from tidings.feeds.hub.worker import HubWorker
from tidings.feeds.inbound.feed_client import FetchPolicy
from tidings.feeds.inbound.poller import Poller, PollWorker
from tidings.metadata.provider.provider import Provider
from tidings.metadata.replication.log_follower import FollowWorker, check_not_own_address
from tidings.metadata.replication.routing import open_log
from tidings.operations.settings import ServicePart
from tidings.service.context import ServiceContext
from tidings.service.delivery import DeliveryTelemetry, build_delivery_policy, create_delivery_worker
from tidings.service.outbox_worker import OutboxOptions, OutboxWorker
from tidings.service.pipeline_status import Heartbeat
from tidings.store.store import Store

if TYPE_CHECKING:
    from tidings.service.stream_worker import StreamWorker


class Workers(ExitStack):
    """The workers of this process, from the start of a `with` block to its end.

    `poller` is shared with the endpoints that content systems and hubs call.
    """

    def __init__(self, context: ServiceContext, stream: StreamWorker | None = None) -> None:
        super().__init__()
        self._context, self._stream = context, stream
        policy = FetchPolicy(contact=context.settings.contact)
        self.poller = Poller(context.tidings.store, policy, public_url=context.public_url)

    def find_spark_ui(self) -> str | None:
        """Return the address of Spark's user interface, if the stream runs in this process and has one."""
        return self._stream.spark_ui if self._stream else None

    def __enter__(self) -> Self:
        self.enter_context(self._context.parsers)
        self.enter_context(self._context.parsers.install())
        if self._stream is not None:
            self._start_stream(self._stream)
        if self._context.includes(ServicePart.DELIVERY):
            self._start_delivery()
        if self._context.includes(ServicePart.API):
            self.enter_context(PollWorker(self.poller))
            if self._context.following is not None:
                self.enter_context(self._context.following)
        return self

    def _start_stream(self, stream: StreamWorker) -> None:
        self._context.health.watch("stream", lambda: stream.problem)
        self._context.pending.watch(lambda: stream.pending)
        self.enter_context(stream)
        self.enter_context(Heartbeat(self._context, stream))

    def _start_delivery(self) -> None:
        context, objects = self._context, self._context.settings.objects
        hub = HubWorker(context.hub)
        self._start("hub", hub)
        context.pending.count(lambda: hub.calls_in_progress, "hub call")
        telemetry = self.enter_context(closing(DeliveryTelemetry(context)))
        policy = build_delivery_policy(context.settings)
        delivery = create_delivery_worker(context.tidings.store, policy, telemetry, context.hub)
        self._start("delivery", delivery)
        context.pending.count(lambda: delivery.deliveries_in_progress, "delivery")
        if objects.notify:
            options = OutboxOptions(notify_author=objects.notify_author, publish=objects.publish)
            self._start("objects", OutboxWorker(context.tidings, options))

    def _start(self, name: str, worker: Worker) -> None:
        self.enter_context(worker)
        self._context.health.watch(name, lambda: worker.problem, lambda: worker.is_alive)


def create_follow_worker(
    store: Store, leader: str | None, shared: str | None, own: Collection[str] = ()
) -> FollowWorker | None:
    """Return the worker that follows the given log, or the one followed before; None if there is neither.

    `own` are the addresses of this provider, which it must not follow.
    """
    provider = Provider(store)
    log = open_log(store, provider, leader, shared)
    if log is None:
        return None
    check_not_own_address(log, own)
    return FollowWorker(store, provider, log)

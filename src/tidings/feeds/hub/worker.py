"""Worker of the WebSub hub: several threads call callbacks, so that a slow callback does not delay others."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import ALL_COMPLETED, FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from tidings.core.worker import Worker
from tidings.feeds.hub.hub import Hub
from tidings.feeds.sql.hub_store import HubDelivery, HubSubscription
from tidings.operations import traces

MAX_CONCURRENT_CALLS = 8
"""How many callbacks are called at the same time. Further calls wait in the store."""
POLL_SECONDS = 1.0
MAX_NEW_DELIVERIES = 1_000
"""How many subscriptions get a new delivery in one step."""

DeliveryObserver = Callable[[str], None]
"""A function that is called with the outcome of each delivery."""

_log = logging.getLogger("tidings.hub")


class HubWorker(Worker):
    """A worker that verifies and delivers what is due. Calls that were interrupted are due again later."""

    def __init__(
        self, hub: Hub, poll: float = POLL_SECONDS, observer: DeliveryObserver | None = None
    ) -> None:
        super().__init__("hub", poll)
        self.hub, self._poll, self._observer = hub, poll, observer or (lambda outcome: None)
        self._pool = ThreadPoolExecutor(MAX_CONCURRENT_CALLS, "hub")
        self._running: set[Future[None]] = set()

    def step(self) -> int:
        """Make all calls that are due, without the thread; return how many."""
        started = self._start_calls()
        self._wait(None)
        return started

    def run_once(self) -> None:
        started = self._start_calls()
        if self._running:
            self._wait(self._poll)
        elif not started:
            self.stopping.wait(self._poll)

    def close(self) -> None:
        """Wait for calls in progress, which end by their own timeouts."""
        self._pool.shutdown(cancel_futures=True)
        self.hub.caller.close()

    @property
    def calls_in_progress(self) -> int:
        return sum(not call.done() for call in list(self._running))

    def _start_calls(self) -> int:
        """Start as many calls as there are free threads; return how many."""
        store, before = self.hub.store, len(self._running)
        store.sweep()
        self.hub.feeds.store.clock_recovery.look()
        self.hub.feeds.store.notifications.hand_over()
        self.hub.dismiss(MAX_NEW_DELIVERIES)
        for intent in store.take_intents(self._free()):
            self._running.add(self._pool.submit(self.hub.verify, intent))
        self.hub.distribute(MAX_NEW_DELIVERIES)
        for delivery, subscription in store.take_deliveries(self._free()):
            self._running.add(self._pool.submit(self._deliver, delivery, subscription))
        return len(self._running) - before

    def _deliver(self, delivery: HubDelivery, subscription: HubSubscription) -> None:
        with traces.start_span("deliver", attributes={"tidings.channel": "hub"}, kind="client"):
            self._observer(self.hub.deliver(delivery, subscription))

    def _free(self) -> int:
        return MAX_CONCURRENT_CALLS - len(self._running)

    def _wait(self, seconds: float | None) -> None:
        """Wait until a call is done, or without a limit until all are. Failed calls are logged and due again later."""
        until = FIRST_COMPLETED if seconds is not None else ALL_COMPLETED
        done, self._running = wait(self._running, seconds, until)
        for call in done:
            if error := call.exception():
                _log.error("a call of the hub failed", exc_info=error)

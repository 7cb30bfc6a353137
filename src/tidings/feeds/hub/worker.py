"""The hub at work: what is due is carried out by a few threads, so that a callback that is slow delays no other."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from threading import Event, Thread

from tidings.errors import TidingsError
from tidings.feeds.hub.hub import Hub
from tidings.feeds.sql.hub_store import HubDelivery, HubSubscription
from tidings.operations import traces

AT_ONCE = 8
"""How many callbacks are called at the same time. What is more waits in the store."""
LOOK_SECONDS = 1.0
PART = 1_000
"""How many subscribers of feeds are begun to be told in one round."""

DeliveryObserver = Callable[[str], None]
"""Is told what came of each delivery."""

_log = logging.getLogger("tidings.hub")


class HubWorker:
    """Carries out what is due, in a thread of its own from `with` to the end of it, or step by step."""

    def __init__(self, hub: Hub, look: float = LOOK_SECONDS, hear: DeliveryObserver | None = None) -> None:
        self.hub, self._look, self._hear = hub, look, hear or (lambda outcome: None)
        self._pool = ThreadPoolExecutor(AT_ONCE, "hub")
        self._running: set[Future[None]] = set()
        self._stop = Event()
        self._thread = Thread(target=self._run, name="hub", daemon=True)

    def step(self) -> int:
        """One round, to its end: how many callbacks were called. For whoever wants to decide when that happens."""
        begun = self._begin()
        self._wait(None)
        return begun

    def __enter__(self) -> HubWorker:
        self._thread.start()
        return self

    def __exit__(self, *failure: object) -> None:
        """Calls that are under way end by their own limits of time; what they were about is in the store."""
        self._stop.set()
        self._thread.join()
        self.close()

    @property
    def problem(self) -> str | None:
        """What keeps it from its work. A store that is away for a while is none of its own."""
        return None if self._thread.is_alive() else "the hub has ended; the log says why"

    @property
    def under_way(self) -> int:
        """How many callbacks are being called."""
        return sum(not one.done() for one in list(self._running))

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)
        self.hub.caller.close()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                begun = self._begin()
            except TidingsError as problem:  # a store that is away for a while comes back
                _log.warning("the hub cannot go on now: %s", problem)
                begun = 0
            if self._running:
                self._wait(self._look)
            elif not begun:
                self._stop.wait(self._look)

    def _begin(self) -> int:
        """Take as much as there are threads free, and begin it."""
        store, before = self.hub.store, len(self._running)
        store.sweep()
        self.hub.feeds.store.clock_recovery.look()
        self.hub.feeds.store.notifications.hand_over()
        self.hub.dismiss(PART)
        for intent in store.take_intents(self._free()):
            self._running.add(self._pool.submit(self.hub.verify, intent))
        self.hub.distribute(PART)
        for one, to in store.take_deliveries(self._free()):
            self._running.add(self._pool.submit(self._deliver, one, to))
        return len(self._running) - before

    def _deliver(self, one: HubDelivery, to: HubSubscription) -> None:
        with traces.start_span("deliver", attributes={"tidings.channel": "hub"}, kind="client"):
            self._hear(self.hub.deliver(one, to))

    def _free(self) -> int:
        return AT_ONCE - len(self._running)

    def _wait(self, seconds: float | None) -> None:
        """Wait until one is done, or with no limit until all are; what failed is said, and tried again when its time
        comes.
        """
        until = FIRST_COMPLETED if seconds is not None else "ALL_COMPLETED"
        done, self._running = wait(self._running, seconds, until)
        for each in done:
            if error := each.exception():
                _log.error("the hub failed at a callback", exc_info=error)

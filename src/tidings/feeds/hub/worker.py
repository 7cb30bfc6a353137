"""Worker of the WebSub hub: verifies requests with several threads, so that a slow callback does not delay others."""

from __future__ import annotations

import logging
from concurrent.futures import ALL_COMPLETED, FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from tidings.core.lifecycle import Worker
from tidings.feeds.hub.hub import Hub

MAX_CONCURRENT_CALLS = 8
"""Maximum number of concurrent callbacks. Further requests wait in the store."""
POLL_SECONDS = 1.0
MAX_DISMISSED = 1_000
"""Number of subscriptions checked for a denial in one step."""

_log = logging.getLogger("tidings.hub")


class HubWorker(Worker):
    """A worker that verifies requests and sends denials. Calls that were interrupted are due again later."""

    def __init__(self, hub: Hub, poll: float = POLL_SECONDS) -> None:
        super().__init__("hub", poll)
        self.hub, self._poll = hub, poll
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
        self.hub.feeds.store.clock_recovery.look()
        self.hub.dismiss(MAX_DISMISSED)
        self.hub.store.sweep()
        intents = self.hub.store.take_intents(MAX_CONCURRENT_CALLS - len(self._running))
        self._running.update(self._pool.submit(self.hub.verify, intent) for intent in intents)
        return len(intents)

    def _wait(self, seconds: float | None) -> None:
        """Wait until a call is done, or without a limit until all are. Failed calls are logged and due again later."""
        until = FIRST_COMPLETED if seconds is not None else ALL_COMPLETED
        done, self._running = wait(self._running, seconds, until)
        for call in done:
            if error := call.exception():
                _log.error("a call of the hub failed", exc_info=error)

"""Polling beside something else: in a thread of its own, from `with` to the end of it."""

from __future__ import annotations

import logging
from threading import Event, Thread

from tidings.errors import TidingsError
from tidings.feeds.polling import LOOK_SECONDS, Polled, Poller

_log = logging.getLogger("tidings.feeds")


class PollLoop:
    """Polls what is due. A store that is away for a while comes back: that is said, and tried again."""

    def __init__(self, poller: Poller) -> None:
        self._poller = poller
        self._stop = Event()
        self._thread = Thread(target=self._run, name="feeds", daemon=True)

    def __enter__(self) -> PollLoop:
        self._thread.start()
        return self

    def __exit__(self, *failure: object) -> None:
        """Polls that are under way are ended: what they are about is due again soon."""
        self._stop.set()
        self._poller.stop()
        self._thread.join()
        self._poller.close()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._poller.follow(_hear)
            except TidingsError as problem:
                _log.warning("feeds cannot be read now: %s", problem)
                self._stop.wait(LOOK_SECONDS)


def _hear(polled: Polled) -> None:
    if polled.problem is not None:
        _log.info("%s: %s", polled.url, polled.problem)

"""What a stream beside a server tells is counted, logged and traced; while it runs, the store hears of it every ten
seconds.
"""

from __future__ import annotations

import logging
from dataclasses import asdict
from datetime import timedelta
from threading import Event, Thread
from typing import TYPE_CHECKING

from tidings import durations
from tidings.errors import TidingsError
from tidings.operating import logs, traces
from tidings.spark.news import HandedOver, Listener, News, Progress, Started

if TYPE_CHECKING:
    from tidings.interfaces.cli.stream_keeper import StreamKeeper
    from tidings.interfaces.http.context import Context
    from tidings.store import Store

BEAT_SECONDS = 10.0
SHOWN = (
    "batch",
    "events",
    "notifications",
    "held",
    "repeated",
    "dead_letters",
    "position",
    "lag",
    "segments",
)
"""What is logged of a batch."""
MOST_TRACED = 100
"""Of a batch: what is traced at a rate that people look at is not in batches of thousands."""

_log = logs.logger("tidings.stream")


class Counting:
    """Hears the stream, and passes on what it hears."""

    def __init__(self, context: Context, then: Listener) -> None:
        self._metrics, self._then = context.metrics, then
        self._traced = Traced(context.tidings.store)

    def __call__(self, news: News) -> None:
        self._traced(news)
        if isinstance(news, Progress):
            matches = news.notifications + news.held + news.repeated
            self._metrics.batch(matches, news.seconds, news.latency, news.sizes)
            told = asdict(news)
            _log.info("batch", seconds=round(news.seconds, 3), **{name: told[name] for name in SHOWN})
        elif isinstance(news, HandedOver):
            _log.info("held notifications are handed over", notifications=news.notifications)
        self._then(news)


class Traced:
    """Hears the stream, and tells in the trace of each publication of a batch that it was matched, with a link to the
    batch, which has a trace of its own.

    Of batches that end in quick succession only the last one may be heard: it stands for those before it, too.
    """

    def __init__(self, store: Store) -> None:
        self._store, self._upto = store, 0

    def __call__(self, news: News) -> None:
        if isinstance(news, Started):
            self._upto = news.position
        elif isinstance(news, Progress):
            if traces.is_on():
                self._trace(news)
            self._upto = max(self._upto, news.position)

    def _trace(self, batch: Progress) -> None:
        known = self._store.traces.among(self._upto + 1, batch.position, MOST_TRACED)
        attributes = {
            "tidings.batch": batch.batch,
            "tidings.events": batch.events,
            "tidings.notifications": batch.notifications,
        }
        told = traces.span(
            "match batch", links=known, attributes=attributes, lasted=batch.seconds, ended=batch.ended
        )
        with told as own, traces.span("commit", lasted=batch.committing, ended=batch.ended):
            links = [own] if own else []
        for one in known:
            with traces.span("notify", parent=one, links=links, ended=batch.ended):
                pass
        self._store.traces.forget()


class Pulse:
    """Records in the store every ten seconds that the stream runs or starts, from `with` to the end of it."""

    def __init__(self, context: Context, keeper: StreamKeeper) -> None:
        self._store, self._keeper = context.tidings.store, keeper
        self._kept = _kept(context)
        self._stop = Event()
        self._thread = Thread(target=self._run, name="pulse", daemon=True)

    def __enter__(self) -> Pulse:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while True:
            if self._keeper.problem is None or self._keeper.is_starting:
                self._beat(self._keeper.is_starting)
            if self._stop.wait(BEAT_SECONDS):
                return

    def _beat(self, starting: bool) -> None:
        from tidings.service.pipeline import beat

        try:
            beat(self._store, self._kept, starting=starting)
        except TidingsError as problem:  # the store comes back; readiness says so meanwhile
            logging.getLogger("tidings.stream").warning(
                "the store cannot be told that the stream runs: %s", problem
            )


def _kept(context: Context) -> timedelta:
    return timedelta(seconds=durations.parse(context.settings.retention.pipeline))

"""What delivery tells is counted, logged with its ids, kept over time, and traced."""

from __future__ import annotations

from collections import Counter
from time import monotonic

from tidings.delivery import Happened
from tidings.interfaces.http.context import Context
from tidings.operating import logs, traces

FLUSH_SECONDS = 10.0
"""How often what was counted goes to the store: for each delivery would be a transaction more."""
MOST_IDS = 20
"""How many notifications of one delivery are named in the log, or traced: a digest may have thousands."""

_log = logs.logger("tidings.delivery")


class Delivered:
    """Hears of each delivery, in the thread of the loop; `close` writes down what is left."""

    def __init__(self, context: Context) -> None:
        self._store, self._metrics = context.tidings.store, context.metrics
        self._counts: Counter[str] = Counter()
        self._flushed = monotonic()

    def __call__(self, happened: Happened) -> None:
        self._metrics.delivered(happened.kind, happened.what)
        self._counts[f"deliveries_{happened.what}"] += 1
        _log.info(
            "delivery",
            outcome=happened.what,
            channel=happened.kind,
            destination=happened.destination,
            subscription=happened.subscription,
            notifications=happened.ids[:MOST_IDS],
            problem=happened.problem,
            seconds=round(happened.seconds, 3),
        )
        if traces.is_on():
            self._trace(happened)
        if monotonic() - self._flushed > FLUSH_SECONDS:
            self.close()

    def close(self) -> None:
        if self._counts:
            self._store.measures.add(self._counts)
        self._counts, self._flushed = Counter(), monotonic()

    def _trace(self, happened: Happened) -> None:
        """In the trace of each publication that was traced, with the time it took."""
        attributes = {"tidings.channel": happened.kind, "tidings.outcome": happened.what}
        attributes |= {
            "tidings.destination": happened.destination,
            "tidings.subscription": happened.subscription,
        }
        kind: traces.Kind = "producer" if happened.kind == "kafka" else "client"
        for publication in self._store.notifications.publications(happened.ids[:MOST_IDS]):
            if parent := self._store.traces.of(publication):
                with traces.span(
                    "deliver", parent=parent, attributes=attributes, kind=kind, lasted=happened.seconds
                ):
                    traces.note({}, failed=happened.what != "delivered")

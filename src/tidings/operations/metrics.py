"""What a process counts, for Prometheus. Each application has a registry of its own, so that two can be in one process.

Counts of what is durable (publications, notifications, dead letters, how far the stream is) are read from the store
when somebody asks: they are the same in each process, and a restart does not set them back. What happens in a process
(requests, batches, deliveries) is counted there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.registry import Collector

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OPEN_METRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
DURATION_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
LARGEST_SEGMENTS = 32
"""How many segments have a number of their own."""

STORE_METRICS: Mapping[str, tuple[str, str]] = {
    "publications": ("counter", "Publications that were taken."),
    "notifications": ("counter", "Notifications of all subscribers."),
    "dead_letters": ("counter", "Publications that could not be used."),
    "stream_position": ("gauge", "How far in the journal everything is matched."),
    "stream_lag": ("gauge", "Publications that wait to be matched."),
}
"""What is read from the store, with its kind and its sentence."""

# When a counter began to count is of no use to anybody, and doubles the lines.
disable_created_metrics()  # type: ignore[no-untyped-call]

CountReader = Callable[[], Mapping[str, float]]


class StoreCollector(Collector):
    """Asks the store for its counts whenever the metrics are asked for."""

    def __init__(self, read: CountReader) -> None:
        self._read = read

    def describe(self) -> list[Metric]:
        """Nothing: else the store would be asked when this is registered."""
        return []

    def collect(self) -> Iterator[Metric]:
        for name, value in self._read().items():
            kind, words = STORE_METRICS[name]
            family = CounterMetricFamily if kind == "counter" else GaugeMetricFamily
            yield family(f"tidings_{name}", words, value=value)


class Metrics:
    """The counts of one application."""

    def __init__(self, read: CountReader | None = None) -> None:
        self.registry = CollectorRegistry()
        own = self.registry
        if read is not None:
            self.registry.register(StoreCollector(read))
        self.matches = Counter("tidings_matches", "Matches that the stream found.", registry=own)
        self.batch_seconds = Histogram(
            "tidings_batch_seconds",
            "How long batches of the stream took.",
            buckets=DURATION_BUCKETS,
            registry=own,
        )
        self.latency_seconds = Histogram(
            "tidings_latency_seconds",
            "From the oldest publication of a batch to its notifications.",
            buckets=DURATION_BUCKETS,
            registry=own,
        )
        self.segments = Gauge("tidings_segments", "Segments of the index.", registry=own)
        self.subscriptions = Gauge("tidings_subscriptions", "Subscriptions in the index.", registry=own)
        self.segment_subscriptions = Gauge(
            "tidings_segment_subscriptions",
            "Subscriptions in a segment, the largest first.",
            ["segment"],
            registry=own,
        )
        self.deliveries = Counter(
            "tidings_deliveries",
            "Attempts to deliver, by how and what came of it.",
            ["channel", "outcome"],
            registry=own,
        )
        self.requests = Counter(
            "tidings_requests", "Requests that were answered.", ["method", "route", "status"], registry=own
        )
        self.request_seconds = Histogram(
            "tidings_request_seconds",
            "How long answers took.",
            ["route"],
            buckets=DURATION_BUCKETS,
            registry=own,
        )
        self.clients = Gauge(
            "tidings_stream_clients", "Clients that are sent news as it comes.", ["kind"], registry=own
        )

    def batch(self, matches: int, seconds: float, latency: float | None, sizes: Sequence[int]) -> None:
        """A batch of the stream is done."""
        self.matches.inc(matches)
        self.batch_seconds.observe(seconds)
        if latency is not None:
            self.latency_seconds.observe(latency)
        self.index(sizes)

    def index(self, sizes: Sequence[int]) -> None:
        """What stands in the index."""
        self.segments.set(len(sizes))
        self.subscriptions.set(sum(sizes))
        self.segment_subscriptions.clear()
        for number, size in enumerate(sizes[:LARGEST_SEGMENTS]):
            self.segment_subscriptions.labels(str(number)).set(size)

    def delivered(self, channel: str, outcome: str) -> None:
        """An attempt has ended; `outcome` is `delivered`, `failed` (it is tried again), `dead` or `gone`."""
        self.deliveries.labels(channel, outcome).inc()

    def text(self, accept: str = "") -> tuple[bytes, str]:
        """As Prometheus reads it, with its media type: as OpenMetrics for whoever accepts that. What Prometheus's own
        library chooses would promise any version that is asked for.
        """
        if OPEN_METRICS.partition(";")[0] in accept:
            return openmetrics.generate_latest(self.registry), OPEN_METRICS  # type: ignore[no-untyped-call]
        return generate_latest(self.registry), CONTENT_TYPE

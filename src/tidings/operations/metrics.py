"""Metrics for Prometheus. Each application has its own registry, so that two can run in one process.

Counts of durable data (publications, notifications, dead letters, position of the stream) are read from the store on
each scrape: they are the same in every process and survive restarts. Events in a process (requests, batches,
deliveries) are counted there.
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
"""Number of segments with a gauge of their own."""

STORE_METRICS: Mapping[str, tuple[str, str]] = {
    "publications": ("counter", "Publications in the journal."),
    "notifications": ("counter", "Notifications of all subscribers."),
    "dead_letters": ("counter", "Publications that could not be processed."),
    "stream_position": ("gauge", "Position up to which the journal is matched."),
    "stream_lag": ("gauge", "Publications that are not matched yet."),
}
"""Metrics that are read from the store, with type and description."""

# The creation times of counters are of no use here and would double the number of lines.
disable_created_metrics()  # type: ignore[no-untyped-call]

CountReader = Callable[[], Mapping[str, float]]


class StoreCollector(Collector):
    """Reads the counts of the store on each scrape."""

    def __init__(self, read: CountReader) -> None:
        self._read = read

    def describe(self) -> list[Metric]:
        """Return nothing: otherwise registration would read the store."""
        return []

    def collect(self) -> Iterator[Metric]:
        for name, value in self._read().items():
            kind, description = STORE_METRICS[name]
            family = CounterMetricFamily if kind == "counter" else GaugeMetricFamily
            yield family(f"tidings_{name}", description, value=value)


class Metrics:
    """The metrics of one application."""

    def __init__(self, read: CountReader | None = None) -> None:
        self.registry = CollectorRegistry()
        own = self.registry
        if read is not None:
            self.registry.register(StoreCollector(read))
        self.matches = Counter("tidings_matches", "Matches found by the stream.", registry=own)
        self.batch_seconds = Histogram(
            "tidings_batch_seconds",
            "Duration of batches of the stream.",
            buckets=DURATION_BUCKETS,
            registry=own,
        )
        self.latency_seconds = Histogram(
            "tidings_latency_seconds",
            "Time from the oldest publication of a batch to its notifications.",
            buckets=DURATION_BUCKETS,
            registry=own,
        )
        self.segments = Gauge("tidings_segments", "Segments of the index.", registry=own)
        self.subscriptions = Gauge("tidings_subscriptions", "Subscriptions in the index.", registry=own)
        self.segment_subscriptions = Gauge(
            "tidings_segment_subscriptions",
            "Subscriptions per segment, the largest first.",
            ["segment"],
            registry=own,
        )
        self.deliveries = Counter(
            "tidings_deliveries",
            "Delivery attempts, by channel and outcome.",
            ["channel", "outcome"],
            registry=own,
        )
        self.requests = Counter(
            "tidings_requests",
            "HTTP requests, by route and status.",
            ["method", "route", "status"],
            registry=own,
        )
        self.request_seconds = Histogram(
            "tidings_request_seconds",
            "Duration of HTTP requests.",
            ["route"],
            buckets=DURATION_BUCKETS,
            registry=own,
        )
        self.clients = Gauge(
            "tidings_stream_clients", "Connected clients of notification streams.", ["kind"], registry=own
        )

    def batch(self, matches: int, seconds: float, latency: float | None, sizes: Sequence[int]) -> None:
        """Record a completed batch of the stream."""
        self.matches.inc(matches)
        self.batch_seconds.observe(seconds)
        if latency is not None:
            self.latency_seconds.observe(latency)
        self.index(sizes)

    def index(self, sizes: Sequence[int]) -> None:
        """Record the sizes of the index's segments."""
        self.segments.set(len(sizes))
        self.subscriptions.set(sum(sizes))
        self.segment_subscriptions.clear()
        for number, size in enumerate(sizes[:LARGEST_SEGMENTS]):
            self.segment_subscriptions.labels(str(number)).set(size)

    def count_delivery(self, channel: str, outcome: str) -> None:
        """Count a delivery attempt; `outcome` is `delivered`, `failed` (it is retried), `dead` or `gone`."""
        self.deliveries.labels(channel, outcome).inc()

    def text(self, accept: str = "") -> tuple[bytes, str]:
        """Render the metrics in the text format of Prometheus, or as OpenMetrics if accepted, with the media type.

        The choice is made here, because prometheus_client promises any version of OpenMetrics that is requested.
        """
        if OPEN_METRICS.partition(";")[0] in accept:
            return openmetrics.generate_latest(self.registry), OPEN_METRICS  # type: ignore[no-untyped-call]
        return generate_latest(self.registry), CONTENT_TYPE

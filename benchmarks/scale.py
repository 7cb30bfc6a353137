"""Sizes of the benchmarks: tiny for tests, quick for minutes, full for the published tables."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.budget import Budget


@dataclass(frozen=True)
class Scale:
    """Numbers of subscriptions and events. Each engine is measured up to a reasonable size."""

    runs: int
    budget: Budget
    """Time limits of engines."""

    sizes: tuple[int, ...]
    """Subscriptions of S, E and H with uniform values."""
    skewed: tuple[int, ...]
    """The same with Zipf-distributed values."""
    peers: tuple[int, ...]
    """Sizes with all peers, for uniform values; at other sizes only the joins of databases, the fastest peers."""
    stock: int
    """Subscriptions of further experiments with stock quotes: texts, ten times as many, the Spark job."""
    stock_events: int
    equality_events: int
    interval_events: int
    job_events: int
    """Events of the Spark job; `stock` is the number of its subscriptions."""
    churn_seconds: float
    """Duration of adding and removing subscriptions, for each rate."""

    begen: tuple[int, ...]
    begen_attributes: tuple[int, ...]
    begen_events: int
    ads: tuple[int, ...]
    ads_events: int
    joined: tuple[int, ...]
    """Sizes of the two above with joins: beyond that, joins run out of memory."""

    stock_documents: tuple[int, ...]
    """Subscriptions to stock quotes as documents; the largest is also measured with other shares of matches."""
    stock_messages: int
    anthology: tuple[int, ...]
    """Subscriptions to real documents, whose number is fixed."""
    xpath_peers: int
    """Subscriptions when XPaths are evaluated one after another."""
    relational: tuple[int, ...]
    """Subscriptions in tables, matched by joins."""
    relational_messages: int
    relational_shares: bool
    """Whether joins are also measured with other shares of matches."""

    graphs: tuple[int, ...]
    """Subscriptions to graphs (table 1 of paper 002)."""
    graphs_plain: int
    """Maximum for the paper's algorithms."""
    graphs_queries: int
    """Maximum for SPARQL queries: one with the paper's 35 edges takes more than a millisecond."""
    small_graphs: tuple[int, ...]
    """Subscriptions with few edges."""
    graphs_varied: int
    """Subscriptions while another parameter varies (figure 9)."""
    graph_publications: int

    metadata_rules: tuple[int, ...]
    """Rules over metadata, of each type (section 4 of paper 001)."""
    metadata_batches: tuple[int, ...]
    """Documents registered in one call."""
    metadata_results: int
    """Maximum number of results of a batch."""
    metadata_varied: int
    """Rules while the share that matches a document varies (figure 15)."""
    metadata_shares: tuple[float, ...]
    metadata_stored: tuple[int, ...]
    """Stored resources while single ones are updated."""
    metadata_server: bool
    """Whether PostgreSQL is also measured."""

    objects_shares: tuple[tuple[int, int], ...]
    """Percentages of the persons who watch an object and a class (table 1 of paper 000)."""
    objects_times: tuple[int, ...]
    """Factors by which a university is larger than the paper's (table 2)."""
    objects_grown: int
    """The same where each update has the same audience."""
    objects_updates: int
    """Updates per run: the paper's updates, repeated or cut to this number."""
    objects_server: bool
    """Whether PostgreSQL is also measured."""
    objects_spark: tuple[tuple[int, int], ...]
    """Objects and changes on Spark, with five references per object."""

    service_subscriptions: int
    """Subscriptions of the complete service."""
    service_rates: tuple[int, ...]
    """Events per second for the measurement of the time from publish to receipt."""
    service_seconds: int
    """Duration for each rate."""
    service_ingested: int
    """Events for the measurement of ingest, in bulk requests; single requests send a fiftieth of them."""
    service_clients: int
    """Concurrent streams."""
    service_held_seconds: int
    webhooks: tuple[tuple[int, int], ...]
    """Subscribers with one destination each, and the number of waiting notifications for each."""
    webhooks_server: bool
    """Whether PostgreSQL is also measured."""
    sink_notifications: int
    """Notifications of a batch of the stream, into PostgreSQL."""
    sink_subscribers: int

    gough: int
    """Limit of the single-path tree."""
    small: int
    """Subscriptions for all other algorithms of paper 004, including the naive one."""
    plain: tuple[int, ...]
    """Subscriptions for algorithms in plain Python without quadratic cost."""
    index: tuple[int, ...]
    """Subscriptions for the index alone."""
    mixed_plain: int
    mixed_index: int
    """Subscriptions while the share of equalities varies (figure 10)."""
    plain_events: int
    index_events: int


TINY = Scale(
    runs=1,
    budget=Budget(build=30.0, run=0.2, overhead=1.0),
    sizes=(500,),
    skewed=(500,),
    peers=(),
    stock=2000,
    stock_events=200,
    equality_events=200,
    interval_events=100,
    job_events=200,
    churn_seconds=0.3,
    begen=(100,),
    begen_attributes=(100, 300),
    begen_events=50,
    ads=(300,),
    ads_events=50,
    joined=(),
    stock_documents=(300, 500),
    stock_messages=100,
    anthology=(300,),
    xpath_peers=50,
    relational=(),
    relational_messages=20,
    relational_shares=False,
    graphs=(100,),
    graphs_plain=100,
    graphs_queries=100,
    small_graphs=(100, 200),
    graphs_varied=20,
    graph_publications=4,
    metadata_rules=(20,),
    metadata_batches=(1, 10),
    metadata_results=100,
    metadata_varied=20,
    metadata_shares=(0.05, 0.1),
    metadata_stored=(20,),
    metadata_server=False,
    objects_shares=((8, 2),),
    objects_times=(),
    objects_grown=2,
    objects_updates=30,
    objects_server=False,
    objects_spark=((400, 40),),
    service_subscriptions=50,
    service_rates=(20,),
    service_seconds=2,
    service_ingested=200,
    service_clients=5,
    service_held_seconds=2,
    webhooks=((3, 4),),
    webhooks_server=False,
    sink_notifications=400,
    sink_subscribers=20,
    gough=20,
    small=200,
    plain=(300,),
    index=(1000,),
    mixed_plain=100,
    mixed_index=500,
    plain_events=20,
    index_events=50,
)

QUICK = Scale(
    runs=3,
    budget=Budget(build=15.0, run=0.3, overhead=1.0),
    sizes=(10_000, 100_000, 1_000_000),
    skewed=(1_000_000,),
    peers=(10_000,),
    stock=1_000_000,
    stock_events=100_000,
    equality_events=100_000,
    interval_events=2_000,
    job_events=1_000_000,
    churn_seconds=10,
    begen=(20_000,),
    begen_attributes=(100, 30_000),
    begen_events=500,
    ads=(140_000,),
    ads_events=500,
    joined=(20_000, 140_000),
    stock_documents=(100_000, 1_000_000),
    stock_messages=10_000,
    anthology=(130_000,),
    xpath_peers=1_000,
    relational=(10_000,),
    relational_messages=1_000,
    relational_shares=False,
    graphs=(10_000, 30_000),
    graphs_plain=30_000,
    graphs_queries=10_000,
    small_graphs=(10_000, 100_000),
    graphs_varied=10_000,
    graph_publications=200,
    metadata_rules=(1_000, 10_000, 100_000),
    metadata_batches=(1, 10, 100, 1_000),
    metadata_results=50_000,
    metadata_varied=10_000,
    metadata_shares=(0.01, 0.05, 0.1, 0.2),
    metadata_stored=(10_000, 100_000),
    metadata_server=True,
    objects_shares=((8, 2), (32, 8), (64, 16)),
    objects_times=(2, 8),
    objects_grown=100,
    objects_updates=200,
    objects_server=True,
    objects_spark=((20_000, 2_000),),
    service_subscriptions=100_000,
    service_rates=(1, 100, 1_000),
    service_seconds=20,
    service_ingested=100_000,
    service_clients=5_000,
    service_held_seconds=60,
    webhooks=((32, 200), (1, 2_000), (1_000, 1)),
    webhooks_server=True,
    sink_notifications=100_000,
    sink_subscribers=5_000,
    gough=60,
    small=10_000,
    plain=(40_000,),
    index=(200_000, 800_000, 3_200_000),
    mixed_plain=10_000,
    mixed_index=800_000,
    plain_events=20,
    index_events=500,
)

FULL = Scale(
    runs=3,
    budget=Budget(build=30.0, run=1.0),
    sizes=(10_000, 100_000, 1_000_000, 10_000_000),
    skewed=(10_000, 100_000, 1_000_000, 10_000_000),
    peers=(10_000, 100_000, 1_000_000),
    stock=1_000_000,
    stock_events=100_000,
    equality_events=100_000,
    interval_events=2_000,
    job_events=4_000_000,
    churn_seconds=20,
    begen=(20_000, 1_000_000),
    begen_attributes=(100, 30_000),
    begen_events=1_000,
    ads=(140_000, 1_400_000, 3_000_000),
    ads_events=1_000,
    joined=(20_000, 140_000),
    stock_documents=(100_000, 200_000, 1_000_000),
    stock_messages=10_000,
    anthology=(130_000, 700_000, 2_700_000),
    xpath_peers=10_000,
    relational=(100_000, 200_000, 1_000_000),
    relational_messages=10_000,
    relational_shares=True,
    graphs=(10_000, 30_000, 100_000, 1_000_000),
    graphs_plain=30_000,
    graphs_queries=10_000,
    small_graphs=(10_000, 100_000, 1_000_000),
    graphs_varied=30_000,
    graph_publications=500,
    metadata_rules=(1_000, 10_000, 100_000, 1_000_000),
    metadata_batches=(1, 10, 100, 1_000),
    metadata_results=100_000,
    metadata_varied=10_000,
    metadata_shares=(0.01, 0.05, 0.1, 0.2),
    metadata_stored=(10_000, 1_000_000),
    metadata_server=True,
    objects_shares=((4, 1), (8, 2), (16, 4), (32, 8), (64, 16)),
    objects_times=(2, 4, 8, 100),
    objects_grown=100,
    objects_updates=2_000,
    objects_server=True,
    objects_spark=((20_000, 2_000), (1_000_000, 100_000)),
    service_subscriptions=100_000,
    service_rates=(1, 100, 1_000),
    service_seconds=60,
    service_ingested=500_000,
    service_clients=5_000,
    service_held_seconds=60,
    webhooks=((32, 1_000), (200, 100), (1, 10_000), (2_000, 1)),
    webhooks_server=True,
    sink_notifications=500_000,
    sink_subscribers=20_000,
    gough=60,
    small=10_000,
    plain=(25_000, 50_000, 100_000),
    index=(800_000, 1_600_000, 3_200_000),
    mixed_plain=100_000,
    mixed_index=800_000,
    plain_events=50,
    index_events=1000,
)

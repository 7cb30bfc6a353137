"""How big the benchmarks are: tiny for the tests, quick for a coffee, full for the record."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.budget import Budget


@dataclass(frozen=True)
class Scale:
    """Numbers of subscriptions and events. An engine is measured up to where it stays sensible."""

    runs: int
    budget: Budget
    """How long an engine may take before it is stopped."""

    sizes: tuple[int, ...]
    """Subscriptions of S, E and H with uniform values."""
    skewed: tuple[int, ...]
    """The same by Zipf's law."""
    peers: tuple[int, ...]
    """At these all peers take part, where values are uniform; elsewhere the databases' joins, the fastest of them."""
    stock: int
    """Subscriptions of the experiments with stock quotes beyond the table: texts, ten times as many, the job."""
    stock_events: int
    equality_events: int
    interval_events: int
    job_events: int
    """Events of the whole Spark job; its subscriptions are those of `stock`."""
    churn_seconds: float
    """How long subscriptions come and go, at each rate."""

    begen: tuple[int, ...]
    begen_attributes: tuple[int, ...]
    begen_events: int
    ads: tuple[int, ...]
    ads_events: int
    joined: tuple[int, ...]
    """At these sizes of the two above the joins take part: at more they take more than all memory."""

    stock_documents: tuple[int, ...]
    """Subscriptions to stock quotes as documents; other shares of matches at the largest of these."""
    stock_messages: int
    anthology: tuple[int, ...]
    """Subscriptions to real documents, of which there are as many as there are."""
    xpath_peers: int
    """So few that an XPath can be evaluated after another."""
    relational: tuple[int, ...]
    """Subscriptions as tables, matched by joins."""
    relational_messages: int
    relational_shares: bool
    """Whether the joins are measured with other shares of matches, too."""

    graphs: tuple[int, ...]
    """Subscriptions to graphs (table 1 of paper 002)."""
    graphs_plain: int
    """With so many at the most, the paper's algorithms take part."""
    graphs_queries: int
    """With so many, SPARQL queries do: the paper's 35 edges take more than a millisecond each."""
    small_graphs: tuple[int, ...]
    """Subscriptions of a few edges."""
    graphs_varied: int
    """Subscriptions while another parameter varies (figure 9)."""
    graph_publications: int

    metadata_rules: tuple[int, ...]
    """Rules over metadata, of each type (section 4 of paper 001)."""
    metadata_batches: tuple[int, ...]
    """Documents that are registered at once."""
    metadata_results: int
    """A batch has so many results at the most."""
    metadata_varied: int
    """Rules while the share that matches a document varies (figure 15)."""
    metadata_shares: tuple[float, ...]
    metadata_stored: tuple[int, ...]
    """Resources that are stored while one is updated."""
    metadata_server: bool
    """Whether PostgreSQL is measured, too."""

    objects_shares: tuple[tuple[int, int], ...]
    """Percentages of the persons who watch an object and a class (table 1 of paper 000)."""
    objects_times: tuple[int, ...]
    """How many times as large as the paper's a university is (table 2)."""
    objects_grown: int
    """How many times larger, where each update has the same audience."""
    objects_updates: int
    """Updates of a run: all that the paper makes, again and again, or the first of them."""
    objects_server: bool
    """Whether PostgreSQL is measured, too."""
    objects_spark: tuple[tuple[int, int], ...]
    """Objects and changes on Spark; there are five references to an object."""

    service_subscriptions: int
    """Subscriptions of a service that runs as a whole."""
    service_rates: tuple[int, ...]
    """Events a second, while it is measured how long they are on their way."""
    service_seconds: int
    """For how long, at each rate."""
    service_ingested: int
    """Events that are published as fast as they are taken, many in a request; of single ones a fiftieth."""
    service_clients: int
    """Streams that are held at the same time."""
    service_held_seconds: int
    webhooks: tuple[tuple[int, int], ...]
    """Subscribers with a destination each, and how many notifications each has waiting."""
    webhooks_server: bool
    """Whether PostgreSQL is measured, too."""

    gough: int
    """The single-path tree refuses more than this few."""
    small: int
    """Every other algorithm of paper 004, the naive one included."""
    plain: tuple[int, ...]
    """The algorithms in plain Python that do not slow down with the square of the subscriptions."""
    index: tuple[int, ...]
    """The index alone."""
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
    gough=60,
    small=10_000,
    plain=(25_000, 50_000, 100_000),
    index=(800_000, 1_600_000, 3_200_000),
    mixed_plain=100_000,
    mixed_index=800_000,
    plain_events=50,
    index_events=1000,
)

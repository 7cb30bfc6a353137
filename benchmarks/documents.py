"""Documents: paper 003's experiments. Stock quotes as XML (section 5.1), and real documents (section 5.2's scale).

For each workload and size there are rows for

    parsing alone (lxml)      the limit for engines that parse with lxml
    index                     bytes to matches
    index: decode, match      the parts of the same
    relational, ...           the paper's plans on Spark
    lxml, ...                 one XPath after another, for few subscriptions
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from benchmarks import relational
from benchmarks.document_engines import CompiledXPaths, DocumentIndex, EachXPath, Parsing, by_lxml
from benchmarks.engine import Engine
from benchmarks.harness import Bench, Case
from benchmarks.rows import Row
from benchmarks.scale import Scale
from benchmarks.workloads import anthology
from benchmarks.workloads.documents import DocumentWorkload
from benchmarks.workloads.stock_documents import EASE, MANY, StockWorkloads, stock_documents
from tidings.relational.tables import Plan

DECODE, MATCH = "index: decode", "index: match"
FEW = 5
"""Documents whose matches are checked with the reference matching, or with lxml."""

CHECKED = 200_000
"""With more subscriptions, lxml is not used as a check."""


def stock(bench: Bench, scale: Scale) -> None:
    """Measure sizes with a fixed share of matches (table 5.2), other shares at the largest (table 5.1), then peers."""
    sizes, documents = scale.stock_documents, scale.stock_messages
    more_subscriptions(bench, [stock_documents(size, documents) for size in sizes])
    for matches in EASE:
        if matches != MANY:
            more_subscriptions(bench, [stock_documents(sizes[-1], documents, matches)])
    against_lxml(bench, stock_documents(scale.xpath_peers, documents).documents)


def joins(bench: Bench, scale: Scale) -> None:
    """Measure the relational plans: sizes with a fixed share of matches (table 5.2)."""
    by_joins(bench, [stock_documents(size, scale.relational_messages) for size in scale.relational])


def joins_by_matches(bench: Bench, scale: Scale) -> None:
    """Measure the relational plans with other shares of matches (table 5.1). At full size this takes hours."""
    if scale.relational_shares:
        size, documents = scale.relational[-1], scale.relational_messages
        by_joins(bench, [stock_documents(size, documents, share) for share in EASE if share != MANY])
    else:
        bench.say("  the plans with other shares of matches are measured with --full only")


def by_joins(
    bench: Bench, workloads: Sequence[StockWorkloads], plans: Sequence[Plan] = relational.PLANS
) -> None:
    """Compare plans with the index, which is measured too unless this run has already done so."""
    with relational.session() as spark:
        for pair in workloads:
            name, size = pair.documents.name, len(pair.documents.subscriptions)
            if not bench.has(name, size, DocumentIndex.name):
                more_subscriptions(bench, [pair])
            relational.compare(bench, spark, pair.documents, plans)


def more_subscriptions(bench: Bench, workloads: Sequence[StockWorkloads]) -> None:
    """Measure workloads in turns, so that their ratio does not depend on the load of the machine."""
    for pair in workloads:
        bench.check(pair.columns, FEW)
    measure(bench, [pair.documents for pair in workloads])


def real(bench: Bench, scale: Scale) -> None:
    """Measure 130 thousand to 2.7 million subscriptions (tables 5.3 and 5.4) over all papers."""
    if not anthology.ARCHIVE.exists():
        bench.say(f"skipped: {anthology.ARCHIVE.name} not found in {anthology.ARCHIVE.parent}")
        return
    largest = anthology.anthology(max(scale.anthology), anthology.ARCHIVE)
    for size in scale.anthology:
        workload = replace(largest, subscriptions=largest.subscriptions.first(size))
        check(bench, workload)
        measure(bench, [workload])
    against_lxml(bench, replace(largest, subscriptions=largest.subscriptions.first(scale.xpath_peers)))


def check(bench: Bench, workload: DocumentWorkload) -> None:
    """Record the matches that lxml finds in a few documents as the expected ones."""
    size = len(workload.subscriptions)
    if size <= CHECKED:
        counts = by_lxml(workload.subscriptions, workload.events.first(FEW))
        bench.agree(workload.name, size, "lxml", counts)


def measure(bench: Bench, workloads: Sequence[DocumentWorkload]) -> None:
    """Measure parsing and the index in turns, then the parts of the index's time."""
    engines = [DocumentIndex() for _ in workloads]
    cases = [
        Case(engine, workload, len(workload.events))
        for index, workload in zip(engines, workloads, strict=True)
        for engine in (Parsing(), index)
    ]
    rows = bench.side_by_side(cases)
    for engine, row in zip(engines, rows[1::2], strict=True):
        _keep_parts(bench, engine, row)


def _keep_parts(bench: Bench, engine: DocumentIndex, row: Row) -> None:
    for name, seconds in zip((DECODE, MATCH), engine.typical(bench.runs), strict=True):
        rate = engine.events / max(seconds, 1e-9)
        nothing = replace(row, build_seconds=None, bytes_per_subscription=None, linear_paths=None)
        bench.keep(replace(nothing, engine=name, events_per_cpu_second=rate, seconds_per_event=1 / rate))


def against_lxml(bench: Bench, workload: DocumentWorkload) -> None:
    """Compare with lxml for so few subscriptions that each XPath can be evaluated by itself."""
    measure(bench, [workload])
    peers: Iterable[Engine] = (EachXPath(), CompiledXPaths())
    for peer in peers:
        bench.measure(peer, workload, len(workload.events))

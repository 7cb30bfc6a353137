"""Documents: paper 003's experiments. Stock quotes as XML (section 5.1), and real documents (section 5.2's scale).

For each workload and size there are rows for

    parsing alone (lxml)      what nobody gets around who reads documents with lxml: here the limit
    index                     bytes to matches
    index: decode, match      the same part by part
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
from benchmarks.workloads.stock_documents import EASE, MANY, Both, stock_documents
from tidings.relational.tables import Plan

DECODE, MATCH = "index: decode", "index: match"
FEW = 5
"""Documents whose matches are also found by the definition, or by lxml."""

CHECKED = 200_000
"""With more subscriptions lxml is not asked."""


def stock(bench: Bench, scale: Scale) -> None:
    """Sizes with a fixed share of matches (table 5.2), then other shares at the largest (table 5.1), then peers."""
    sizes, documents = scale.stock_documents, scale.stock_messages
    more_subscriptions(bench, [stock_documents(size, documents) for size in sizes])
    for matches in EASE:
        if matches != MANY:
            more_subscriptions(bench, [stock_documents(sizes[-1], documents, matches)])
    against_lxml(bench, stock_documents(scale.xpath_peers, documents).documents)


def joins(bench: Bench, scale: Scale) -> None:
    """The relational plans: sizes with a fixed share of matches (table 5.2)."""
    by_joins(bench, [stock_documents(size, scale.relational_messages) for size in scale.relational])


def joins_by_matches(bench: Bench, scale: Scale) -> None:
    """The relational plans: other shares of matches at the largest size (table 5.1). At full size this takes hours."""
    if scale.relational_shares:
        size, documents = scale.relational[-1], scale.relational_messages
        by_joins(bench, [stock_documents(size, documents, share) for share in EASE if share != MANY])
    else:
        bench.say("  the plans with other numbers of matches are measured with --full only")


def by_joins(bench: Bench, workloads: Sequence[Both], plans: Sequence[Plan] = relational.PLANS) -> None:
    """Plans beside the index, which is measured again where that was not done in this run."""
    with relational.session() as spark:
        for both in workloads:
            name, size = both.documents.name, len(both.documents.subscriptions)
            if not bench.has(name, size, DocumentIndex.name):
                more_subscriptions(bench, [both])
            relational.compare(bench, spark, both.documents, plans)


def more_subscriptions(bench: Bench, workloads: Sequence[Both]) -> None:
    """All in turns, so that their ratio is not that of two moments of the machine."""
    for both in workloads:
        bench.check(both.columns, FEW)
    measure(bench, [both.documents for both in workloads])


def real(bench: Bench, scale: Scale) -> None:
    """Subscriptions from 130 thousand to 2.7 million (tables 5.3 and 5.4) over all papers, one size after another."""
    if not anthology.ARCHIVE.exists():
        bench.say(f"skipped: there is no {anthology.ARCHIVE.name} in {anthology.ARCHIVE.parent}")
        return
    largest = anthology.anthology(max(scale.anthology), anthology.ARCHIVE)
    for size in scale.anthology:
        workload = replace(largest, subscriptions=largest.subscriptions.first(size))
        check(bench, workload)
        measure(bench, [workload])
    against_lxml(bench, replace(largest, subscriptions=largest.subscriptions.first(scale.xpath_peers)))


def check(bench: Bench, workload: DocumentWorkload) -> None:
    """Let lxml speak first, for a few documents."""
    size = len(workload.subscriptions)
    if size <= CHECKED:
        counts = by_lxml(workload.subscriptions, workload.events.first(FEW))
        bench.agree(workload.name, size, "lxml", counts)


def measure(bench: Bench, workloads: Sequence[DocumentWorkload]) -> None:
    """Parsing and the index in turns; then the parts of the index's time."""
    engines = [DocumentIndex() for _ in workloads]
    cases = [
        Case(engine, workload, len(workload.events))
        for mine, workload in zip(engines, workloads, strict=True)
        for engine in (Parsing(), mine)
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
    """So few subscriptions that each can be asked by itself."""
    measure(bench, [workload])
    peers: Iterable[Engine] = (EachXPath(), CompiledXPaths())
    for peer in peers:
        bench.measure(peer, workload, len(workload.events))

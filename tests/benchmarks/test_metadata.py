"""The rules and documents of section 4: each document is matched by the stated number of rules, on every store."""

from __future__ import annotations

import pytest

from benchmarks import metadata
from benchmarks.goals import goals
from benchmarks.harness import Bench
from benchmarks.metadata_figures import figure_15, figures_11_to_14, points
from benchmarks.metadata_places import PostgreSQL
from benchmarks.rows import Row
from benchmarks.scale import TINY
from benchmarks.workloads.metadata import SCHEMA, Rules, Type
from tidings.graphs.rdf.rdf_decoder import decode
from tidings.metadata.documents import DocumentReader
from tidings.metadata.rules.rule_parser import parse_rule
from tidings.metadata.rules.semantics import evaluate_rule
from tidings.metadata.schema.schema_parser import parse_schema

READER_SCHEMA = parse_schema(decode(SCHEMA, "text/turtle"))


def quiet() -> Bench:
    return Bench(1, lambda _: None, TINY.budget)


@pytest.mark.parametrize("kind", Type)
def test_rules_match_documents_as_paper_states(kind: Type) -> None:
    rules, reader = Rules(kind, 20, share=0.25), DocumentReader(READER_SCHEMA)
    sources = rules.documents(20)
    documents = [reader.read(source.body, source.media_type, source.uri) for source in sources]
    resources = [resource for document in documents for resource in document.resources]
    results = [
        sorted(evaluate_rule(parse_rule(text), resources, READER_SCHEMA)) for text in rules.texts().values()
    ]
    everything = sorted(f"{source.uri}#host" for source in sources)
    if kind is Type.COMP:
        assert results == [everything] * 5 + [[]] * 15
    else:
        assert sorted(results) == [[uri] for uri in everything]


def test_postgresql_counts_time_of_server_and_matches_agree(server: PostgreSQL) -> None:
    bench, rules = quiet(), Rules(Type.PATH, 20)
    metadata.compare(bench, server, rules, TINY)
    spent, _ = server.measure(lambda: sum(number * number for number in range(300_000)))
    metadata.evaluate_all_rules(bench, rules, TINY)
    assert {row.engine for row in bench.rows} == {"PostgreSQL", "pyoxigraph, each rule in turn"}
    assert {row.matches_per_event for row in bench.rows} == {1.0}
    assert spent.cpu > 0 and all(
        row.stored_bytes_per_subscription for row in bench.rows if row.role == "ours"
    )


def test_peer_over_budget_is_stopped_and_skipped_for_larger_sizes() -> None:
    bench = Bench(1, lambda _: None, TINY.budget._replace(run=1e-6))
    for size in (20, 50):
        metadata.evaluate_all_rules(bench, Rules(Type.PATH, size), TINY)
    assert [row.subscriptions for row in bench.rows] == [20, 20, 50, 50]
    assert all(row.note.endswith("at 20 rules") and row.events_per_cpu_second is None for row in bench.rows)


def row(workload: str, rules: int, engine: str, seconds: float) -> Row:
    rate = 1 / seconds
    return Row(
        workload, rules, engine, rate, None, None, 1.0, seconds_per_event=seconds, events_per_second=rate
    )


def test_goals_are_reported_for_each_store() -> None:
    path, few = Rules(Type.PATH, 1), "metadata, one update among 10,000 resources"
    workload = metadata.batches_of(path, 1_000)
    rows = [row(workload, 1_000, "SQLite", 2e-4), row(workload, 100_000, "SQLite", 4e-4)]
    rows += [row(few, 1_000, "SQLite", 5e-3), row(metadata.stored_of(1_000_000), 1_000, "SQLite", 6e-3)]
    report = goals(rows)
    assert f"{workload}, SQLite, 100,000 rules: documents a second | at least 2,000 | 2,500 | met" in report
    assert "beside 1,000 | at most 1.50 x | 2.00 x | missed: 75% of it" in report
    assert "one update, SQLite: 1,000,000 beside 10,000 resources | at most 1.50 x | 1.20 x | met" in report


def test_figures_have_one_line_per_rule_base_and_share() -> None:
    names = [
        metadata.batches_of(Rules(Type.COMP, 100, share), batch) for share in (0.1, 0.2) for batch in (1, 10)
    ]
    rows = [row(name, 100, "SQLite", 1e-3) for name in names]
    assert [point.batch for point in points(rows)] == [1, 10, 1, 10]
    figures, figure = figures_11_to_14(rows), figure_15(rows)
    assert figures is not None and figure is not None
    assert sum(len(line.get_xdata()) for line in figure.axes[0].lines) == 4
    assert figures_11_to_14([]) is None and figure_15([row(names[0], 100, "SQLite", 1.0)]) is None

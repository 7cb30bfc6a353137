"""Metadata: section 4 of paper 001, on SQLite and PostgreSQL, compared with evaluating every rule again.

The time per document includes everything: reading RDF, checks, the log, the filter, results, notifications, the commit.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import islice

import numpy as np

from benchmarks.budget import TooLong, at_most
from benchmarks.harness import Bench
from benchmarks.metadata_peers import EachRule
from benchmarks.metadata_places import Place, PostgreSQL, SQLite, places
from benchmarks.processes import Cost
from benchmarks.rows import Row
from benchmarks.scale import Scale
from benchmarks.workloads.metadata import SCHEMA, Rules, Type
from tidings.metadata.log import LogDraft, Operation
from tidings.metadata.provider.provider import DocumentSource, Provider
from tidings.metadata.sql.transaction import RegistrationResult
from tidings.store.store import Store

NAME = "metadata"
OWNER = "benchmark"
LOADED = 50_000
"""Rules added in one call."""

FILLED = 1_000
"""Documents registered in one call where the time is not measured."""

AT_LEAST = 20
"""Documents per measurement: batches of one are too short to be timed alone."""

PLACES = (SQLite.name, PostgreSQL.name)
UPDATES = 100
UPDATED_RULES = 1_000


def batches_of(rules: Rules, batch: int) -> str:
    """Return the name of a workload."""
    share = f" {rules.share:.0%}" if rules.type is Type.COMP else ""
    return f"{NAME}, {rules.type.value}{share}, batches of {batch:,}"


def stored_of(resources: int) -> str:
    return _UPDATE.format(f"{resources:,}")


def resources_of(workload: str) -> int | None:
    """Return the number of stored resources in a workload of updates; None for other workloads."""
    before, _, after = _UPDATE.partition("{}")
    number = workload.removeprefix(before).removesuffix(after).replace(",", "")
    return int(number) if number.isdigit() else None


_UPDATE = f"{NAME}, one update among {{}} resources"


def run(bench: Bench, scale: Scale) -> None:
    with ExitStack() as opened:
        for place in places(bench, NAME, scale.metadata_server, opened):
            for rules in _rule_bases(scale):
                compare(bench, place, rules, scale)
    for rules in _rule_bases(scale):
        evaluate_all_rules(bench, rules, scale)


def updates(bench: Bench, scale: Scale) -> None:
    with ExitStack() as opened:
        for place in places(bench, NAME, scale.metadata_server, opened):
            for resources in scale.metadata_stored:
                update(bench, place, resources)


def _rule_bases(scale: Scale) -> Iterator[Rules]:
    """Yield the rule bases of figures 11 to 14, then of figure 15."""
    for kind in Type:
        yield from (Rules(kind, size) for size in scale.metadata_rules)
    usual = Rules.share if scale.metadata_varied in scale.metadata_rules else None
    shares = (share for share in scale.metadata_shares if share != usual)
    yield from (Rules(Type.COMP, scale.metadata_varied, share) for share in shares)


def _batches(rules: Rules, scale: Scale) -> list[int]:
    """Return the batch sizes for which there are documents, and whose results stay below the limit."""
    return [
        batch
        for batch in scale.metadata_batches
        if batch <= rules.size and batch * rules.matched <= scale.metadata_results
    ]


def compare(bench: Bench, place: Place, rules: Rules, scale: Scale) -> None:
    """Measure one rule base with all batch sizes, the largest first: the first document builds the index."""
    batches = _batches(rules, scale)
    if not batches:
        return
    bench.say(f"{NAME}: {place.name} loads {rules.size:,} rules of {rules.type.value}")
    with place.empty() as store:
        provider = Provider(store)
        provider.load_schema(SCHEMA, "text/turtle")
        before = place.nbytes(store)
        built, _ = place.measure(lambda: _load(provider, rules))
        stored = place.nbytes(store) - before
        measurement = BatchMeasurement(bench, place, provider, rules, scale.metadata_results)
        measurement.warm_up()
        for batch in reversed(batches):
            row = measurement.row(batch, _memory(provider, store), stored, built)
            bench.keep(row)


def _load(provider: Provider, rules: Rules) -> None:
    texts = iter(rules.texts().items())
    while chunk := dict(islice(texts, LOADED)):
        provider.add_rules(chunk, OWNER)


def _memory(provider: Provider, store: Store) -> int:
    return provider._schemas.context(store.metadata.schema()).triggers.nbytes


class BatchMeasurement:
    """Measurements of batches of new documents with one rule base."""

    def __init__(self, bench: Bench, place: Place, provider: Provider, rules: Rules, results: int) -> None:
        self._bench, self._place, self._provider, self._rules = bench, place, provider, rules
        self._results = results

    def warm_up(self) -> None:
        """Build the index, load kernels, fill caches."""
        self._register(self._rules.documents(1, seed=0))
        self._clear(self._rules.documents(1, seed=0))

    def row(self, batch: int, nbytes: int, stored: int, built: Cost) -> Row:
        """Measure enough batches to be timed, several times, each time with new documents."""
        rules, workload = self._rules, batches_of(self._rules, batch)
        count = max(batch, min(AT_LEAST, self._results // rules.matched))
        sources = rules.documents(count if rules.type is Type.COMP else min(rules.size, count))
        times, counts = [], Counter[str]()
        for _ in range(self._bench.runs):
            spent, counts = self._place.measure(lambda: self._register_all(sources, batch))
            times.append(spent)
            self._clear(sources)
        matches = np.array([counts[f"{source.uri}#host"] for source in sources], np.int64)
        self._bench.agree(workload, rules.size, self._place.name, matches)
        return _row(workload, rules, self._place.name, times, matches, nbytes, stored, built)

    def _register_all(self, sources: Sequence[DocumentSource], batch: int) -> Counter[str]:
        entered = Counter[str]()
        for start in range(0, len(sources), batch):
            result = self._register(sources[start : start + batch])
            entered.update(uri for _, uri in result.outcome.entered)
        return entered

    def _register(self, sources: Iterable[DocumentSource]) -> RegistrationResult:
        return self._provider.register_many(sources)

    def _clear(self, sources: Iterable[DocumentSource]) -> None:
        """Remove all documents, so that they count as new again."""
        self._provider.append([LogDraft(Operation.REMOVE, source.uri) for source in sources])
        self._provider.catch_up()


def _row(
    workload: str,
    rules: Rules,
    engine: str,
    times: Sequence[Cost],
    matches: np.ndarray,
    nbytes: int,
    stored: int,
    built: Cost,
) -> Row:
    cpu = max(statistics.median(spent.cpu for spent in times), 1e-9) / len(matches)
    wall = statistics.median(spent.wall for spent in times) / len(matches)
    return Row(
        workload,
        rules.size,
        engine,
        events_per_cpu_second=1 / cpu,
        build_seconds=built.cpu,
        bytes_per_subscription=nbytes / rules.size,
        matches_per_event=float(matches.mean()),
        seconds_per_event=cpu,
        events_per_second=1 / wall,
        stored_bytes_per_subscription=stored / rules.size,
    )


def update(bench: Bench, place: Place, resources: int) -> None:
    """Measure single updates of resources in a rule's results, by number of stored resources."""
    rules, many = Rules(Type.PATH, UPDATED_RULES), resources // 2
    bench.say(f"{NAME}: {place.name} stores {resources:,} resources")
    with place.empty() as store:
        provider = Provider(store)
        provider.load_schema(SCHEMA, "text/turtle")
        _load(provider, rules)
        for start in range(0, many, FILLED):
            provider.register_many(
                rules.document(number) for number in range(start, min(many, start + FILLED))
            )
        times = []
        for again in range(bench.runs + 1):
            chosen = range(min(UPDATES, many))
            documents = [rules.document(number, port=again + 1) for number in chosen]
            spent, touched = place.measure(lambda: sum(_touched(provider, each) for each in documents))  # noqa: B023
            assert touched == len(documents), "each update changes one result"
            times.append(spent)
        bench.keep(_update_row(stored_of(resources), rules, place.name, times[1:], len(documents)))


def _touched(provider: Provider, source: DocumentSource) -> int:
    return len(provider.register(source.uri, source.body, source.media_type).outcome.changed)


def _update_row(workload: str, rules: Rules, engine: str, times: Sequence[Cost], updates: int) -> Row:
    cpu, wall = (statistics.median(each) / updates for each in zip(*times, strict=True))
    return Row(
        workload,
        rules.size,
        engine,
        events_per_cpu_second=1 / cpu,
        build_seconds=None,
        bytes_per_subscription=None,
        matches_per_event=1.0,
        seconds_per_event=cpu,
        events_per_second=1 / wall,
    )


def evaluate_all_rules(bench: Bench, rules: Rules, scale: Scale) -> None:
    """Evaluate all rules after each batch, in SPARQL; stop when it takes too long."""
    for batch in _batches(rules, scale):
        workload = batches_of(rules, batch)
        note, row = bench.given_up(workload, EachRule.name), None
        if note is None:
            try:
                with at_most(10 * bench.budget.run, f"a batch of {batch:,}"):
                    row = _evaluate_all_rules(bench, rules, batch)
            except TooLong as error:
                note = bench.give_up(workload, EachRule.name, f"{error} at {rules.size:,} rules")
        if row is None:
            row = Row(
                workload, rules.size, EachRule.name, None, None, None, None, role="peer", note=note or ""
            )
        bench.keep(row)


def _evaluate_all_rules(bench: Bench, rules: Rules, batch: int) -> Row:
    peer, sources = EachRule(rules), rules.documents(batch)
    spent, entered = SQLite().measure(lambda: peer.register(sources))
    matches = np.array([entered.get(f"{source.uri}#host", 0) for source in sources], np.int64)
    bench.agree(batches_of(rules, batch), rules.size, EachRule.name, matches)
    cpu = max(spent.cpu, 1e-9) / batch
    return Row(
        batches_of(rules, batch),
        rules.size,
        EachRule.name,
        events_per_cpu_second=1 / cpu,
        build_seconds=None,
        bytes_per_subscription=None,
        matches_per_event=float(matches.mean()),
        seconds_per_event=cpu,
        events_per_second=batch / spent.wall,
        role="peer",
    )

"""python -m benchmarks [--full] [--only stock equalities ...] [--rules N ...] [--fresh] [--docs]"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from benchmarks import (
    churn,
    connectors,
    dataframes,
    documents,
    graphs,
    heart,
    latency,
    many,
    metadata,
    objects,
    objects_spark,
    paper004,
    pipeline,
    recovery,
    service,
    sink,
    stock,
    webhooks,
)
from benchmarks.goals import goals
from benchmarks.harness import Bench
from benchmarks.report import describe_machine, describe_run, write_docs
from benchmarks.rows import RESULTS, Row, load, merged, save, table
from benchmarks.scale import FULL, QUICK, Scale

PARTS: dict[str, Callable[[Bench, Scale], None]] = {
    "stock": stock.run,
    "equalities": partial(heart.run, heart.EQUALITIES),
    "intervals": partial(heart.run, heart.INTERVALS),
    "begen": many.begen,
    "ads": many.ads,
    "churn": churn.run,
    "latency": latency.run,
    "pipeline": pipeline.run,
    "dataframes": dataframes.run,
    "connectors": connectors.run,
    "paper004": paper004.run,
    "graphs": graphs.run,
    "metadata": metadata.run,
    "metadata-updates": metadata.updates,
    "objects": objects.run,
    "objects-on-spark": objects_spark.run,
    "documents": documents.stock,
    "joins": documents.joins,
    "joins-by-matches": documents.joins_by_matches,
    "anthology": documents.real,
    "service": service.run,
    "recovery": recovery.run,
    "webhooks": webhooks.run,
    "sink": sink.run,
}


def main() -> None:
    options = _arguments()
    bench = Bench((scale := _scale(options)).runs, partial(print, flush=True), scale.budget)
    command = "make bench-full" if options.full else "make bench"
    rows = measure(bench, scale, options.only or list(PARTS), command, options.fresh)
    measured = bench.finished()
    print(f"\n{table(measured)}\n\n{goals(measured)}\n\n{describe_machine()}\nrows: {RESULTS}")
    if options.docs:
        write_docs(rows)


def measure(
    bench: Bench, scale: Scale, parts: Sequence[str], command: str, fresh: bool, results: Path = RESULTS
) -> list[Row]:
    """Run some parts and save their rows together with those of earlier runs, unless `fresh` is set.

    Without the earlier rows, `--only X --docs` would remove the goals and rows of all other parts from the docs.
    """
    before = load(results) if results.exists() and not fresh else []
    rows = before
    for name in parts:
        bench.say(f"{name}:")
        PARTS[name](bench, scale)
        bench.stamp(describe_run(command))
        rows = merged(before, bench.rows)
        save(rows, results)  # after each part: a failure in the last one does not lose hours of work
    return rows


def _scale(options: argparse.Namespace) -> Scale:
    scale = FULL if options.full else QUICK
    if not options.rules:
        return scale
    shares = scale.metadata_shares if scale.metadata_varied in options.rules else ()
    return replace(scale, metadata_rules=tuple(options.rules), metadata_shares=shares)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Tidings' benchmark tables.")
    parser.add_argument("--full", action="store_true", help="full size: hours instead of minutes")
    parser.add_argument("--only", nargs="+", choices=PARTS, help="only these parts")
    parser.add_argument(
        "--rules", nargs="+", type=int, metavar="N", help="only metadata rule bases of these sizes"
    )
    parser.add_argument(
        "--fresh",
        action="store_true",
        help="discard the rows of earlier runs, including workloads that are not measured now",
    )
    parser.add_argument("--docs", action="store_true", help="write tables and figures to docs/")
    return parser.parse_args()


if __name__ == "__main__":
    main()

"""python -m benchmarks [--full] [--only paper004 stock pipeline] [--docs]"""

from __future__ import annotations

import argparse

from benchmarks import paper004, pipeline, stock
from benchmarks.harness import Bench
from benchmarks.report import goals, machine, write_docs
from benchmarks.rows import RESULTS, save, table
from benchmarks.scale import FULL, QUICK

PARTS = {"stock": stock.run, "pipeline": pipeline.run, "paper004": paper004.run}


def main() -> None:
    options = _arguments()
    scale = FULL if options.full else QUICK
    bench = Bench(scale.runs)
    for name in options.only or PARTS:
        print(f"{name}:")
        PARTS[name](bench, scale)
    rows = bench.finished()
    save(rows)
    print(f"\n{table(rows)}\n\n{goals(rows)}\n\n{machine()}\nrows: {RESULTS}")
    if options.docs:
        write_docs(rows, "make bench-full" if options.full else "make bench")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Tidings' benchmark tables.")
    parser.add_argument("--full", action="store_true", help="full size: an hour or so instead of minutes")
    parser.add_argument("--only", nargs="+", choices=PARTS, help="only these parts")
    parser.add_argument("--docs", action="store_true", help="write tables and figures into docs/")
    return parser.parse_args()


if __name__ == "__main__":
    main()

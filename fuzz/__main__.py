"""Fuzz the parsers: `python -m fuzz --seconds 3600`."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from fuzz import guided
from fuzz.registry import TARGETS
from fuzz.runner import Report, run_mutations
from fuzz.target import Target

BLIND = 0.3
"""Share of the time for blind mutations if Atheris is available."""


def main() -> int:
    options = arguments()
    if options.list:
        print(*TARGETS, sep="\n")
        return 0
    if options.run:
        (name,) = options.only
        TARGETS[name].run(options.run.read_bytes())
        return 0
    failed = run_each(
        options,
        lambda target, folder: run_mutations(
            target, folder, options.seed, options.blind_seconds, options.inputs
        ),
    )
    if options.inputs or not guided.is_available():
        return failed
    more = subprocess.run([sys.executable, "-m", "fuzz.guided", *sys.argv[1:]]).returncode
    return failed or more


def run_each(options: argparse.Namespace, run: Callable[[Target, Path], Report]) -> int:
    """Run the targets one after another; return 1 if any has findings."""
    findings = 0
    for name in options.only:
        folder = options.folder / name.replace("/", "-").replace(":", "-")
        folder.mkdir(parents=True, exist_ok=True)
        report = run(TARGETS[name], folder)
        findings += len(report.findings)
        _print_report(report)
    return 1 if findings else 0


def _print_report(report: Report) -> None:
    print(
        f"{report.target:40} {report.engine:9} {report.cpu:8.1f} CPU s {report.executions:11,} executions"
        f" {len(report.findings):3} findings",
        flush=True,
    )
    for path in report.findings:
        first = path.with_suffix(".txt").read_text(encoding="utf-8").splitlines()[0]
        print(f"    {first}\n    python -m fuzz --only {report.target} --run {path}", flush=True)


def arguments() -> argparse.Namespace:
    """Parse the command line, and compute the time per target."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description="Fuzz the parsers.")
    parser.add_argument("--seconds", type=float, default=600.0, help="CPU seconds for all targets together")
    parser.add_argument("--inputs", type=int, help="number of mutated inputs per target, instead of time")
    parser.add_argument("--seed", type=int, default=1, help="seed of the mutations")
    parser.add_argument("--only", nargs="+", choices=list(TARGETS), default=list(TARGETS), metavar="TARGET")
    parser.add_argument("--list", action="store_true", help="list the names of the targets")
    parser.add_argument("--run", type=Path, help="run one input of --only TARGET, without limits")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "tidings-fuzz")
    options = parser.parse_args()
    each = options.seconds / len(options.only)
    options.blind_seconds = each * (BLIND if guided.is_available() else 1)
    options.guided_seconds = each - options.blind_seconds
    return options


if __name__ == "__main__":
    sys.exit(main())

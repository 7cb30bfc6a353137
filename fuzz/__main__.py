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
"""The part of the time for blind mutations where Atheris does the rest."""


def main() -> int:
    given = arguments()
    if given.list:
        print(*TARGETS, sep="\n")
        return 0
    if given.run:
        (name,) = given.only
        TARGETS[name].run(given.run.read_bytes())
        return 0
    failed = run_each(
        given,
        lambda target, folder: run_mutations(target, folder, given.seed, given.blind_seconds, given.inputs),
    )
    if given.inputs or not guided.is_available():
        return failed
    more = subprocess.run([sys.executable, "-m", "fuzz.guided", *sys.argv[1:]]).returncode
    return failed or more


def run_each(given: argparse.Namespace, run: Callable[[Target, Path], Report]) -> int:
    """Run the targets one after the other; 1 if any of them found something."""
    found = 0
    for name in given.only:
        folder = given.folder / name.replace("/", "-").replace(":", "-")
        folder.mkdir(parents=True, exist_ok=True)
        report = run(TARGETS[name], folder)
        found += len(report.findings)
        _tell(report)
    return 1 if found else 0


def _tell(report: Report) -> None:
    print(
        f"{report.target:40} {report.engine:9} {report.cpu:8.1f} CPU s {report.executions:11,} executions"
        f" {len(report.findings):3} findings",
        flush=True,
    )
    for path in report.findings:
        first = path.with_suffix(".txt").read_text(encoding="utf-8").splitlines()[0]
        print(f"    {first}\n    python -m fuzz --only {report.target} --run {path}", flush=True)


def arguments() -> argparse.Namespace:
    """The arguments of the command line, with the time of each target."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description="Fuzz the parsers.")
    parser.add_argument("--seconds", type=float, default=600.0, help="of CPU time, for all targets together")
    parser.add_argument(
        "--inputs", type=int, help="a fixed number of mutated inputs for each, instead of time"
    )
    parser.add_argument("--seed", type=int, default=1, help="of the mutations")
    parser.add_argument("--only", nargs="+", choices=list(TARGETS), default=list(TARGETS), metavar="TARGET")
    parser.add_argument("--list", action="store_true", help="the names of the targets")
    parser.add_argument("--run", type=Path, help="run one input of --only TARGET, without limits")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "tidings-fuzz")
    given = parser.parse_args()
    each = given.seconds / len(given.only)
    given.blind_seconds = each * (BLIND if guided.is_available() else 1)
    given.guided_seconds = each - given.blind_seconds
    return given


if __name__ == "__main__":
    sys.exit(main())

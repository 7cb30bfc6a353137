"""Output of a benchmark run in the docs: tables, figures, machine."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path

from benchmarks import (
    connectors,
    dataframes,
    graph_decoding,
    metadata,
    objects_table,
    paper003,
    pipeline,
    recovery,
    service,
    sink,
)
from benchmarks.figures import BEGEN, PAPER, draw
from benchmarks.goals import goals
from benchmarks.objects_settings import NAME as OBJECTS
from benchmarks.rows import Row, markdown
from benchmarks.workloads import anthology, stock_documents

DOCS = Path(__file__).parent.parent / "docs"

SECTIONS: dict[str, Callable[[str], bool]] = {
    "stock": lambda workload: (
        workload.split(",")[0] == "stock"
        and workload != pipeline.JOB
        and not workload.startswith((dataframes.NAME, connectors.NAME))
    ),
    "equalities": lambda workload: workload.startswith("equalities"),
    "intervals": lambda workload: workload.startswith("intervals"),
    "begen": lambda workload: workload.startswith(BEGEN),
    "ads": lambda workload: workload == "ads",
    "documents": lambda workload: workload.startswith(stock_documents.NAME),
    "anthology": lambda workload: workload == anthology.NAME,
    "graphs": lambda workload: workload.split(",")[0] == "graphs",
    "decoding": lambda workload: workload.split(",")[0] == graph_decoding.NAME,
    "metadata": lambda workload: workload.split(",")[0] == metadata.NAME,
    "objects": lambda workload: workload.split(",")[0] == OBJECTS,
    "pipeline": lambda workload: workload == pipeline.JOB,
    "dataframes": lambda workload: workload.startswith(dataframes.NAME),
    "connectors": lambda workload: workload == connectors.NAME,
    "recovery": lambda workload: workload.split(",")[0] == recovery.NAME,
    "sink": lambda workload: workload.split(",")[0] == sink.NAME,
    "churn": lambda workload: workload.startswith("churn"),
    "latency": lambda workload: workload.startswith("latency"),
    "service": lambda workload: workload.split(",")[0] == service.NAME,
    "paper": lambda workload: workload == f"{PAPER}0.5",
    "shares": lambda workload: workload.startswith(PAPER) and workload != f"{PAPER}0.5",
}
"""Tables of the performance page, and the workloads in each."""


def describe_machine() -> str:
    """Return the processor, its cores, the memory and the Python version."""
    info = Path("/proc/cpuinfo")
    named = re.search(r"model name\s*:\s*(.*)", info.read_text()) if info.exists() else None
    processor = named.group(1) if named else platform.processor()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    python = platform.python_version()
    return f"{processor}, {os.cpu_count()} cores, {memory:.0f} GB; Python {python}, {platform.system()}"


def describe_load() -> str:
    """Return the load of the machine. It affects CPU times little, wall-clock times and caches more."""
    mean, cores = os.getloadavg()[2], os.cpu_count() or 1
    others = (
        "other work was running, so compare orders of magnitude only"
        if mean > cores
        else "little else was running"
    )
    return f"The mean load over the last fifteen minutes was {mean:.1f} on {cores} cores: {others}."


def describe_run(command: str) -> str:
    """Describe how rows were measured: command, commit, date, machine, load."""
    return f"Taken with `{command}` of {_commit()} on {date.today()}: {describe_machine()}. {describe_load()}"


def _commit() -> str:
    """Return the current commit, marked if the tree differs from it, apart from files that a run writes."""
    commit = _git("rev-parse", "--short=7", "HEAD")
    changed = _git("status", "--porcelain", "--", ".", ":!benchmarks/results", ":!docs")
    return f"{commit}{'-dirty' if changed else ''}" if commit else "a tree without commits"


def _git(*words: str) -> str:
    result = subprocess.run(
        ["git", "-C", str(DOCS.parent), *words], capture_output=True, text=True, check=False
    )
    return result.stdout.strip()


def _section(rows: Sequence[Row]) -> str:
    """Format a table, preceded by how its rows were measured."""
    return "\n".join([*dict.fromkeys(row.taken for row in rows), "", markdown(rows)])


def write_docs(rows: Sequence[Row], docs: Path = DOCS) -> None:
    """Write the tables between their markers and draw the figures; tables without new rows stay as they are."""
    page = docs / "performance.md"
    for name, belongs in SECTIONS.items():
        section_rows = [row for row in rows if belongs(row.workload)]
        if section_rows:
            _replace_table(page, name, _section(section_rows))
    _replace_table(page, "goals", goals(rows))
    for name, seconds in (("paper003", paper003.table(rows)), ("paper000", objects_table.table(rows))):
        if seconds:
            _replace_table(page, name, seconds)
    own = [row for row in rows if SECTIONS["paper"](row.workload)]
    if own:
        smallest = {row.subscriptions for row in own if row.role == "peer"}
        compared = [row for row in own if row.subscriptions in smallest]
        _replace_table(docs / "algorithms.md", "comparison", _section(compared))
    draw(rows, docs / "img")


def _replace_table(path: Path, name: str, text: str) -> None:
    """Replace the text between two markers of a page."""
    start, end = f"<!-- bench:{name} -->", f"<!-- /bench:{name} -->"
    page = path.read_text()
    if start not in page or end not in page:
        raise ValueError(f"{path} has no place for the table {name!r}: {start} ... {end}")
    before, _, rest = page.partition(start)
    path.write_text(f"{before}{start}\n{text}\n{end}{rest.partition(end)[2]}")

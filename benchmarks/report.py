"""What a run of the benchmarks leaves behind in the docs: the tables, the figures, the machine."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path

from benchmarks import graph_decoding, metadata, objects_table, paper003, pipeline, service
from benchmarks.figures import BEGEN, PAPER, draw
from benchmarks.goals import goals
from benchmarks.objects_settings import NAME as OBJECTS
from benchmarks.rows import Row, markdown
from benchmarks.workloads import anthology, stock_documents

DOCS = Path(__file__).parent.parent / "docs"

SECTIONS: dict[str, Callable[[str], bool]] = {
    "stock": lambda workload: workload.split(",")[0] == "stock" and workload != pipeline.JOB,
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
    "churn": lambda workload: workload.startswith("churn"),
    "latency": lambda workload: workload.startswith("latency"),
    "service": lambda workload: workload.split(",")[0] == service.NAME,
    "paper": lambda workload: workload == f"{PAPER}0.5",
    "shares": lambda workload: workload.startswith(PAPER) and workload != f"{PAPER}0.5",
}
"""Tables of the page on performance, and the workloads in each."""


def machine() -> str:
    """The processor, its cores, the memory and the Python that ran this."""
    info = Path("/proc/cpuinfo")
    named = re.search(r"model name\s*:\s*(.*)", info.read_text()) if info.exists() else None
    processor = named.group(1) if named else platform.processor()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    python = platform.python_version()
    return f"{processor}, {os.cpu_count()} cores, {memory:.0f} GB; Python {python}, {platform.system()}"


def busy() -> str:
    """What else the machine did. CPU times bear some of it; wall-clock times and caches do not."""
    mean, cores = os.getloadavg()[2], os.cpu_count() or 1
    others = (
        "it had other work to do, so read the orders of magnitude" if mean > cores else "it did little else"
    )
    return f"The mean load over the last fifteen minutes was {mean:.1f} on {cores} cores: {others}."


def taken(command: str) -> str:
    """By which command rows were measured, of which code, on which day, on what."""
    return f"Taken with `{command}` of {_commit()} on {date.today()}: {machine()}. {busy()}"


def _commit() -> str:
    """The commit that is checked out, and whether the tree differs from it; what a run itself writes does not count."""
    commit = _git("rev-parse", "--short=7", "HEAD")
    changed = _git("status", "--porcelain", "--", ".", ":!benchmarks/results", ":!docs")
    return f"{commit}{'-dirty' if changed else ''}" if commit else "a tree without commits"


def _git(*words: str) -> str:
    said = subprocess.run(
        ["git", "-C", str(DOCS.parent), *words], capture_output=True, text=True, check=False
    )
    return said.stdout.strip()


def _section(rows: Sequence[Row]) -> str:
    """A table, and how its rows were taken."""
    return "\n".join([*dict.fromkeys(row.taken for row in rows), "", markdown(rows)])


def write_docs(rows: Sequence[Row], docs: Path = DOCS) -> None:
    """Put the tables between their markers and draw the figures; what was not measured stays as it is."""
    page = docs / "performance.md"
    for name, belongs in SECTIONS.items():
        mine = [row for row in rows if belongs(row.workload)]
        if mine:
            _between(page, name, _section(mine))
    _between(page, "goals", goals(rows))
    for name, seconds in (("paper003", paper003.table(rows)), ("paper000", objects_table.table(rows))):
        if seconds:
            _between(page, name, seconds)
    own = [row for row in rows if SECTIONS["paper"](row.workload)]
    if own:
        smallest = {row.subscriptions for row in own if row.role == "peer"}
        compared = [row for row in own if row.subscriptions in smallest]
        _between(docs / "algorithms.md", "comparison", _section(compared))
    draw(rows, docs / "img")


def _between(path: Path, name: str, text: str) -> None:
    """Replace what stands between two markers of a page."""
    start, end = f"<!-- bench:{name} -->", f"<!-- /bench:{name} -->"
    page = path.read_text()
    if start not in page or end not in page:
        raise ValueError(f"{path} has no place for the table {name!r}: {start} ... {end}")
    before, _, rest = page.partition(start)
    path.write_text(f"{before}{start}\n{text}\n{end}{rest.partition(end)[2]}")

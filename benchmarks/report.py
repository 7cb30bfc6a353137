"""What a run of the benchmarks leaves behind: the tables in the docs, the paper's figures, the machine."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from benchmarks import pipeline, stock
from benchmarks.rows import Row, markdown

DOCS = Path(__file__).parent.parent / "docs"
PERFORMANCE = DOCS / "performance.md"
ALGORITHMS = DOCS / "algorithms.md"
IMAGES = DOCS / "img"
PAPER = "paper 004, p = "


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


def write_docs(rows: Sequence[Row], command: str) -> None:
    """Put the tables between their markers in the docs, and draw the figures."""
    taken = f"Taken with `{command}` on: {machine()}. {busy()}\n\n"
    own = [row for row in rows if row.workload == f"{PAPER}0.5"]
    others = [row for row in rows if row.workload.startswith(PAPER) and row not in own]
    rest = [row for row in rows if not row.workload.startswith(PAPER)]
    _between(PERFORMANCE, "stock", taken + markdown(rest))
    _between(PERFORMANCE, "goals", taken + goals(rows))
    _between(PERFORMANCE, "paper", taken + markdown(own))
    _between(PERFORMANCE, "shares", taken + markdown(others))
    smallest = sorted({row.subscriptions for row in own if row.role == "peer"})
    _between(ALGORITHMS, "comparison", taken + markdown(r for r in own if r.subscriptions in smallest))
    draw(rows)


def _between(path: Path, name: str, text: str) -> None:
    """Replace what stands between two markers of a page."""
    start, end = f"<!-- bench:{name} -->", f"<!-- /bench:{name} -->"
    page = path.read_text()
    if start not in page or end not in page:
        raise ValueError(f"{path} has no place for the table {name!r}: {start} ... {end}")
    before, _, rest = page.partition(start)
    path.write_text(f"{before}{start}\n{text}\n{end}{rest.partition(end)[2]}")


def goals(rows: Sequence[Row]) -> str:
    """What was wanted and what was measured, line by line."""
    big = max((row.subscriptions for row in rows if row.workload == "stock"), default=0)
    index = _one(rows, "stock", "index", big)
    text = _one(rows, "stock", "index, from text", big)
    job = next((row for row in rows if row.workload == pipeline.JOB and row.events_per_second), None)
    lines = ["| | wanted | measured |", "|---|---:|---:|"]
    if index:
        lines.append(f"| matching, events a CPU second | 600,000 | {index.events_per_cpu_second:,.0f} |")
        size = (index.bytes_per_subscription or 0) * big / 1e6
        lines.append(f"| memory of {big:,} subscriptions | 150 MB | {size:,.0f} MB |")
        for name in (stock.FEWER_SYMBOLS, stock.WIDER_RANGES):
            tenth = _one(rows, name, "index", big // stock.TEN)
            if tenth:
                ratio = index.seconds_per_event / tenth.seconds_per_event
                matches = f"{tenth.matches_per_event:.0f} and {index.matches_per_event:.0f} matches an event"
                lines.append(f"| ten times the subscriptions ({name}; {matches}) | 1.5 x | {ratio:.2f} x |")
    if text and text.build_seconds:
        lines.append(
            f"| subscriptions loaded a second, from text | 100,000 | {big / text.build_seconds:,.0f} |"
        )
    if job and job.events_per_second:
        lines.append(f"| Spark job on two cores, events a second | 220,000 | {job.events_per_second:,.0f} |")
    return "\n".join(lines)


def _one(rows: Iterable[Row], workload: str, engine: str, size: int) -> Row | None:
    wanted = (workload, engine, size)
    return next((row for row in rows if (row.workload, row.engine, row.subscriptions) == wanted), None)


def draw(rows: Sequence[Row]) -> None:
    """The paper's figures 9, 10 and 11 with our times."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    shares = [row for row in rows if row.workload.startswith(PAPER)]
    half = [row for row in shares if _share(row) == 0.5]
    ones = [row for row in shares if _share(row) == 1.0]
    by_size: Callable[[Row], float] = lambda row: row.subscriptions  # noqa: E731
    _plot("figure-9", half, by_size, "subscriptions (p = 0.5)")
    _plot("figure-11", ones, by_size, "subscriptions (equalities only)")
    sizes = {row.subscriptions for row in shares if _share(row) == 0.0}
    _plot("figure-10", [r for r in shares if r.subscriptions in sizes], _share, "p, the share of equalities")


def _share(row: Row) -> float:
    return float(row.workload.removeprefix(PAPER))


def _plot(name: str, rows: Sequence[Row], x: Callable[[Row], float], label: str) -> None:
    figure = Figure(figsize=(8, 4.2), layout="constrained")
    axes = figure.subplots()
    by_share = x is _share
    lines: dict[str, list[Row]] = {}
    for row in rows:
        title = f"{row.engine} ({row.subscriptions:,})" if by_share else row.engine
        lines.setdefault(title, []).append(row)
    for title, points in lines.items():
        points.sort(key=x)
        axes.plot(
            [x(p) for p in points], [p.seconds_per_event * 1e3 for p in points], marker="o", label=title
        )
    axes.set(xlabel=label, ylabel="milliseconds an event (CPU)", yscale="log")
    axes.set_xscale("linear" if by_share else "log")
    axes.grid(alpha=0.3)
    figure.legend(loc="outside right upper", fontsize=8)
    figure.savefig(IMAGES / f"{name}.svg", metadata={"Date": None})

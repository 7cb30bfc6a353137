"""`doctor`: checks of this machine, with a fix for each problem."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from tidings.cli import output
from tidings.cli.options import Home, MasterOption, open_spark
from tidings.cli.output import Output
from tidings.errors import InputError, SetupError, TidingsError


@dataclass(frozen=True, slots=True)
class CheckTarget:
    """The home folder and the Spark master that are checked."""

    at: Home
    master: str | None


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check, and the remedy if it failed."""

    check: str
    ok: bool
    found: str
    todo: str = ""


def doctor(
    home: Home,
    out: Output,
    only: Annotated[
        str | None, typer.Option(metavar="CHECK", help="Only this check, for example kernels.")
    ] = None,
    master: MasterOption = None,
) -> None:
    """Check Python, Java, Spark, the compiled kernels, the home folder and the store, and print how to fix them.

    Examples:
      tidings doctor
      tidings doctor --only kernels

    It takes about twenty seconds, most of them for the start of Spark. The exit code is 4 if a check fails.
    """
    if only is not None and only not in dict(CHECKS):
        raise InputError("no such check", received=repr(only), accepted=", ".join(dict(CHECKS)))
    failed = False
    for name, check in CHECKS:
        if only not in (None, name):
            continue
        with output.show_spinner(f"{name} ..."):
            finding = run_check(name, check, CheckTarget(home, master))
        failed = failed or not finding.ok
        mark = ("ok   ", "green") if finding.ok else ("wrong", "bold red")
        out.print_record(asdict(finding), mark, (f"{finding.check:<8}", "bold"), finding.found)
        if finding.todo and not out.as_json:
            output.print_line("     ", " " * 8, (finding.todo, "yellow"))
    if failed:
        raise typer.Exit(SetupError.exit_code)


def run_check(name: str, check: Callable[[CheckTarget], str], target: CheckTarget) -> Finding:
    """Run a check; any exception is its result."""
    try:
        return Finding(name, True, check(target))
    except TidingsError as problem:
        return Finding(name, False, problem.headline(), problem.hint or "")
    except Exception as problem:  # noqa: BLE001  the other checks run even if this one is broken
        first = (str(problem).strip() or "no message").splitlines()[0]
        return Finding(name, False, f"{type(problem).__name__}: {first}", "run `make setup` again")


def check_python(_: CheckTarget) -> str:
    if sys.version_info < (3, 11):  # noqa: UP036  an editable install survives a change of interpreter
        raise SetupError(
            "Python is too old", received=platform.python_version(), hint="make setup PYTHON=python3.12"
        )
    return f"{platform.python_version()} ({sys.executable})"


def check_java(target: CheckTarget) -> str:
    from tidings.spark.session import check_java

    if _is_remote(target.master):
        return "not needed here: Spark runs elsewhere"
    return f"version {check_java()}"


def _is_remote(master: str | None) -> bool:
    return describe_spark_target(master).startswith("sc://")


def describe_spark_target(master: str | None) -> str:
    """Return the Spark that `open_session` would use: a master outweighs the environment."""
    return master or os.environ.get("SPARK_REMOTE") or "local[*]"


def check_spark(target: CheckTarget) -> str:
    """Start a session, and run a Python worker in it."""
    place = describe_spark_target(target.master)
    with open_spark(target.master) as session:
        count = session.range(3).mapInArrow(_pass_through, "id long").count()
        return f"{session.version}, {place}: {count} rows through a Python worker"


def _pass_through(batches: Iterable[object]) -> Iterator[object]:
    yield from batches


def check_kernels(_: CheckTarget) -> str:
    """Compile the code that is otherwise compiled on first use, store it on disk, and try it."""
    from tidings.service.precompilation import precompile

    if (matches := precompile()) == 0:
        raise SetupError("subscriptions that must match do not", hint="run `make test` and report the result")
    return f"compiled; {matches} matches of a few auctions"


def check_home(target: CheckTarget) -> str:
    """Check that the folder exists or can be created, and is writable."""
    folder = target.at.home.absolute()
    existing = next(place for place in (folder, *folder.parents) if place.exists())
    if not existing.is_dir():
        raise SetupError(f"{existing} is not a folder", hint="choose another with --home or TIDINGS_HOME")
    _check_writable(existing)
    return (
        str(folder) if existing == folder else f"{folder} (does not exist yet; the first command creates it)"
    )


def _check_writable(folder: Path) -> None:
    """Create and delete something there: permissions do not show that /proc accepts no files."""
    try:
        with TemporaryDirectory(prefix=".tidings-doctor-", dir=folder):
            pass
    except OSError as problem:
        raise SetupError(
            f"{folder} cannot be written to",
            received=problem.strerror,
            hint="choose another with --home or TIDINGS_HOME",
        ) from problem


def check_store(target: CheckTarget) -> str:
    from tidings.store.database import sqlite_url
    from tidings.store.store import open_store

    if not target.at.has_store():
        return "none yet; the first command creates one in the home folder"
    with open_store(target.at.store or sqlite_url(target.at.home / "store.db")) as opened:
        return f"journal at {opened.journal.head()}"


def check_class_archive(_: CheckTarget) -> str:
    """Archive the classes of Spark, which then starts in half the time."""
    from tidings.spark.class_archive import make_archive
    from tidings.spark.session import check_java, find_java

    check_java()
    try:
        file = make_archive(find_java())
    except (SetupError, OSError) as problem:  # the folder is not ours, or Java cannot archive
        return f"not archived ({problem}): Spark starts more slowly"
    return f"archived, {file.stat().st_size / 1e6:.0f} MB: Spark starts in half the time"


CHECKS: tuple[tuple[str, Callable[[CheckTarget], str]], ...] = (
    ("python", check_python),
    ("home", check_home),
    ("store", check_store),
    ("kernels", check_kernels),
    ("java", check_java),
    ("classes", check_class_archive),
    ("spark", check_spark),
)
"""The fast checks first."""

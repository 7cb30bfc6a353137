"""`doctor`: what this machine lacks, and what to do about it."""

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
from tidings.cli.options import (
    DEFAULT_HOME,
    HomeOption,
    JsonOption,
    MasterOption,
    StoreOption,
    close_spark,
    open_spark,
)
from tidings.errors import InputError, SetupError, TidingsError


@dataclass(frozen=True, slots=True)
class CheckTarget:
    """What is looked at."""

    home: Path
    store: str | None
    master: str | None


@dataclass(frozen=True, slots=True)
class Finding:
    """One check: whether all is well, what was found, and what to do if not."""

    check: str
    ok: bool
    found: str
    todo: str = ""


def doctor(
    only: Annotated[
        str | None, typer.Option(metavar="CHECK", help="Only this check, such as kernels.")
    ] = None,
    home: HomeOption = DEFAULT_HOME,
    store: StoreOption = None,
    master: MasterOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check Python, Java, Spark, what is compiled ahead, the home folder and the store, and say what to do.

    Takes about twenty seconds, most of them for starting Spark. Exit code 4 if something is wrong.
    """
    if only is not None and only not in dict(CHECKS):
        raise InputError("no such check", received=repr(only), accepted=", ".join(dict(CHECKS)))
    well = True
    for name, check in CHECKS:
        if only not in (None, name):
            continue
        with output.show_spinner(f"{name} ..."):
            finding = run_checks(name, check, CheckTarget(home, store, master))
        well = well and finding.ok
        if as_json:
            output.print_json(asdict(finding))
        else:
            _show(finding)
    if not well:
        raise typer.Exit(SetupError.exit_code)


def run_checks(name: str, check: Callable[[CheckTarget], str], patient: CheckTarget) -> Finding:
    try:
        return Finding(name, True, check(patient))
    except TidingsError as problem:
        return Finding(name, False, problem.headline(), problem.hint or "")
    except Exception as problem:  # noqa: BLE001  whatever is broken here, the other checks are still wanted
        first = (str(problem).strip() or "no message").splitlines()[0]
        return Finding(name, False, f"{type(problem).__name__}: {first}", "run `make setup` again")


def _show(finding: Finding) -> None:
    mark = ("ok   ", "green") if finding.ok else ("wrong", "bold red")
    output.print_line(mark, (f"{finding.check:<8}", "bold"), finding.found)
    if finding.todo:
        output.print_line("     ", " " * 8, (finding.todo, "yellow"))


def check_python(_: CheckTarget) -> str:
    if sys.version_info < (3, 11):  # noqa: UP036  an editable install survives a change of interpreter
        raise SetupError(
            "Python is too old", received=platform.python_version(), hint="make setup PYTHON=python3.12"
        )
    return f"{platform.python_version()} ({sys.executable})"


def check_java(patient: CheckTarget) -> str:
    from tidings.spark.session import check_java

    if _is_remote(patient.master):
        return "not needed here: Spark runs elsewhere"
    return f"version {check_java()}"


def _is_remote(master: str | None) -> bool:
    return describe_spark_target(master).startswith("sc://")


def describe_spark_target(master: str | None) -> str:
    """As `open_session` decides it: a master outweighs the environment."""
    return master or os.environ.get("SPARK_REMOTE") or "local[*]"


def check_spark(patient: CheckTarget) -> str:
    """A session starts, and a Python worker of it answers."""
    place = describe_spark_target(patient.master)
    session = open_spark(patient.master)
    try:
        answered = session.range(3).mapInArrow(_same, "id long").count()
        return f"{session.version}, {place}: {answered} rows through a Python worker"
    finally:
        close_spark(session)


def _same(batches: Iterable[object]) -> Iterator[object]:
    yield from batches


def check_kernels(_: CheckTarget) -> str:
    """Everything that is compiled on first use works, and is on disk from now on."""
    from tidings.service.precompilation import precompile

    if (matches := precompile()) == 0:
        raise SetupError("subscriptions that must match do not", hint="run `make test` and tell us")
    return f"compiled; {matches} matches of a few auctions"


def check_home(patient: CheckTarget) -> str:
    """The folder is there or can be made, and can be written to."""
    folder = patient.home.absolute()
    existing = next(place for place in (folder, *folder.parents) if place.exists())
    if not existing.is_dir():
        raise SetupError(f"{existing} is no folder", hint="choose another with --home or TIDINGS_HOME")
    _check_writable(existing)
    return str(folder) if existing == folder else f"{folder} (not there yet; the first command makes it)"


def _check_writable(folder: Path) -> None:
    """Makes something there and removes it: permissions say nothing of file systems that take no files (/proc)."""
    try:
        with TemporaryDirectory(prefix=".tidings-doctor-", dir=folder):
            pass
    except OSError as problem:
        raise SetupError(
            f"{folder} cannot be written to",
            received=problem.strerror,
            hint="choose another with --home or TIDINGS_HOME",
        ) from problem


def check_store(patient: CheckTarget) -> str:
    from tidings.store.database import sqlite_url
    from tidings.store.store import open_store

    if patient.store is None and not (patient.home / "store.db").exists():
        return "none yet; the first command makes one in the home folder"
    with open_store(patient.store or sqlite_url(patient.home / "store.db")) as opened:
        return f"journal at {opened.journal.head()}"


def check_class_archive(_: CheckTarget) -> str:
    """Spark's classes are archived from now on: it starts in half the time."""
    from tidings.spark.class_archive import make_archive
    from tidings.spark.session import check_java, find_java

    check_java()
    try:
        file = make_archive(find_java())
    except (SetupError, OSError) as problem:  # a folder of somebody else's, a Java that cannot do it
        return f"not archived ({problem}): Spark starts, only slower"
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
"""The quick ones first."""

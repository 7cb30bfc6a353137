"""`provider log`, `catch-up` and `trim`; `provider snapshot` and `restore`: the log of metadata, and what it led to."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from tidings.cli import output
from tidings.cli.options import (
    DEFAULT_HOME,
    HomeOption,
    JsonOption,
    StoreOption,
    check_storable,
    open_provider,
)
from tidings.core.text import plural
from tidings.errors import InputError

PAGE = 100


def log(
    after: Annotated[
        int | None,
        typer.Option(
            min=0, callback=check_storable, metavar="N", help="Only what stands behind N.", show_default=False
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option(min=1, callback=check_storable, metavar="N", help="At most N entries.")
    ] = PAGE,
    home: HomeOption = DEFAULT_HOME,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the log: what was registered and removed, in order, and how far it is applied.

    Providers that apply the same log have the same metadata. Rules are not in it.

    [dim]Examples[/]
      tidings provider log
      tidings provider log --after 41 --json
    """
    with open_provider(home, store) as provider:
        start = provider.log.first() - 1 if after is None else after
        entries, position, head = provider.log.read(start, limit), provider.position, provider.log.head()
    for each in entries:
        if as_json:
            fields = {"media_type": each.media_type, "bytes": len(each.body)}
            output.print_json({"position": each.position, "what": each.what.value, "uri": each.uri, **fields})
        else:
            size = plural(len(each.body), "byte") if each.body else ""
            output.print_line((f"@{each.position}", "bold cyan"), each.what.value, each.uri, (size, "dim"))
    if not as_json:
        output.print_note(f"applied up to {position} of {head}")


def catch_up(
    batch: Annotated[
        int | None,
        typer.Option(
            min=1,
            callback=check_storable,
            envvar="TIDINGS_METADATA_BATCH",
            metavar="N",
            help="So many entries in one transaction; 1,000 when nothing is said.",
            show_default=False,
        ),
    ] = None,
    home: HomeOption = DEFAULT_HOME,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Apply what stands in the log and is not applied yet.

    What enters the results of rules, changes inside them and leaves is told in the same transaction. Large batches are
    faster; what comes and goes inside of one is not told.

    [dim]Example[/]
      tidings provider catch-up --batch 100
    """
    with open_provider(home, store) as provider:
        before = provider.position
        batches = len(provider.catch_up(batch))
        applied, position = provider.position - before, provider.position
    if as_json:
        output.print_json({"position": position, "applied": applied, "batches": batches})
    else:
        output.print_line(f"{plural(applied, 'entry')} applied", (f"position {position}", "dim"))


def trim(
    keep: Annotated[
        int, typer.Option(min=0, callback=check_storable, metavar="N", help="How many of the last ones stay.")
    ],
    home: HomeOption = DEFAULT_HOME,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Forget entries of the log that were applied, except for the last ones.

    The metadata stays. A provider that is further behind begins with a snapshot.

    [dim]Example[/]
      tidings provider trim --keep 100000
    """
    with open_provider(home, store) as provider:
        count = provider.log.trim(provider.log.head() - keep)
        first = provider.log.first()
    if as_json:
        output.print_json({"trimmed": count, "first": first})
    else:
        output.print_line(f"{plural(count, 'entry')} forgotten", (f"the log begins at {first}", "dim"))


def snapshot(home: HomeOption = DEFAULT_HOME, store: StoreOption = None) -> None:
    """Write all metadata as of one moment to standard output: a line for the schema, then one for each document.

    [dim]Example[/]
      tidings provider snapshot > metadata.jsonl
    """
    with open_provider(home, store) as provider:
        for line in provider.snapshot():
            sys.stdout.write(json.dumps(line) + "\n")


def restore(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="What [cyan]tidings provider snapshot[/] wrote.", show_default=False
        ),
    ],
    home: HomeOption = DEFAULT_HOME,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make the metadata equal to that of a snapshot, in one transaction.

    For a provider that is empty, or behind the snapshot. Its rules stay, and what that does to their results is told.

    [dim]Example[/]
      tidings provider restore metadata.jsonl --home second
    """
    with open_provider(home, store) as provider:
        position = provider.restore(_lines(file))
        documents = len(provider.documents())
    if as_json:
        output.print_json({"position": position, "documents": documents})
    else:
        output.print_line(plural(documents, "document"), (f"position {position}", "dim"))


def _lines(file: Path) -> Iterator[dict[str, Any]]:
    if not file.is_file():
        raise InputError(f"no file '{file}'")
    with file.open("rb") as opened:
        for number, line in enumerate(opened, start=1):
            yield _line(line, f"{file}, line {number}")


def _line(line: bytes, where: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as problem:
        accepted = "what tidings provider snapshot writes"
        raise InputError(f"this is no JSON: {problem}", where=where, accepted=accepted) from problem
    if not isinstance(found, dict):
        raise InputError("this is no line of a snapshot", where=where, accepted="an object")
    return found

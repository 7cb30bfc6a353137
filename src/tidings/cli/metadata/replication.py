"""The metadata log of a provider: `provider log`, `catch-up`, `trim`, `snapshot`, `restore`; and providers that share
it: `follow`, `lead`, `status`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidings.cli import output
from tidings.cli.command import stop_on_signals
from tidings.cli.options import Home, check_storable
from tidings.cli.output import Cell, Output, exit_if_rejects
from tidings.core.text import plural
from tidings.errors import InputError

if TYPE_CHECKING:
    from tidings.metadata.log import LogEntry
    from tidings.store.store import Store


def log(
    home: Home,
    out: Output,
    after: Annotated[
        int | None,
        typer.Option(min=0, callback=check_storable, metavar="N", help="Only entries after position N."),
    ] = None,
    limit: Annotated[
        int, typer.Option(min=1, callback=check_storable, metavar="N", help="At most N entries.")
    ] = 100,
) -> None:
    """Print the log: registrations and removals in order, and up to which position they are applied.

    Examples:
      tidings provider log
      tidings provider log --after 41 --json

    Providers that apply the same log have the same metadata. Rules are not part of it.
    """
    with home.open_provider() as provider:
        start = provider.log.first() - 1 if after is None else after
        entries, position, head = provider.log.read(start, limit), provider.position, provider.log.head()
    for entry in entries:
        out.print_record(
            {"position": entry.position, "what": entry.what.value, "uri": entry.uri}
            | {"media_type": entry.media_type, "bytes": len(entry.body)},
            *_list_entry_cells(entry),
        )
    out.print_note(f"applied up to {position} of {head}")


def _list_entry_cells(entry: LogEntry) -> tuple[Cell, ...]:
    size = plural(len(entry.body), "byte") if entry.body else ""
    return (f"@{entry.position}", "bold cyan"), entry.what.value, entry.uri, (size, "dim")


def catch_up(
    home: Home,
    out: Output,
    batch: Annotated[
        int | None,
        typer.Option(
            min=1,
            callback=check_storable,
            envvar="TIDINGS_METADATA_BATCH",
            metavar="N",
            help="The number of entries per transaction; 1,000 by default.",
        ),
    ] = None,
) -> None:
    """Apply the entries of the log that are not applied yet.

    Example:
      tidings provider catch-up --batch 100

    Notifications about changes in the results of rules are written in the same transaction. Large batches are faster;
    a resource that enters and leaves within one batch causes no notification.
    """
    with home.open_provider() as provider:
        position_before = provider.position
        batches = len(provider.catch_up(batch))
        applied, position = provider.position - position_before, provider.position
    record = {"position": position, "applied": applied, "batches": batches}
    out.print_record(record, f"{plural(applied, 'entry')} applied", (f"position {position}", "dim"))


def trim(
    home: Home,
    out: Output,
    keep: Annotated[
        int,
        typer.Option(min=0, callback=check_storable, metavar="N", help="How many of the last entries stay."),
    ],
) -> None:
    """Delete applied entries of the log, except the last ones. The metadata stays.

    Example:
      tidings provider trim --keep 100000

    A follower that needs deleted entries starts with a snapshot.
    """
    with home.open_provider() as provider:
        count = provider.log.trim(provider.log.head() - keep)
        first = provider.log.first()
    cells = f"{plural(count, 'entry')} deleted", (f"the log begins at {first}", "dim")
    out.print_record({"trimmed": count, "first": first}, *cells)


def snapshot(home: Home) -> None:
    """Write a snapshot of all metadata to standard output: one line for the schema, then one per document.

    Example:
      tidings provider snapshot > metadata.jsonl
    """
    with home.open_provider() as provider:
        for line in provider.snapshot():
            sys.stdout.write(json.dumps(line) + "\n")


def restore(
    home: Home,
    out: Output,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The output of `tidings provider snapshot`.")],
) -> None:
    """Replace the metadata with a snapshot, in one transaction.

    Example:
      tidings provider restore metadata.jsonl --home second

    The provider must be empty or behind the snapshot. Its rules stay, and changes of their results are notified.
    """
    with home.open_provider() as provider:
        position = provider.restore(_read_snapshot(file))
        documents = len(provider.documents())
    record = {"position": position, "documents": documents}
    out.print_record(record, plural(documents, "document"), (f"position {position}", "dim"))


def _read_snapshot(file: Path) -> Iterator[dict[str, Any]]:
    if not file.is_file():
        raise InputError(f"no file '{file}'")
    with file.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            yield _parse_snapshot_line(line, f"{file}, line {number}")


def _parse_snapshot_line(line: bytes, where: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as problem:
        accepted = "the output of tidings provider snapshot"
        raise InputError(f"this is not JSON: {problem}", where=where, accepted=accepted) from problem
    if not isinstance(record, dict):
        raise InputError("this is not a line of a snapshot", where=where, accepted="an object")
    return record


# Providers that follow another one, or share a log.


FollowOption = Annotated[
    str | None,
    typer.Option(
        "--follow",
        envvar="TIDINGS_FOLLOW",
        metavar="URL",
        help="Follow the provider at this address: replicate its metadata, and forward registrations to it.",
    ),
]
LogOption = Annotated[
    str | None,
    typer.Option(
        "--metadata-log",
        envvar="TIDINGS_METADATA_LOG",
        metavar="URL",
        help="A store or a Kafka topic that several providers share as their log; each accepts registrations.",
    ),
]


def follow(
    home: Home,
    out: Output,
    url: Annotated[
        str | None,
        typer.Argument(metavar="URL", help="The provider to follow; by default, the previous one."),
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Apply the present entries, and end; otherwise until Ctrl-C.")
    ] = False,
    metadata_log: LogOption = None,
) -> None:
    """Follow another provider: replicate its metadata by applying its log in order.

    Examples:
      tidings provider follow http://leader.example.org:8080
      tidings provider follow http://leader.example.org:8080 --once

    Missed entries are caught up, and a new provider starts with a snapshot. From now on, documents are registered with
    the leader: `tidings serve` follows it as well and forwards registrations. Rules stay local to each provider.
    """
    from tidings.service.workers import create_follow_worker

    with home.open() as tidings:
        if once:
            _catch_up_with_leader(tidings.store, url, metadata_log, out)
            return
        _check_acyclic(tidings.store, url)
        worker = create_follow_worker(tidings.store, url, metadata_log)
        if worker is None:
            raise _no_leader_error()
        with worker, stop_on_signals() as stop:
            out.print_note(f"following {worker.log.name}; Ctrl-C stops it")
            stop.wait()
    stop.exit_if_interrupted()


def _check_acyclic(store: Store, url: str | None) -> None:
    """Refuse a cycle of followers at once: waiting would not resolve it."""
    from tidings.metadata.replication.log_follower import check_acyclic_following
    from tidings.metadata.replication.peer import Peer, Unreachable

    if url is not None:
        with Peer(url) as peer, suppress(Unreachable):  # a leader that is away now is followed later
            check_acyclic_following(store.metadata.identity(), peer)


def _catch_up_with_leader(store: Store, url: str | None, shared: str | None, out: Output) -> None:
    from tidings.metadata.provider.provider import Provider
    from tidings.metadata.replication.log_follower import LogFollower
    from tidings.metadata.replication.routing import open_log

    provider = Provider(store)
    log = open_log(store, provider, url, shared)
    if log is None:
        raise _no_leader_error()
    with closing(log):
        position_before = provider.position
        LogFollower(store, provider, log).catch_up()
    position, applied = provider.position, plural(provider.position - position_before, "entry")
    record = {"position": position, "before": position_before}
    out.print_record(record, ("position", "bold"), f"{position:,}: {applied} applied")


def _no_leader_error() -> InputError:
    return InputError("this provider does not follow another one yet", hint="tidings provider follow URL")


def lead(home: Home, out: Output) -> None:
    """Stop following: from now on this provider keeps its own log and accepts registrations.

    Example:
      tidings provider lead

    Use it when the leader is lost for good. Choose the provider with the highest position
    (`tidings provider status URL...`); the others then follow it (`tidings provider follow URL`).
    """
    with home.open() as tidings:
        leader = tidings.store.replication.leader()
        tidings.store.replication.follow(None)
        position = tidings.store.metadata.position()
    change = f"does not follow {leader} any more" if leader else "did not follow another provider"
    record = {"followed": leader, "position": position}
    out.print_record(record, ("position", "bold"), f"{position:,}: {change}")


def status(
    home: Home,
    out: Output,
    urls: Annotated[
        list[str] | None,
        typer.Argument(metavar="URL", help="Providers; by default, that of the home folder."),
    ] = None,
) -> None:
    """Print the position of providers in the log, and how far each lags behind the others.

    Examples:
      tidings provider status
      tidings provider status http://one.example.org:8080 http://two.example.org:8080
    """
    if not urls:
        with home.open() as tidings:
            providers = [asdict(tidings.store.replication.status()) | {"url": None, "problem": None}]
    else:
        providers = [_fetch_status(url) for url in urls]
    head = max((provider["head"] for provider in providers if "head" in provider), default=0)
    for provider in providers:
        if "position" in provider:
            provider["lag"] = max(head - provider["position"], provider.get("lag", 0))
    _print_status(providers, out)
    exit_if_rejects(sum("position" not in provider for provider in providers))


def _fetch_status(url: str) -> dict[str, Any]:
    """Return the status of another provider, or the problem of reaching it."""
    from tidings.metadata.replication.peer import Peer, Unreachable

    with Peer(url) as peer:
        try:
            return {"url": peer.name, **peer.status()}
        except Unreachable as problem:
            return {"url": peer.name, "problem": problem.message()}


_COLUMNS = ("provider", "position", "lag", "documents", "resources", "rules")


def _print_status(providers: list[dict[str, Any]], out: Output) -> None:
    if out.as_json:
        for provider in providers:
            output.print_json(provider)
        return
    output.print_table(("at", *_COLUMNS, "follows"), map(_list_status_cells, providers))
    for provider in providers:
        if provider["problem"]:
            output.print_refusal(provider["url"] or "here", provider["problem"])


def _list_status_cells(provider: dict[str, Any]) -> tuple[str, ...]:
    place = provider["url"] or "here"
    if "position" not in provider:
        return (place, "no answer", *("" for _ in _COLUMNS))
    values = (provider[name] for name in _COLUMNS)
    cells = (f"{value:,}" if isinstance(value, int) else str(value) for value in values)
    return (place, *cells, provider["leader"] or "none")

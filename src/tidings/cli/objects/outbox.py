"""`model tell`: what changed in a database becomes notifications of those whom it concerns."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from threading import Event
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidings.cli import output
from tidings.cli.options import (
    DEFAULT_HOME,
    HomeOption,
    JsonOption,
    StoreOption,
    check_storable,
    open_tidings,
)
from tidings.core.text import plural
from tidings.errors import InputError, TidingsError

if TYPE_CHECKING:
    from types import FrameType

    from tidings.objects.sql.object_store import ObjectSource
    from tidings.service.outbox_worker import Drained, OutboxEvent, OutboxOptions
    from tidings.service.tidings import Tidings

INTERRUPTED = 130


def tell(
    model: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE|MODULE:BASE",
            help="A model, as in [cyan]tidings model check[/]; with --from.",
            show_default=False,
        ),
    ] = None,
    database: Annotated[
        str | None,
        typer.Option("--from", metavar="URL", help="The database with its triggers.", show_default=False),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Which of the databases that [cyan]tidings objects add[/] has added; all of them when nothing is "
            "said. With --from, what to call it instead of its own name.",
            show_default=False,
        ),
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Wait for more until Ctrl-C.")] = False,
    batch: Annotated[
        int,
        typer.Option(
            min=1, callback=check_storable, metavar="N", help="How many changes are told in one transaction."
        ),
    ] = 1_000,
    tell_author: Annotated[
        bool, typer.Option("--tell-author", help="Tell those, too, who made the changes themselves.")
    ] = False,
    publish: Annotated[
        bool,
        typer.Option(
            "--publish",
            help="Publish the changes as events, too: subscriptions may ask about [cyan]class[/], [cyan]kind[/], "
            "[cyan]changed[/], [cyan]before.NAME[/], [cyan]after.NAME[/] and [cyan]now.NAME[/].",
        ),
    ] = False,
    home: HomeOption = DEFAULT_HOME,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Tell whom changes in a database concern. What its triggers have found becomes notifications, and leaves the
    database.

    Each change is told once, in the order of the changes, also if this is killed in between or runs twice at a time.

    [dim]Examples[/]
      tidings model tell
      tidings model tell --source university --follow
      tidings model tell university.puml --from sqlite:///university.db
    """
    from tidings.service.outbox_worker import OutboxOptions

    with open_tidings(home, store) as tidings:
        sources = _sources(tidings, model, database, source)
        how = OutboxOptions(batch, tell_author, publish)
        if follow:
            _follow(tidings, sources, how, as_json)
            return
        codes = [_once(tidings, each, how, as_json, alone=len(sources) == 1) for each in sources]
    if any(codes):
        raise typer.Exit(min(code for code in codes if code))


def _sources(
    tidings: Tidings, model: str | None, database: str | None, name: str | None
) -> Sequence[ObjectSource]:
    from tidings.objects.sources import SourceRegistry, build_unregistered_source

    if model is not None and database is not None:
        return [build_unregistered_source(model, database, name)]
    if model is not None or database is not None:
        accepted = "MODEL --from URL, or neither: tidings objects add remembers them"
        raise InputError("a model and a database belong together", where="model tell", accepted=accepted)
    kept = SourceRegistry(tidings.store)
    return [kept.select(name)] if name is not None else (kept.list_sources() or [kept.select()])


def _once(tidings: Tidings, source: ObjectSource, how: OutboxOptions, as_json: bool, alone: bool) -> int:
    """All that is there now, in one line; the exit code. One that is away does not keep the others from being told."""
    try:
        total = _drained(tidings, source, how)
    except TidingsError as problem:
        if alone:
            raise
        output.print_error(problem, as_json)
        return problem.exit_code
    _say(total, as_json)
    return output.EXIT_WITH_REJECTS if total.dead else 0


def _drained(tidings: Tidings, source: ObjectSource, how: OutboxOptions) -> Drained:
    from tidings.objects.sources import open_source
    from tidings.service.outbox_worker import Drained, drain_outbox

    total = Drained(source.name, 0, 0, 0)
    with open_source(source) as found:
        for one in drain_outbox(tidings, found, how):
            total = one.after(total)
    return total


def _say(news: OutboxEvent, as_json: bool) -> None:
    from tidings.service.outbox_worker import Back, CutOff

    if as_json:
        output.print_json(_record(news))
    elif isinstance(news, CutOff):
        output.print_line((news.source, "bold yellow"), news.problem.headline(), "trying again", stderr=True)
    elif isinstance(news, Back):
        output.print_line((news.source, "bold green"), "is back", stderr=True)
    else:
        output.print_line((news.source, "bold cyan"), *_counts(news))


def _counts(news: Drained) -> Iterator[str]:
    yield plural(news.changes, "change")
    yield plural(news.new, "notification")
    if news.repeated:
        yield f"{news.repeated:,} told before"
    if news.published:
        yield plural(news.published, "event")
    if news.dead:
        yield plural(news.dead, "dead letter")


def _record(news: OutboxEvent) -> dict[str, Any]:
    from tidings.service.outbox_worker import CutOff

    said = {"news": type(news).__name__.lower(), **asdict(news)}
    return {**said, "problem": news.problem.facts()} if isinstance(news, CutOff) else said


def _follow(tidings: Tidings, sources: Sequence[ObjectSource], how: OutboxOptions, as_json: bool) -> None:
    """A batch that is under way is ended before this is: the signal only says that no other should begin."""
    from tidings.service.outbox_worker import OutboxFollower

    if not as_json:
        output.print_note(f"following {', '.join(each.name for each in sources)}; Ctrl-C ends it")
    with _until_signal() as (stop, came):
        OutboxFollower(tidings, how).follow(sources, lambda news: _say(news, as_json), stop)
    if signal.SIGINT in came:
        raise typer.Exit(INTERRUPTED)


@contextmanager
def _until_signal() -> Iterator[tuple[Event, list[int]]]:
    """An event that is set when somebody wants this to end, and the signals that said so."""
    stop, came = Event(), list[int]()

    def end(number: int, _: FrameType | None) -> None:
        came.append(number)
        stop.set()

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop, came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

"""`publish`: put events, documents and graphs into the journal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from tidings.cli import inputs, output
from tidings.cli.options import (
    DEFAULT_HOME,
    HomeOption,
    JsonOption,
    StoreOption,
    check_storable,
    open_tidings,
)
from tidings.cli.output import Tally
from tidings.core import suggest
from tidings.errors import InputError
from tidings.model import Reject

if TYPE_CHECKING:
    from tidings.service.tidings import Tidings
    from tidings.store.dead_letters import DeadLetter
    from tidings.store.journal import AppendResult


def publish(
    what: Annotated[
        str,
        typer.Argument(
            metavar="TEXT|FILE|-",
            help="A JSON object or an XML document; a .json or .xml file with one; a graph (.ttl, .nt, .rdf, .jsonld); "
            "several graphs (.trig, .nq) or the items of a feed (.rss, .atom, .jsonfeed); a .jsonl file (.ndjson, "
            ".jsonl.gz) or standard input with an event a line.",
        ),
    ],
    id: Annotated[
        str | None, typer.Option("--id", help="The id of the publication; one is made when none is given.")
    ] = None,
    id_field: Annotated[
        str | None, typer.Option(metavar="NAME", help="The field that holds an event's id.")
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(
            metavar="IRI", help="What relative IRIs of a graph or a feed are relative to.", show_default=False
        ),
    ] = None,
    audience: Annotated[
        str | None,
        typer.Option(
            metavar="LABEL",
            help="Only for subscribers who were granted this label; for everybody when none is given.",
            show_default=False,
        ),
    ] = None,
    home: HomeOption = DEFAULT_HOME,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Publish events, documents and graphs. What is answered with a position is durable.

    An event is a JSON object or a CloudEvent, a document is XML, a graph is RDF. An event that contradicts the schema
    or a document that is not well-formed is refused (exit code 2); of several, the good ones are published and the
    others listed (exit code 3).

    [dim]Examples[/]
      tidings publish '{"title": "cuckoo clock", "price": 180}'
      tidings publish sold.json --id lot-4711
      tidings publish quote.xml
      tidings publish page.ttl --base http://example.org/page
      tidings publish events.jsonl --id-field lot
      tidings publish merger.json --audience board
      tail -f auctions.log | tidings publish -
    """
    with open_tidings(home, store) as tidings:
        if not inputs.is_line_input(what):
            _publish_one(tidings, what, id, id_field, base, audience, as_json)
        elif base is not None:
            raise InputError("--base is for graphs and feeds")
        else:
            _publish_lines(tidings, what, id, id_field, audience, as_json)


def _publish_one(
    tidings: Tidings,
    what: str,
    id: str | None,
    id_field: str | None,
    base: str | None,
    audience: str | None,
    as_json: bool,
) -> None:
    """One publication; or the graphs of a file, or the items of a feed, each a publication of its own."""
    from tidings.graphs.rdf.multipart import holds_several

    body, media_type = inputs.read_one(what)
    if id_field is not None:
        id = _id_in(body, media_type, id, id_field)
    if holds_several(body, media_type, base):
        for placed in tidings.publish_parts(body, media_type, id, base, audience):
            _print_outcome(placed, as_json)
    else:
        _print_outcome(tidings.publish(body, id, media_type, base, audience), as_json)


def _id_in(body: bytes, media_type: str, id: str | None, field: str) -> str | None:
    """The id in a field of an event; none if it has no such field."""
    from tidings.events.json_decoder import publication_id
    from tidings.kinds import JSON

    if media_type != JSON:
        raise InputError(
            "only events have a field with their id", where="--id-field", hint="give the id with --id"
        )
    if id is not None:
        raise InputError("two places for one id", where="--id-field", received=f"--id {id}")
    return publication_id(body, field)


def _print_outcome(placed: AppendResult, as_json: bool) -> None:
    if as_json:
        output.print_json(asdict(placed))
    else:
        again = () if placed.new else (("published before", "dim"),)
        output.print_line((placed.id, "bold cyan"), f"position {placed.position}", *again)


def _publish_lines(
    tidings: Tidings, what: str, id: str | None, id_field: str | None, audience: str | None, as_json: bool
) -> None:
    from tidings.store.audiences import check_label

    if id is not None:
        raise InputError(
            "--id is for one event", hint="name the field that holds each one's id with --id-field"
        )
    if audience is not None:
        check_label(audience)
    tally = Tally("event", "published", as_json)
    for lines in inputs.read_line_batches(what):
        outcomes = tidings.publish_many((line.body for line in lines), id_field, audience=audience)
        with suggest.bounded_search():
            for line, outcome in zip(lines, outcomes, strict=True):
                if isinstance(outcome, Reject):
                    tally.refuse(line.where, outcome.facts, outcome.reason)
                else:
                    tally.take(outcome)
    tally.end()


# `rejects`: the dead letters, publications the stream could not use.


REJECT_PAGE = 1_000
SUBSCRIPTION_COLUMN = 3


def rejects(
    after: Annotated[
        int, typer.Option(min=0, callback=check_storable, metavar="N", help="Only those behind number N.")
    ] = 0,
    limit: Annotated[
        int | None, typer.Option(min=1, callback=check_storable, metavar="N", help="At most N of them.")
    ] = None,
    home: HomeOption = DEFAULT_HOME,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the dead letters: publications that the stream could not use, and why. The stream went on without them.

    A letter that names a subscription is about this pair alone: it exceeded the budget of time or memory, and the other
    subscribers were notified.

    [dim]Example[/]
      tidings rejects --json
    """
    with open_tidings(home, store) as tidings:
        letters = islice(_iterate_rejects(tidings, after), limit)
        if as_json:
            for letter in letters:
                body = (letter.body or b"").decode("utf-8", "backslashreplace")
                output.print_json(asdict(letter) | {"body": body})
            return
        rows = [
            (f"#{one.number}", one.source, one.publication, one.subscription or "", one.reason)
            for one in letters
        ]
    if rows:
        _print_rejects(rows)
    else:
        output.print_note("no dead letters")


def _print_rejects(rows: Sequence[tuple[str, ...]]) -> None:
    """Subscriptions have a column only where a letter names one."""
    heads = ("", "source", "publication", "subscription", "reason")
    shown = [
        place
        for place, _ in enumerate(heads)
        if place != SUBSCRIPTION_COLUMN or any(row[place] for row in rows)
    ]
    output.print_table(
        [heads[place] for place in shown], [tuple(row[place] for place in shown) for row in rows]
    )


def _iterate_rejects(tidings: Tidings, after: int) -> Iterator[DeadLetter]:
    """Page by page: the bodies of all of them need not fit into memory."""
    while page := tidings.dead_letters(after, REJECT_PAGE):
        yield from page
        after = page[-1].number

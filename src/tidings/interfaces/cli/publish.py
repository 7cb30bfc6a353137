"""`publish`: put events, documents and graphs into the journal."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from tidings import guessing
from tidings.errors import InputError
from tidings.interfaces.cli import inputs, output
from tidings.interfaces.cli.options import DEFAULT_HOME, AsJson, Home, Store, open_tidings
from tidings.interfaces.cli.tally import Tally
from tidings.model import Reject

if TYPE_CHECKING:
    from tidings.service import Tidings
    from tidings.store import Appended


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
    home: Home = DEFAULT_HOME,
    store: Store = None,
    as_json: AsJson = False,
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
        if not inputs.is_several(what):
            _one(tidings, what, id, id_field, base, audience, as_json)
        elif base is not None:
            raise InputError("--base is for graphs and feeds")
        else:
            _several(tidings, what, id, id_field, audience, as_json)


def _one(
    tidings: Tidings,
    what: str,
    id: str | None,
    id_field: str | None,
    base: str | None,
    audience: str | None,
    as_json: bool,
) -> None:
    """One publication; or the graphs of a file, or the items of a feed, each a publication of its own."""
    from tidings.publications.rdf_parts import holds_several

    body, media_type = inputs.one(what)
    if id_field is not None:
        id = _id_in(body, media_type, id, id_field)
    if holds_several(body, media_type, base):
        for placed in tidings.publish_parts(body, media_type, id, base, audience):
            _tell_one(placed, as_json)
    else:
        _tell_one(tidings.publish(body, id, media_type, base, audience), as_json)


def _id_in(body: bytes, media_type: str, id: str | None, field: str) -> str | None:
    """The id in a field of an event; none if it has no such field."""
    from tidings.publications.event import publication_id
    from tidings.publications.media_types import JSON

    if media_type != JSON:
        raise InputError(
            "only events have a field with their id", where="--id-field", hint="give the id with --id"
        )
    if id is not None:
        raise InputError("two places for one id", where="--id-field", received=f"--id {id}")
    return publication_id(body, field)


def _tell_one(placed: Appended, as_json: bool) -> None:
    if as_json:
        output.json_line(asdict(placed))
    else:
        again = () if placed.new else (("published before", "dim"),)
        output.line((placed.id, "bold cyan"), f"position {placed.position}", *again)


def _several(
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
    for lines in inputs.batches(what):
        outcomes = tidings.publish_many((line.body for line in lines), id_field, audience=audience)
        with guessing.bounded():
            for line, outcome in zip(lines, outcomes, strict=True):
                if isinstance(outcome, Reject):
                    tally.refuse(line.where, outcome.facts, outcome.reason)
                else:
                    tally.take(outcome)
    tally.end()

"""`publish` and `rejects`: publications for the journal, and those that the stream could not process."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from tidings.cli import inputs
from tidings.cli.options import AfterOption, Home, LimitOption
from tidings.cli.output import Output, Tally, View
from tidings.core import suggest
from tidings.errors import InputError
from tidings.model import Reject

if TYPE_CHECKING:
    from tidings.service.tidings import Tidings
    from tidings.store.dead_letters import DeadLetter
    from tidings.store.journal import AppendOutcome


@dataclass(frozen=True)
class PublicationOptions:
    """Properties of publications that options give."""

    id: Annotated[
        str | None, typer.Option("--id", help="The id of the publication; by default one is generated.")
    ] = None
    id_field: Annotated[
        str | None, typer.Option(metavar="NAME", help="The field that contains the id of an event.")
    ] = None
    base: Annotated[
        str | None, typer.Option(metavar="IRI", help="The base of relative IRIs in a graph or a feed.")
    ] = None
    audience: Annotated[
        str | None,
        typer.Option(
            metavar="LABEL", help="Only for subscribers with this label; by default for all subscribers."
        ),
    ] = None


def publish(
    options: PublicationOptions,
    home: Home,
    out: Output,
    source: Annotated[
        str,
        typer.Argument(
            metavar="TEXT|FILE|-",
            help="A JSON object or an XML document; a .json or .xml file with one; a graph (.ttl, .nt, .rdf, .jsonld); "
            "several graphs (.trig, .nq) or the items of a feed (.rss, .atom, .jsonfeed); a .jsonl file (.ndjson, "
            ".jsonl.gz) or standard input with one event per line.",
        ),
    ],
) -> None:
    """Publish events, documents and graphs. A publication is durable once its position is printed.

    Examples:
      tidings publish '{"title": "cuckoo clock", "price": 180}'
      tidings publish sold.json --id lot-4711
      tidings publish quote.xml
      tidings publish page.ttl --base http://example.org/page
      tidings publish events.jsonl --id-field lot
      tidings publish merger.json --audience board
      tail -f auctions.log | tidings publish -

    An event is a JSON object or a CloudEvent, a document is XML, a graph is RDF. An event that violates the schema, or
    a document that is not well-formed, is refused (exit code 2). Of several events, the valid ones are published and
    the others are listed (exit code 3).
    """
    with home.open() as tidings:
        if not inputs.is_line_input(source):
            _publish_one(tidings, source, options, out)
        elif options.base is not None:
            raise InputError("--base is for graphs and feeds")
        else:
            _publish_lines(tidings, source, options, out)


def _publish_one(tidings: Tidings, source: str, options: PublicationOptions, out: Output) -> None:
    """Publish one publication; or each graph of a file, or each item of a feed."""
    from tidings.ingest import publisher
    from tidings.ingest.submission import UNLIMITED, Submission

    if options.id is not None and options.id_field is not None:
        received = f"--id {options.id}"
        raise InputError("--id and --id-field exclude each other", where="--id-field", received=received)
    body, media_type = inputs.read_one(source)
    submission = Submission(
        body, media_type, options.id, options.id_field, options.base, options.audience, limits=UNLIMITED
    )
    for outcome in publisher.publish(tidings.store, submission, tidings.checked_against()):
        _print_appended(outcome, out)


def _print_appended(appended: AppendOutcome, out: Output) -> None:
    if isinstance(appended, InputError):
        raise appended
    again = () if appended.new else (("published before", "dim"),)
    out.print_record(asdict(appended), (appended.id, "bold cyan"), f"position {appended.position}", *again)


def _publish_lines(tidings: Tidings, source: str, options: PublicationOptions, out: Output) -> None:
    from tidings.store.audiences import check_label

    if options.id is not None:
        raise InputError("--id is for one event", hint="name the field that contains the ids with --id-field")
    if options.audience is not None:
        check_label(options.audience)
    tally = Tally(out, "event", "published")
    for lines in inputs.read_line_batches(source):
        bodies = (line.body for line in lines)
        outcomes = tidings.publish_many(bodies, options.id_field, audience=options.audience)
        with suggest.bounded_search():
            for line, outcome in zip(lines, outcomes, strict=True):
                if isinstance(outcome, Reject):
                    tally.refuse(line.where, outcome.facts, outcome.reason)
                else:
                    tally.accept(outcome)
    tally.end()


REJECT_PAGE = 1_000

DEAD_LETTERS: View[DeadLetter] = View(
    "no dead letters",
    columns=(
        ("", lambda letter: f"#{letter.number}"),
        ("source", "source"),
        ("publication", "publication"),
        ("subscription", "subscription"),
        ("reason", "reason"),
    ),
    record=lambda letter: asdict(letter) | {"body": (letter.body or b"").decode("utf-8", "backslashreplace")},
    optional=("subscription",),
)


def rejects(home: Home, out: Output, after: AfterOption = 0, limit: LimitOption = None) -> None:
    """List dead letters: publications that the stream could not process, with the reasons.

    Example:
      tidings rejects --json

    The stream continues without them. A dead letter that names a subscription is about this pair only: matching it
    exceeded the budget of time or memory, and the other subscribers were notified.
    """
    with home.open() as tidings:
        out.print_records(islice(_iterate_rejects(tidings, after), limit), DEAD_LETTERS)


def _iterate_rejects(tidings: Tidings, after: int) -> Iterator[DeadLetter]:
    """Read page by page: the bodies of all dead letters need not fit into memory."""
    while page := tidings.dead_letters(after, REJECT_PAGE):
        yield from page
        after = page[-1].number

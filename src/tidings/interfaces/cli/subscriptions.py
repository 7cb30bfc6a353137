"""`subscribe`, `unsubscribe` and `subscriptions`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated

import typer

from tidings.errors import InputError, SyntaxProblem
from tidings.interfaces.cli import output
from tidings.interfaces.cli.options import DEFAULT_HOME, AsJson, Home, Store, SubscriberIfAny, open_tidings
from tidings.interfaces.cli.subscribe_file import Unsaid, subscribe_file
from tidings.interfaces.cli.subscriber_names import found_as, resolved
from tidings.model import Subscription

QUOTE = 'quote the whole text: tidings subscribe --as NAME "price > 200"'


def subscribe(
    text: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TEXT", help="What to be told about, in the subscription language.", show_default=False
        ),
    ] = None,
    subscriber: SubscriberIfAny = None,
    file: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Many at once: a .jsonl file (.ndjson, .jsonl.gz), or [cyan]-[/] for standard input, with a JSON "
            "object a line: text, and perhaps id, subscriber, language, within, state.",
            show_default=False,
        ),
    ] = None,
    language: Annotated[
        str,
        typer.Option(
            help="The language TEXT is written in, or lines of a file that do not say theirs: predicates for events, "
            "xpath for XML documents, gql for graphs, rules for metadata."
        ),
    ] = "predicates",
    id: Annotated[
        str | None, typer.Option("--id", help="An id of your own; one is made when none is given.")
    ] = None,
    within: Annotated[
        str | None,
        typer.Option(
            metavar="DELAY",
            help="Gather notifications and hand them over together, no later than this: [cyan]10 minutes[/], "
            "[cyan]1 hour[/]. At once when nothing is said. Of a file, for lines that do not say "
            "theirs.",
            show_default=False,
        ),
    ] = None,
    home: Home = DEFAULT_HOME,
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Ask to be told about publications.

    A subscription to events is made of predicates joined by and, or, not and parentheses; one to XML documents is an
    XPath; one to graphs is a pattern in GQL, or in SPARQL. It counts from the stream's next batch on. One to metadata
    is a rule, and what it finds among what is registered is told at once.

    Of the lines of a file, the good ones are taken and the others listed (exit code 3).

    [dim]Examples[/]
      tidings subscribe --as ana "price < 200 and period = 'XVI'"
      tidings subscribe --as bo "furniture_category is a 'dining room' and not material = 'plastic'"
      tidings subscribe --as cy "title contains 'clock' or price between 10 and 20"
      tidings subscribe --as di "exists reserve and sold.at >= 2024-05-01"
      tidings subscribe --as ed "material = 'oak'" --within "10 minutes"
      tidings subscribe --as fy --language xpath '//stock\\[symbol = "YHOO" and price > 50]'
      tidings subscribe --as gu --language gql 'SELECT ?page WHERE (?page, dc:subject, ?s) AND ?s contains "clock"'
      tidings subscribe --as ha --language rules "search Server s register s where s.memory > 64" --id large
      tidings subscribe --file subs.jsonl
    """
    if file is not None:
        _refuse_beside_file(text, id)
        with open_tidings(home, store) as tidings:
            subscribe_file(tidings, file, Unsaid(subscriber, language, within), as_json)
        return
    if not text:
        raise InputError("to what?", accepted="TEXT, or --file FILE", hint=QUOTE)
    if subscriber is None:
        raise InputError("for whom?", accepted="--as NAME")
    with open_tidings(home, store) as tidings, _hint_to_quote(text):
        whose = resolved(tidings.store, subscriber, as_json)
        made = tidings.subscribe(whose, text[0], language, id, within)
    if as_json:
        output.json_line(output.subscribed_record(made))
    else:
        output.subscribed(made)


def _refuse_beside_file(text: list[str] | None, id: str | None) -> None:
    if text:
        raise InputError("TEXT or --file, not both", received=" ".join(text))
    if id is not None:
        raise InputError("--id is for one subscription", hint="each line of a file has its own")


@contextmanager
def _hint_to_quote(words: list[str]) -> Iterator[None]:
    """A text without quotes comes in pieces, or as its first word: the shell takes `> 200` for itself."""
    if len(words) > 1:
        received = " ".join(words)
        raise InputError(f"the text came in {len(words)} pieces", received=received, hint=QUOTE)
    try:
        yield
    except SyntaxProblem as problem:
        if problem.hint is None and re.fullmatch(r"\w+", words[0]):
            raise problem.hinted(QUOTE) from None
        raise


def unsubscribe(
    ids: Annotated[
        list[str], typer.Argument(help="Ids of subscriptions, as `tidings subscriptions` shows them.")
    ],
    home: Home = DEFAULT_HOME,
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Withdraw subscriptions. It counts from the stream's next batch on; notifications already made stay.

    [dim]Example[/]
      tidings unsubscribe s-7f3a9c01 s-0be4412d
    """
    with open_tidings(home, store) as tidings:
        found = set(tidings.unsubscribe(ids))
    for id in ids:
        if as_json:
            output.json_line({"id": id, "removed": id in found})
        elif id in found:
            output.line((id, "bold cyan"), "withdrawn")
        else:
            output.line((id, "bold red"), "there is no such subscription", stderr=True)
    if len(found) < len(set(ids)):
        raise typer.Exit(output.WITH_REJECTS)


def subscriptions(
    subscriber: Annotated[
        str | None, typer.Option("--as", metavar="NAME", help="Only this subscriber's.")
    ] = None,
    home: Home = DEFAULT_HOME,
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """List subscriptions; then those that are paused.

    [dim]Example[/]
      tidings subscriptions --as ana
    """
    with open_tidings(home, store) as tidings:
        subscriber = subscriber and found_as(tidings.store, subscriber, as_json)
        found, paused = tidings.subscriptions(subscriber), tidings.store.paused.all(subscriber)
        reasons = tidings.store.paused.reasons(subscriber)
    if as_json:
        for one in found:
            output.json_line(output.record(one))
        for one in paused:
            reason = {"reason": reasons[one.id]} if one.id in reasons else {}
            output.json_line(output.record(one) | {"state": "paused"} | reason)
    elif found or paused:
        _table([*found, *paused], {one.id: reasons.get(one.id, "paused") for one in paused})
    elif subscriber is not None:
        output.note(f"no subscriptions for {subscriber}")
    else:
        output.note('no subscriptions yet: tidings subscribe --as NAME "price < 200"')


def _table(found: Sequence[Subscription], states: Mapping[str, str]) -> None:
    """Delays and states have a column only where a subscription has one. `states` are those of paused ones, by id."""
    shown = {"id": True, "subscriber": True, "language": True}
    shown |= {"state": bool(states), "within": any(one.within for one in found), "text": True}
    rows = [
        (
            one.id,
            one.subscriber,
            one.language,
            states.get(one.id, ""),
            output.delay(one),
            one.text,
        )
        for one in found
    ]
    output.table(
        tuple(name for name, is_shown in shown.items() if is_shown),
        [tuple(cell for cell, is_shown in zip(row, shown.values(), strict=True) if is_shown) for row in rows],
    )

"""`subscribe`, `unsubscribe` and `subscriptions`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from tidings.cli import output
from tidings.cli.options import (
    DEFAULT_HOME,
    HomeOption,
    JsonOption,
    OptionalSubscriberOption,
    StoreOption,
    find_subscriber,
    open_tidings,
    resolve_subscriber,
)
from tidings.cli.subscription_file import LineDefaults, subscribe_file
from tidings.errors import Absent, InputError, SyntaxProblem
from tidings.model import Subscription

if TYPE_CHECKING:
    from tidings.service.subscriptions import SubscriptionService
    from tidings.store.subscriptions.view import SubscriptionStatus


QUOTE = 'quote the whole text: tidings subscribe --as NAME "price > 200"'


def subscribe(
    text: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TEXT", help="What to be told about, in the subscription language.", show_default=False
        ),
    ] = None,
    subscriber: OptionalSubscriberOption = None,
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
    home: HomeOption = DEFAULT_HOME,
    store: StoreOption = None,
    as_json: JsonOption = False,
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
            subscribe_file(tidings, file, LineDefaults(subscriber, language, within), as_json)
        return
    if not text:
        raise InputError("to what?", accepted="TEXT, or --file FILE", hint=QUOTE)
    if subscriber is None:
        raise InputError("for whom?", accepted="--as NAME")
    with open_tidings(home, store) as tidings, _hint_to_quote(text):
        whose = resolve_subscriber(tidings.store, subscriber, as_json)
        made = tidings.subscribe(whose, text[0], language, id, within)
    if as_json:
        output.print_json(output.new_subscription_record(made))
    else:
        output.print_subscription(made)


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
            raise problem.with_hint(QUOTE) from None
        raise


def unsubscribe(
    ids: Annotated[
        list[str], typer.Argument(help="Ids of subscriptions, as `tidings subscriptions` shows them.")
    ],
    home: HomeOption = DEFAULT_HOME,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Withdraw subscriptions. It counts from the stream's next batch on; notifications already made stay.

    [dim]Example[/]
      tidings unsubscribe s-7f3a9c01 s-0be4412d
    """
    with open_tidings(home, store) as tidings:
        found = set(tidings.unsubscribe(ids))
    for id in ids:
        if as_json:
            output.print_json({"id": id, "removed": id in found})
        elif id in found:
            output.print_line((id, "bold cyan"), "withdrawn")
        else:
            output.print_line((id, "bold red"), "there is no such subscription", stderr=True)
    if len(found) < len(set(ids)):
        raise typer.Exit(output.EXIT_WITH_REJECTS)


def subscriptions(
    subscriber: Annotated[
        str | None, typer.Option("--as", metavar="NAME", help="Only this subscriber's.")
    ] = None,
    home: HomeOption = DEFAULT_HOME,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """List subscriptions; then those that are paused.

    [dim]Example[/]
      tidings subscriptions --as ana
    """
    with open_tidings(home, store) as tidings:
        subscriber = subscriber and find_subscriber(tidings.store, subscriber, as_json)
        found, paused = tidings.subscriptions(subscriber), tidings.store.paused.all(subscriber)
        reasons = tidings.store.paused.reasons(subscriber)
    if as_json:
        for one in found:
            output.print_json(output.subscription_record(one))
        for one in paused:
            reason = {"reason": reasons[one.id]} if one.id in reasons else {}
            output.print_json(output.subscription_record(one) | {"state": "paused"} | reason)
    elif found or paused:
        _table([*found, *paused], {one.id: reasons.get(one.id, "paused") for one in paused})
    elif subscriber is not None:
        output.print_note(f"no subscriptions for {subscriber}")
    else:
        output.print_note('no subscriptions yet: tidings subscribe --as NAME "price < 200"')


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
            output.format_delay(one),
            one.text,
        )
        for one in found
    ]
    output.print_table(
        tuple(name for name, is_shown in shown.items() if is_shown),
        [tuple(cell for cell, is_shown in zip(row, shown.values(), strict=True) if is_shown) for row in rows],
    )


# `change`, `pause` and `resume`: subscriptions that keep their id.


SubscriptionIds = Annotated[
    list[str], typer.Argument(help="Ids of subscriptions, as `tidings subscriptions` shows them.")
]
IMMEDIATELY = "at once"


def change(
    id: Annotated[str, typer.Argument(help="The id of a subscription.")],
    text: Annotated[
        str | None,
        typer.Argument(metavar="TEXT", help="What to be told about from now on, in the same language."),
    ] = None,
    within: Annotated[
        str | None,
        typer.Option(
            metavar="DELAY",
            help="The delay that is accepted from now on: [cyan]10 minutes[/], or [cyan]at once[/].",
            show_default=False,
        ),
    ] = None,
    home: HomeOption = DEFAULT_HOME,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Give a subscription another text, or another delay. It keeps its id, and its feed and deliveries go on.

    The stream's next batch knows the new text only. One that is paused stays so.

    [dim]Examples[/]
      tidings change s-7f3a9c01 "price < 100"
      tidings change s-7f3a9c01 --within "1 hour"
    """
    from tidings.service.subscriptions import parse_delay

    if text is None and within is None:
        raise InputError("what is to change?", hint='tidings change ID "price < 100", or --within DELAY')
    with open_tidings(home, store) as tidings:
        subscribing = tidings.subscribing()
        delay = subscribing.find(id).subscription.within
        if within is not None:
            delay = None if within.strip() == IMMEDIATELY else parse_delay(within)
        made = subscribing.change(id, text, delay)
    if as_json:
        output.print_json(output.new_subscription_record(made))
    else:
        output.print_subscription(made)


def pause(
    ids: SubscriptionIds,
    home: HomeOption = DEFAULT_HOME,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Match nothing for subscriptions until they are resumed. They keep their ids and texts.

    [dim]Example[/]
      tidings pause s-7f3a9c01
    """
    with open_tidings(home, store) as tidings:
        _change_each(tidings.subscribing(), ids, lambda all, id: all.pause(id), as_json)


def resume(
    ids: SubscriptionIds,
    home: HomeOption = DEFAULT_HOME,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Match for subscriptions again that were paused.

    What was published meanwhile is not told of. A rule tells what became different for it.

    [dim]Example[/]
      tidings resume s-7f3a9c01
    """
    with open_tidings(home, store) as tidings:
        _change_each(tidings.subscribing(), ids, lambda all, id: all.resume(id), as_json)


def _change_each(
    all: SubscriptionService,
    ids: list[str],
    do: Callable[[SubscriptionService, str], SubscriptionStatus],
    as_json: bool,
) -> None:
    missing = False
    for id in ids:
        try:
            state = do(all, id).state
        except Absent as problem:
            missing, state = True, None
            if not as_json:
                output.print_line((id, "bold red"), problem.what, stderr=True)
        if as_json:
            output.print_json({"id": id, "state": state})
        elif state:
            output.print_line((id, "bold cyan"), state)
    if missing:
        raise typer.Exit(output.EXIT_WITH_REJECTS)

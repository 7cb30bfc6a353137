"""`subscribe`, `unsubscribe`, `subscriptions`, `change`, `pause` and `resume`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from tidings.cli import inputs, output
from tidings.cli.options import (
    DelayOption,
    Home,
    OptionalSubscriberOption,
    SubscriberFilter,
    find_subscriber,
    resolve_subscriber,
)
from tidings.cli.output import Output, Tally, View, exit_if_rejects
from tidings.core import durations, suggest
from tidings.core.text import plural
from tidings.errors import InputError, NotFound, SyntaxProblem, TidingsError, pointing
from tidings.model import Subscription

if TYPE_CHECKING:
    from tidings.objects.watches import SubscriberNames
    from tidings.service.bulk_subscribe import BulkItem
    from tidings.service.subscriptions import AcceptedSubscription
    from tidings.service.tidings import Tidings
    from tidings.store.subscriptions.view import SubscriptionStatus

QUOTE = 'quote the whole text: tidings subscribe --as NAME "price > 200"'
IMMEDIATELY = "at once"
SubscriptionIds = Annotated[
    list[str], typer.Argument(help="Ids of subscriptions, as `tidings subscriptions` lists them.")
]


def subscribe(
    home: Home,
    out: Output,
    text: Annotated[
        list[str] | None, typer.Argument(metavar="TEXT", help="The subscription, in its language.")
    ] = None,
    subscriber: OptionalSubscriberOption = None,
    file: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Many subscriptions: a .jsonl file (.ndjson, .jsonl.gz), or `-` for standard input, with one JSON "
            "object per line: `text`, and optionally `id`, `subscriber`, `language`, `within`, `state`.",
        ),
    ] = None,
    language: Annotated[
        str,
        typer.Option(
            help="The language of TEXT, and of lines that name none: predicates for events, xpath for XML documents, "
            "gql for graphs, rules for metadata."
        ),
    ] = "predicates",
    id: Annotated[
        str | None, typer.Option("--id", help="An id of your own; by default one is generated.")
    ] = None,
    within: DelayOption = None,
) -> None:
    """Subscribe to publications.

    Examples:
      tidings subscribe --as ana "price < 200 and period = 'XVI'"
      tidings subscribe --as bo "furniture_category is a 'dining room' and not material = 'plastic'"
      tidings subscribe --as cy "title contains 'clock' or price between 10 and 20"
      tidings subscribe --as di "exists reserve and sold.at >= 2024-05-01"
      tidings subscribe --as ed "material = 'oak'" --within "10 minutes"
      tidings subscribe --as fy --language xpath '//stock\\[symbol = "YHOO" and price > 50]'
      tidings subscribe --as gu --language gql 'SELECT ?page WHERE (?page, dc:subject, ?s) AND ?s contains "clock"'
      tidings subscribe --as ha --language rules "search Server s register s where s.memory > 64" --id large
      tidings subscribe --file subs.jsonl

    A subscription to events consists of predicates joined by `and`, `or`, `not` and parentheses. A subscription to XML
    documents is an XPath; one to graphs is a pattern in GQL or SPARQL. It takes effect with the next batch of the
    stream. A subscription to metadata is a rule; you are notified at once of the registered resources that it finds.

    With `--file`, valid lines are accepted and the others are listed (exit code 3).
    """
    if file is not None:
        _refuse_beside_file(text, id)
        with home.open() as tidings:
            _subscribe_file(tidings, file, LineDefaults(subscriber, language, within), out)
        return
    if not text:
        raise InputError(
            "the text of the subscription is missing", accepted="TEXT, or --file FILE", hint=QUOTE
        )
    if subscriber is None:
        raise InputError("the subscriber is missing", accepted="--as NAME")
    with home.open() as tidings, _hint_to_quote(text):
        owner = resolve_subscriber(tidings.store, subscriber, out)
        accepted = tidings.subscribe(owner, text[0], language, id, within)
    _print_accepted(accepted, out)


def _refuse_beside_file(text: list[str] | None, id: str | None) -> None:
    if text:
        raise InputError("TEXT or --file, not both", received=" ".join(text))
    if id is not None:
        raise InputError("--id is for one subscription", hint="each line of a file has its own")


@contextmanager
def _hint_to_quote(words: list[str]) -> Iterator[None]:
    """Explain a text without quotes, which comes in pieces or as its first word: the shell redirects `> 200`."""
    if len(words) > 1:
        received = " ".join(words)
        raise InputError(f"the text came in {len(words)} pieces", received=received, hint=QUOTE)
    try:
        yield
    except SyntaxProblem as problem:
        if problem.hint is None and re.fullmatch(r"\w+", words[0]):
            raise problem.with_hint(QUOTE) from None
        raise


def _print_accepted(accepted: AcceptedSubscription, out: Output) -> None:
    if out.as_json:
        warnings = [warning.facts() for warning in accepted.warnings]
        output.print_json(_to_record(accepted) | {"warnings": warnings})
    else:
        print_subscription(accepted)


def print_subscription(accepted: AcceptedSubscription, colour: str = "") -> None:
    """Print an accepted subscription and the warnings about its text; `colour` is that of its subscriber."""
    summary = f"{plural(accepted.predicates, 'predicate')}, reached through {accepted.reached_through}"
    summary += f", notified within {_format_delay(accepted)}" if accepted.within else ""
    output.print_line(
        (accepted.id, "bold cyan"), (accepted.subscriber, colour), (accepted.language, "dim"), summary
    )
    for warning in accepted.warnings:
        output.print_warning(warning)


def _to_record(subscription: AcceptedSubscription | Subscription) -> dict[str, object]:
    """Return the fields of a subscription, with the delay as subscription files write it."""
    return asdict(subscription) | {"within": _format_delay(subscription) or None}


def _format_delay(subscription: AcceptedSubscription | Subscription) -> str:
    return "" if subscription.within is None else durations.show(subscription.within)


# `subscribe --file`.


ACCEPTED = "a .jsonl file (.ndjson, .jsonl.gz) with one subscription per line, or - for standard input"
DAMAGED = "the subscriptions before the damage are stored"


@dataclass(frozen=True, slots=True)
class LineDefaults:
    """Values for lines that do not name their own. `subscriber` also excludes lines of other subscribers."""

    subscriber: str | None
    language: str
    within: str | None


def _subscribe_file(tidings: Tidings, source: str, defaults: LineDefaults, out: Output) -> None:
    """Accept the valid lines, and list the others."""
    from tidings.objects.watches import SubscriberNames
    from tidings.service.bulk_subscribe import BulkSubscriber, BulkWarnings

    _check_defaults(defaults)
    bulk, tally = BulkSubscriber(tidings.subscribing()), Tally(out, "subscription", "made")
    warnings, names = BulkWarnings(tidings.subscribing()), SubscriberNames(tidings.store)
    with output.show_spinner("reading ...") as update:
        for lines in inputs.read_line_batches(source, ACCEPTED, DAMAGED):
            with suggest.bounded_search():
                items = [_parse_line(line.body, defaults, names) for line in lines]
                for line, item, outcome in zip(lines, items, bulk.subscribe(items), strict=True):
                    if isinstance(outcome, TidingsError):
                        tally.refuse(line.where, outcome.facts(), outcome.message(), outcome.hint)
                    else:
                        about = () if isinstance(item, TidingsError) else warnings.about(item.subscription)
                        tally.accept(outcome, line.where, about)
            update(f"{tally.describe()} ...")
    if warnings.skipped:
        output.print_note(f"{plural(warnings.skipped, 'text')} not checked for warnings")
    tally.end()


def _check_defaults(defaults: LineDefaults) -> None:
    """Refuse options that are wrong for all lines, once and before the first line is read."""
    from tidings.service.subscriptions import check_language, parse_delay
    from tidings.store import names

    check_language(defaults.language)
    parse_delay(defaults.within)
    if defaults.subscriber is not None:
        names.check("a subscriber's name", defaults.subscriber)


def _parse_line(line: bytes, defaults: LineDefaults, names: SubscriberNames) -> BulkItem | InputError:
    from tidings.service.bulk_subscribe import BulkItem
    from tidings.service.subscription_lines import parse_subscription_line
    from tidings.service.subscriptions import build_wanted

    try:
        parsed = parse_subscription_line(line, defaults.language, defaults.within)
        with pointing("/subscriber"):
            subscriber = names.resolve(_choose_subscriber(parsed.subscriber, defaults.subscriber))
        subscription = build_wanted(subscriber, parsed.text, parsed.language, parsed.id, parsed.within)
        return BulkItem(subscription, parsed.is_paused)
    except InputError as problem:
        return problem.with_traceback(None)


def _choose_subscriber(in_line: str | None, option: str | None) -> str:
    subscriber = in_line if option is None else option
    if subscriber is None:
        hint = "add --as NAME, or a member `subscriber` to the line"
        raise InputError("the subscriber is missing", hint=hint)
    if in_line not in (None, subscriber):
        hint = "without --as, each line names its own subscriber"
        raise InputError(
            "the line is for another subscriber", received=in_line, accepted=subscriber, hint=hint
        )
    return subscriber


def unsubscribe(home: Home, out: Output, ids: SubscriptionIds) -> None:
    """Remove subscriptions, from the next batch of the stream on. Notifications that exist are kept.

    Example:
      tidings unsubscribe s-7f3a9c01 s-0be4412d
    """
    with home.open() as tidings:
        removed = set(tidings.unsubscribe(ids))
    for id in ids:
        if out.as_json:
            output.print_json({"id": id, "removed": id in removed})
        elif id in removed:
            output.print_line((id, "bold cyan"), "removed")
        else:
            output.print_line((id, "bold red"), "there is no such subscription", stderr=True)
    exit_if_rejects(len(removed) < len(set(ids)))


@dataclass(frozen=True, slots=True)
class ListedSubscription:
    """A subscription with its state: empty, `paused`, or why the service has suspended it."""

    subscription: Subscription
    state: str = ""
    reason: str | None = None

    def record(self) -> dict[str, object]:
        """Return the fields; active subscriptions have no state."""
        state = {"state": "paused"} if self.state else {}
        reason = {"reason": self.reason} if self.reason is not None else {}
        return _to_record(self.subscription) | state | reason


SUBSCRIPTIONS: View[ListedSubscription] = View(
    'no subscriptions yet: tidings subscribe --as NAME "price < 200"',
    columns=(
        ("id", lambda listed: listed.subscription.id),
        ("subscriber", lambda listed: listed.subscription.subscriber),
        ("language", lambda listed: listed.subscription.language),
        ("state", lambda listed: listed.reason or listed.state),
        ("within", lambda listed: _format_delay(listed.subscription)),
        ("text", lambda listed: listed.subscription.text),
    ),
    record=ListedSubscription.record,
    optional=("state", "within"),
)


def subscriptions(home: Home, out: Output, subscriber: SubscriberFilter = None) -> None:
    """List subscriptions: the active ones, then the paused ones.

    Example:
      tidings subscriptions --as ana
    """
    with home.open() as tidings:
        subscriber = subscriber and find_subscriber(tidings.store, subscriber, out)
        active, paused = tidings.subscriptions(subscriber), tidings.store.paused.all(subscriber)
        reasons = tidings.store.paused.reasons(subscriber)
    listed = [ListedSubscription(each) for each in active]
    listed += [ListedSubscription(each, "paused", reasons.get(each.id)) for each in paused]
    view = (
        SUBSCRIPTIONS
        if subscriber is None
        else replace(SUBSCRIPTIONS, empty=f"no subscriptions for {subscriber}")
    )
    out.print_records(listed, view)


def change(
    home: Home,
    out: Output,
    id: Annotated[str, typer.Argument(help="The id of the subscription.")],
    text: Annotated[
        str | None, typer.Argument(metavar="TEXT", help="The new text, in the same language.")
    ] = None,
    within: Annotated[
        str | None, typer.Option(metavar="DELAY", help="The new delay: `10 minutes`, or `at once`.")
    ] = None,
) -> None:
    """Change the text or the delay of a subscription. Its id, feed and deliveries stay.

    Examples:
      tidings change s-7f3a9c01 "price < 100"
      tidings change s-7f3a9c01 --within "1 hour"

    The next batch of the stream matches the new text only. A paused subscription stays paused.
    """
    from tidings.service.subscriptions import parse_delay

    if text is None and within is None:
        raise InputError(
            "there is nothing to change", hint='tidings change ID "price < 100", or --within DELAY'
        )
    with home.open() as tidings:
        service = tidings.subscribing()
        delay = service.find(id).subscription.within
        if within is not None:
            delay = None if within.strip() == IMMEDIATELY else parse_delay(within)
        accepted = service.change(id, text, delay)
    _print_accepted(accepted, out)


def pause(home: Home, out: Output, ids: SubscriptionIds) -> None:
    """Pause subscriptions: nothing is matched for them until you resume them. They keep their ids and texts.

    Example:
      tidings pause s-7f3a9c01
    """
    with home.open() as tidings:
        _change_each(tidings.subscribing().pause, ids, out)


def resume(home: Home, out: Output, ids: SubscriptionIds) -> None:
    """Resume paused subscriptions.

    Example:
      tidings resume s-7f3a9c01

    Publications from the time of the pause are not matched. A rule notifies you of the changes in its results.
    """
    with home.open() as tidings:
        _change_each(tidings.subscribing().resume, ids, out)


def _change_each(apply: Callable[[str], SubscriptionStatus], ids: Sequence[str], out: Output) -> None:
    missing = 0
    for id in ids:
        try:
            state = apply(id).state
        except NotFound as problem:
            missing, state = missing + 1, None
            if not out.as_json:
                output.print_line((id, "bold red"), problem.what, stderr=True)
        if out.as_json:
            output.print_json({"id": id, "state": state})
        elif state:
            output.print_line((id, "bold cyan"), state)
    exit_if_rejects(missing)

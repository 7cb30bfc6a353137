"""`subscribe --file`: the subscriptions of a file, or of standard input, one a line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidings.cli import inputs, output
from tidings.cli.output import Tally
from tidings.core import suggest
from tidings.core.text import plural
from tidings.errors import InputError, TidingsError, pointing

if TYPE_CHECKING:
    from tidings.objects.watches import SubscriberNames
    from tidings.service.bulk_subscribe import BulkItem
    from tidings.service.tidings import Tidings

ACCEPTED = "a .jsonl file (.ndjson, .jsonl.gz) with a subscription a line, or - for standard input"
DAMAGED = "the subscriptions before the damage are made"


@dataclass(frozen=True, slots=True)
class LineDefaults:
    """What holds for lines that do not say it themselves. Whose they are, no line may say otherwise."""

    subscriber: str | None
    language: str
    within: str | None


def subscribe_file(tidings: Tidings, what: str, unsaid: LineDefaults, as_json: bool) -> None:
    """Take those that are good, and list the others."""
    from tidings.objects.watches import SubscriberNames
    from tidings.service.bulk_subscribe import BulkSubscriber, BulkWarnings

    _check(unsaid)
    many, tally = BulkSubscriber(tidings.subscribing()), Tally("subscription", "made", as_json)
    warnings, names = BulkWarnings(tidings.subscribing()), SubscriberNames(tidings.store)
    with output.show_spinner("reading ...") as say:
        for lines in inputs.read_line_batches(what, ACCEPTED, DAMAGED):
            with suggest.bounded_search():
                wanted = _wanted(lines, unsaid, names)
                for line, wish, outcome in zip(lines, wanted, many.take(wanted), strict=True):
                    if isinstance(outcome, TidingsError):
                        tally.refuse(line.where, outcome.facts(), outcome.message(), outcome.hint)
                    else:
                        about = () if isinstance(wish, TidingsError) else warnings.about(wish.subscription)
                        tally.take(outcome, line.where, about)
            say(f"{tally.describe()} ...")
    if warnings.passed_over:
        output.print_note(f"{plural(warnings.passed_over, 'text')} not looked through for warnings")
    tally.end()


def _check(unsaid: LineDefaults) -> None:
    """What is wrong for all lines is said once, before one is read."""
    from tidings.service.subscriptions import check_language, parse_delay
    from tidings.store import names

    check_language(unsaid.language)
    parse_delay(unsaid.within)
    if unsaid.subscriber is not None:
        names.check("a subscriber's name", unsaid.subscriber)


def _wanted(
    lines: Sequence[inputs.InputLine], unsaid: LineDefaults, names: SubscriberNames
) -> list[BulkItem | TidingsError]:
    def one(line: bytes) -> BulkItem | TidingsError:
        try:
            return _read(line, unsaid, names)
        except InputError as problem:
            return problem.with_traceback(None)

    return [one(line.body) for line in lines]


def _read(line: bytes, unsaid: LineDefaults, names: SubscriberNames) -> BulkItem:
    from tidings.service.bulk_subscribe import BulkItem
    from tidings.service.subscription_lines import parse_subscription_line
    from tidings.service.subscriptions import build_wanted

    asked = parse_subscription_line(line, unsaid.language, unsaid.within)
    with pointing("/subscriber"):
        subscriber = names.resolve(_whose(asked.subscriber, unsaid.subscriber))
    wanted = build_wanted(subscriber, asked.text, asked.language, asked.id, asked.within)
    return BulkItem(wanted, asked.is_paused)


def _whose(said: str | None, named: str | None) -> str:
    subscriber = said if named is None else named
    if subscriber is None:
        raise InputError("for whom?", hint="say --as NAME, or name the subscriber in the line")
    if said not in (None, subscriber):
        hint = "without --as, each is for whom its line names"
        raise InputError("the line is for another subscriber", received=said, accepted=subscriber, hint=hint)
    return subscriber

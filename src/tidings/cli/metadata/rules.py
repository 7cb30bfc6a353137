"""`provider rule`, `rules`, `forget`, `results`: the rules over metadata."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidings.cli import output
from tidings.cli.options import (
    DEFAULT_HOME,
    HomeOption,
    JsonOption,
    MasterOption,
    StoreOption,
    SubscriberOption,
    check_master,
    close_spark,
    format_help,
    open_provider,
    open_spark,
    open_tidings,
    resolve_subscriber,
)
from tidings.cli.output import (
    PictureOption,
    check_picture_format,
    print_resource,
    print_result_changes,
    write_picture,
)
from tidings.core import durations
from tidings.core.text import plural
from tidings.errors import InputError

if TYPE_CHECKING:
    from tidings.metadata.provider.log_applier import SchemaContext
    from tidings.metadata.sql.rule_base import NamedRule
    from tidings.metadata.sql.rule_filter import RuleResult
    from tidings.metadata.sql.trigger_evaluation import TriggerResults
    from tidings.service.tidings import Tidings


# Rules on their way into a provider: evaluated by the store, or on Spark where that would take it long.


SparkOption = Annotated[
    bool | None,
    typer.Option(
        "--spark/--no-spark",
        help="Look through what is stored on Spark, or not; when nothing is said, if there is much to compare.",
        show_default=False,
    ),
]


def add_rules(
    texts: Mapping[str, str],
    owner: str,
    *,
    within: int | None,
    spark: bool | None,
    master: str | None,
    home: Path,
    store: str | None,
) -> frozenset[RuleResult]:
    """Add rules, and say what they have entered."""
    from tidings.metadata.provider.provider import Provider

    check_master(master)
    with open_tidings(home, store) as tidings, RuleEvaluator(tidings, spark, master) as choice:
        whose = resolve_subscriber(tidings.store, owner)
        return Provider(tidings.store).add_rules(texts, whose, within=within, evaluate=choice)


def read_rule_file(file: Path, home: Path, store: str | None) -> dict[str, str]:
    """The rules of a file; what is wrong is told with its place there."""
    from tidings.metadata.provider.provider import Provider
    from tidings.metadata.rules.rule_files import parse_rule_file

    rules = parse_rule_file(file)
    with open_tidings(home, store) as tidings:
        rules.check(Provider(tidings.store).schema)
    return rules.texts


class RuleEvaluator(ExitStack):
    """What evaluates new rules. Spark is started when it is needed, and stopped in the end."""

    def __init__(self, tidings: Tidings, wanted: bool | None, master: str | None) -> None:
        super().__init__()
        self._tidings, self._wanted, self._master = tidings, wanted, master
        self._on_spark: Any = None

    def __call__(self, known: SchemaContext, rules: Sequence[NamedRule]) -> TriggerResults | None:
        from tidings.metadata.provider.rule_changes import SPARK_THRESHOLD, estimate_comparisons

        metadata = self._tidings.store.metadata
        new = metadata.new_triggering_rules(known.schema, rules)
        count = metadata.count_resources()
        asked = estimate_comparisons(new.values(), count)
        if self._wanted is False or not new or (self._wanted is None and asked < SPARK_THRESHOLD):
            return None
        why = f"{plural(len(new), 'new triggering rule')} over {plural(count, 'resource')}"
        more = "" if self._wanted else f", {asked:,} comparisons; --no-spark leaves it to the store"
        output.print_note(f"on Spark: {why}{more}")
        found: TriggerResults = self._started()(known, rules)
        return found

    def _started(self) -> Any:
        if self._on_spark is None:
            from tidings.metadata.spark.rule_evaluation import SparkRuleEvaluator

            session = open_spark(self._master, log=self._tidings.home / "spark.log")
            self.callback(close_spark, session)
            self._on_spark = self.enter_context(
                SparkRuleEvaluator(session, self._tidings.store, self._tidings.home)
            )
        return self._on_spark


DelayOption = Annotated[
    str | None,
    typer.Option(
        metavar="DELAY",
        help="Gather notifications and hand them over together, no later than this: [cyan]10 minutes[/].",
        show_default=False,
    ),
]
RuleName = Annotated[str, typer.Argument(metavar="NAME", help="What the rule is called.", show_default=False)]


def rule(
    name: RuleName,
    text: Annotated[
        str,
        typer.Argument(metavar="TEXT", help="[cyan]search ... register ... where ...[/]", show_default=False),
    ],
    subscriber: SubscriberOption,
    within: DelayOption = None,
    spark: SparkOption = None,
    master: MasterOption = None,
    home: HomeOption = DEFAULT_HOME,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add a rule. What it finds among what is registered is entered at once.

    What enters its results, changes inside them and leaves is told: [cyan]tidings notifications --as ana[/].

    [dim]Examples[/]
      tidings provider rule large "search ServerInformation s register s where s.memory > 64" --as ana
      tidings provider rule all "search CycleProvider c register c" --as ana --within "10 minutes"
    """
    delay = None if within is None else durations.parse(within)
    entered = add_rules(
        {name: text}, subscriber, within=delay, spark=spark, master=master, home=home, store=store
    )
    print_result_changes("entered", entered, as_json)
    if not as_json:
        output.print_line((name, "bold cyan"), plural(len(entered), "resource"))


def rules(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE", help="Rules to be added: [cyan]NAME: search ...[/]", show_default=False
        ),
    ] = None,
    subscriber: Annotated[
        str | None, typer.Option("--as", metavar="NAME", help="Whose the rules of the file are.")
    ] = None,
    within: DelayOption = None,
    spark: SparkOption = None,
    master: MasterOption = None,
    home: HomeOption = DEFAULT_HOME,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the rules; with a file, add those that are in it, all or none.

    [dim]Examples[/]
      tidings provider rules
      tidings provider rules rules.txt --as ana
    """
    if file is not None:
        if subscriber is None:
            raise InputError("whose rules are these?", accepted="--as NAME")
        delay = None if within is None else durations.parse(within)
        texts = read_rule_file(file, home, store)
        entered = add_rules(
            texts, subscriber, within=delay, spark=spark, master=master, home=home, store=store
        )
        print_result_changes("entered", entered, as_json)
        if not as_json:
            output.print_line(f"{plural(len(texts), 'rule')}, {len(entered):,} entered")
        return
    if subscriber is not None or within is not None or spark is not None or master is not None:
        raise InputError(
            "which rules are to be added?", accepted="a FILE", hint="without one they are listed"
        )
    with open_provider(home, store) as provider:
        found = provider.rules()
    for each in found:
        if as_json:
            output.print_json({"name": each.name, "owner": each.owner, "text": each.text})
        else:
            output.print_line((each.name, "bold cyan"), (each.owner, "dim"), each.text)
    if not found and not as_json:
        output.print_note("no rules: tidings provider rule NAME TEXT --as NAME")


def forget(
    name: RuleName, home: HomeOption = DEFAULT_HOME, store: StoreOption = None, as_json: JsonOption = False
) -> None:
    """Forget a rule.

    [dim]Example[/]
      tidings provider forget large
    """
    with open_provider(home, store) as provider:
        gone = provider.remove_rules([name])
    output.print_removal({"name": name}, bool(gone), "forgotten", "there is no such rule", as_json)


def results(
    name: RuleName, home: HomeOption = DEFAULT_HOME, store: StoreOption = None, as_json: JsonOption = False
) -> None:
    """Show the resources that a rule has as its results now.

    [dim]Example[/]
      tidings provider results large
    """
    from tidings.metadata.queries.answers import restore_dates

    with open_provider(home, store) as provider:
        found = [restore_dates(each, provider.schema) for each in provider.results(name)]
    for resource in found:
        print_resource(resource, as_json)
    if not found and not as_json:
        output.print_note("nothing")


# `rules`: looking at what rules are made of.


app = typer.Typer(no_args_is_help=True, help="What the rules over metadata are made of.")


def graph(
    rules: Annotated[
        list[str] | None,
        typer.Option(
            "--rule",
            metavar="NAME",
            help="Only this rule and what it needs; several times for several rules.",
        ),
    ] = None,
    out: PictureOption = None,
    home: HomeOption = DEFAULT_HOME,
    store: StoreOption = None,
) -> None:
    """Draw how rules are taken apart into atomic rules, and what they share, with counts of results: an SVG.

    Triggering rules stand at the bottom, join rules above what they join, and rules with names on top. A rule base that
    is too large for that is drawn as kinds of rules.

    [dim]Examples[/]
      tidings rules graph --out rules.svg
      tidings rules graph --rule large --rule all > rules.svg
    """
    from tidings.metadata.filter.rule_picture import build_rule_picture

    check_picture_format(out)
    with open_tidings(home, store) as tidings:
        picture = build_rule_picture(tidings.store, rules or ())
    write_picture(picture, out)


@app.callback()
def rules_group() -> None:
    """A group of its own, though it has one command only."""


app.command(help=format_help(graph))(graph)

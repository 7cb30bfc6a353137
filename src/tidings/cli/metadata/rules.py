"""`provider rule`, `rules`, `remove-rule`, `results` and `rules graph`: the rules over metadata."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidings.cli import output
from tidings.cli.command import make_group
from tidings.cli.options import (
    DelayOption,
    Home,
    MasterOption,
    SubscriberOption,
    check_master,
    open_spark,
    resolve_subscriber,
)
from tidings.cli.output import Output, PictureOption, View, check_picture_format, write_picture
from tidings.core import durations
from tidings.core.text import plural
from tidings.errors import InputError

if TYPE_CHECKING:
    from tidings.metadata.provider.log_applier import SchemaContext
    from tidings.metadata.resources import Resource, Value
    from tidings.metadata.sql.metadata_reader import StoredRule
    from tidings.metadata.sql.rule_base import NamedRule
    from tidings.metadata.sql.rule_filter import RuleResult
    from tidings.metadata.sql.trigger_evaluation import TriggerResults
    from tidings.service.tidings import Tidings
    from tidings.values import Scalar


@dataclass(frozen=True)
class RuleOptions:
    """Delay of notifications of new rules, and the engine that evaluates the rules first."""

    within: DelayOption = None
    spark: Annotated[
        bool | None,
        typer.Option(
            "--spark/--no-spark",
            help="Evaluate new rules over the stored metadata on Spark, or in the store; by default, on Spark if "
            "there is much to compare.",
        ),
    ] = None
    master: MasterOption = None

    def check(self) -> int | None:
        """Refuse an invalid delay or Spark master; return the delay in seconds."""
        delay = None if self.within is None else durations.parse(self.within)
        check_master(self.master)
        return delay

    def add_rules(
        self, home: Home, out: Output, texts: Mapping[str, str], owner: str
    ) -> frozenset[RuleResult]:
        """Add rules; return the resources that entered their results."""
        from tidings.metadata.provider.provider import Provider

        delay = self.check()
        with home.open() as tidings, RuleEvaluator(tidings, self.spark, self.master) as evaluator:
            subscriber = resolve_subscriber(tidings.store, owner, out)
            return Provider(tidings.store).add_rules(texts, subscriber, within=delay, evaluate=evaluator)


class RuleEvaluator(ExitStack):
    """Evaluator of new rules. Spark is started when it is needed, and stopped at the end."""

    def __init__(self, tidings: Tidings, use_spark: bool | None, master: str | None) -> None:
        super().__init__()
        self._tidings, self._use_spark, self._master = tidings, use_spark, master
        self._on_spark: Any = None

    def __call__(self, context: SchemaContext, rules: Sequence[NamedRule]) -> TriggerResults | None:
        from tidings.metadata.provider.rule_changes import SPARK_THRESHOLD, estimate_comparisons

        metadata = self._tidings.store.metadata
        new = metadata.new_triggering_rules(context.schema, rules)
        count = metadata.count_resources()
        comparisons = estimate_comparisons(new.values(), count)
        if self._use_spark is False or not new or (self._use_spark is None and comparisons < SPARK_THRESHOLD):
            return None
        work = f"{plural(len(new), 'new triggering rule')} over {plural(count, 'resource')}"
        comparison_note = (
            "" if self._use_spark else f", {comparisons:,} comparisons; --no-spark leaves it to the store"
        )
        output.print_note(f"on Spark: {work}{comparison_note}")
        results: TriggerResults = self._start()(context, rules)
        return results

    def _start(self) -> Any:
        if self._on_spark is None:
            from tidings.metadata.spark.rule_evaluation import SparkRuleEvaluator

            session = self.enter_context(open_spark(self._master, log=self._tidings.home / "spark.log"))
            self._on_spark = self.enter_context(
                SparkRuleEvaluator(session, self._tidings.store, self._tidings.home)
            )
        return self._on_spark


RuleName = Annotated[str, typer.Argument(metavar="NAME", help="The name of the rule.")]


def rule(
    options: RuleOptions,
    home: Home,
    out: Output,
    name: RuleName,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="`search ... register ... where ...`")],
    subscriber: SubscriberOption,
) -> None:
    """Add a rule, and print the registered resources that it finds.

    Examples:
      tidings provider rule large "search ServerInformation s register s where s.memory > 64" --as ana
      tidings provider rule all "search CycleProvider c register c" --as ana --within "10 minutes"

    The subscriber is notified when a resource enters the results, changes in them or leaves them:
    `tidings notifications --as ana`.
    """
    entered = options.add_rules(home, out, {name: text}, subscriber)
    print_result_changes("entered", entered, out)
    if not out.as_json:
        output.print_line((name, "bold cyan"), plural(len(entered), "resource"))


RULES: View[StoredRule] = View(
    "no rules: tidings provider rule NAME TEXT --as NAME",
    line=lambda rule: ((rule.name, "bold cyan"), (rule.owner, "dim"), rule.text),
    record=lambda rule: output.select_fields(rule, "name", "owner", "text"),
)


def rules(
    options: RuleOptions,
    home: Home,
    out: Output,
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="Rules to add: `NAME: search ...`")
    ] = None,
    subscriber: Annotated[
        str | None, typer.Option("--as", metavar="NAME", help="The owner of the rules in the file.")
    ] = None,
) -> None:
    """List the rules; with a file, add all of its rules or none.

    Examples:
      tidings provider rules
      tidings provider rules rules.txt --as ana
    """
    if file is None:
        if subscriber is not None or options != RuleOptions():
            hint = "without a file, the rules are listed"
            raise InputError("the rules to add are missing", accepted="a FILE", hint=hint)
        with home.open_provider() as provider:
            out.print_records(provider.rules(), RULES)
        return
    if subscriber is None:
        raise InputError("the owner of the rules is missing", accepted="--as NAME")
    options.check()
    texts = _read_rule_file(file, home)
    entered = options.add_rules(home, out, texts, subscriber)
    print_result_changes("entered", entered, out)
    if not out.as_json:
        output.print_line(f"{plural(len(texts), 'rule')}, {len(entered):,} entered")


def _read_rule_file(file: Path, home: Home) -> dict[str, str]:
    """Read the rules of a file; errors name their place in the file."""
    from tidings.metadata.rules.rule_files import parse_rule_file

    rules = parse_rule_file(file)
    with home.open_provider() as provider:
        rules.check(provider.schema)
    return rules.texts


def remove_rule(home: Home, out: Output, name: RuleName) -> None:
    """Remove a rule.

    Example:
      tidings provider remove-rule large
    """
    with home.open_provider() as provider:
        removed = provider.remove_rules([name])
    out.print_removal({"name": name}, bool(removed), "removed", "there is no such rule")


def results(home: Home, out: Output, name: RuleName) -> None:
    """Print the resources that are the present results of a rule.

    Example:
      tidings provider results large
    """
    from tidings.metadata.queries.answers import restore_dates

    with home.open_provider() as provider:
        resources = [restore_dates(each, provider.schema) for each in provider.results(name)]
    for resource in resources:
        print_resource(resource, out)
    if not resources:
        out.print_note("no resources")


_CHANGE_STYLES = {"entered": "bold green", "changed": "bold yellow", "left": "bold red"}


def print_result_changes(kind: str, pairs: Iterable[tuple[str, str]], out: Output) -> None:
    """Print which resources entered, changed in or left the results of which rules."""
    for rule, uri in sorted(pairs):
        record = {"rule": rule, "kind": kind, "uri": uri}
        out.print_record(record, (rule, "bold cyan"), (kind, _CHANGE_STYLES[kind]), uri)


def print_resource(resource: Resource, out: Output) -> None:
    """Print a resource with its class and values."""
    from tidings.metadata.queries.browser import display_value
    from tidings.metadata.resources import Ref

    def display(value: Value) -> str:
        return f"-> {value.uri}" if isinstance(value, Ref) else display_value(value)

    def to_json(value: Value) -> Scalar | dict[str, str]:
        return {"ref": value.uri} if isinstance(value, Ref) else value

    values = resource.values.items()
    lists = {name: [to_json(value) for value in each] for name, each in values}
    cells = [f"{name} {', '.join(map(display, each))}" for name, each in values]
    record = {"uri": resource.uri, "class": resource.cls, "values": lists}
    out.print_record(record, (resource.uri, "bold cyan"), (resource.cls, "dim"), *cells)


def graph(
    home: Home,
    rules: Annotated[
        list[str] | None,
        typer.Option("--rule", metavar="NAME", help="Only this rule and its dependencies; may be repeated."),
    ] = None,
    out: PictureOption = None,
) -> None:
    """Draw the decomposition of rules into shared atomic rules, with result counts, as an SVG.

    Examples:
      tidings rules graph --out rules.svg
      tidings rules graph --rule large --rule all > rules.svg

    Triggering rules are at the bottom, join rules above their inputs, and named rules at the top. A large rule base is
    drawn as groups of rules.
    """
    from tidings.metadata.filter.rule_picture import build_rule_picture

    check_picture_format(out)
    with home.open() as tidings:
        picture = build_rule_picture(tidings.store, rules or ())
    write_picture(picture, out)


app = make_group("The structure of the rules over metadata.", {"graph": graph})


@app.callback()
def rules_group() -> None:
    """Make it a group although it has one command only."""

"""`provider rule`, `rules`, `forget`, `results`: the rules over metadata."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tidings import durations
from tidings.counts import plural
from tidings.errors import InputError
from tidings.interfaces.cli import adding_rules, output
from tidings.interfaces.cli.options import (
    DEFAULT_HOME,
    AsJson,
    Home,
    Master,
    Store,
    Subscriber,
    open_provider,
)
from tidings.interfaces.cli.resources import show_moves, show_resource

Within = Annotated[
    str | None,
    typer.Option(
        metavar="DELAY",
        help="Gather notifications and hand them over together, no later than this: [cyan]10 minutes[/].",
        show_default=False,
    ),
]
Name = Annotated[str, typer.Argument(metavar="NAME", help="What the rule is called.", show_default=False)]


def rule(
    name: Name,
    text: Annotated[
        str,
        typer.Argument(metavar="TEXT", help="[cyan]search ... register ... where ...[/]", show_default=False),
    ],
    subscriber: Subscriber,
    within: Within = None,
    spark: adding_rules.OnSpark = None,
    master: Master = None,
    home: Home = DEFAULT_HOME,
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Add a rule. What it finds among what is registered is entered at once.

    What enters its results, changes inside them and leaves is told: [cyan]tidings notifications --as ana[/].

    [dim]Examples[/]
      tidings provider rule large "search ServerInformation s register s where s.memory > 64" --as ana
      tidings provider rule all "search CycleProvider c register c" --as ana --within "10 minutes"
    """
    delay = None if within is None else durations.parse(within)
    entered = adding_rules.add(
        {name: text}, subscriber, within=delay, spark=spark, master=master, home=home, store=store
    )
    show_moves("entered", entered, as_json)
    if not as_json:
        output.line((name, "bold cyan"), plural(len(entered), "resource"))


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
    within: Within = None,
    spark: adding_rules.OnSpark = None,
    master: Master = None,
    home: Home = DEFAULT_HOME,
    store: Store = None,
    as_json: AsJson = False,
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
        texts = adding_rules.from_file(file, home, store)
        entered = adding_rules.add(
            texts, subscriber, within=delay, spark=spark, master=master, home=home, store=store
        )
        show_moves("entered", entered, as_json)
        if not as_json:
            output.line(f"{plural(len(texts), 'rule')}, {len(entered):,} entered")
        return
    if subscriber is not None or within is not None or spark is not None or master is not None:
        raise InputError(
            "which rules are to be added?", accepted="a FILE", hint="without one they are listed"
        )
    with open_provider(home, store) as provider:
        found = provider.rules()
    for each in found:
        if as_json:
            output.json_line({"name": each.name, "owner": each.owner, "text": each.text})
        else:
            output.line((each.name, "bold cyan"), (each.owner, "dim"), each.text)
    if not found and not as_json:
        output.note("no rules: tidings provider rule NAME TEXT --as NAME")


def forget(name: Name, home: Home = DEFAULT_HOME, store: Store = None, as_json: AsJson = False) -> None:
    """Forget a rule.

    [dim]Example[/]
      tidings provider forget large
    """
    with open_provider(home, store) as provider:
        gone = provider.remove_rules([name])
    output.removed({"name": name}, bool(gone), "forgotten", "there is no such rule", as_json)


def results(name: Name, home: Home = DEFAULT_HOME, store: Store = None, as_json: AsJson = False) -> None:
    """Show the resources that a rule has as its results now.

    [dim]Example[/]
      tidings provider results large
    """
    from tidings.metadata.dates import dated

    with open_provider(home, store) as provider:
        found = [dated(each, provider.schema) for each in provider.results(name)]
    for resource in found:
        show_resource(resource, as_json)
    if not found and not as_json:
        output.note("nothing")

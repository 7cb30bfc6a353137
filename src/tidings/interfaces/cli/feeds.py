"""`feeds`: where a subscriber's feeds are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from tidings.errors import InputError
from tidings.interfaces.cli import output
from tidings.interfaces.cli.options import (
    DEFAULT_HOME,
    AsJson,
    Home,
    PublicUrl,
    Store,
    Subscriber,
    open_tidings,
)
from tidings.interfaces.cli.subscriber_names import found_as

if TYPE_CHECKING:
    from tidings.feeds.addressed import Addressed

NO_RULE_FEEDS = "have no feeds: tidings notifications shows what they find"
MADE_ELSEWHERE = "made in another home folder; copy its feeds.key here, or make a new one with --revoke"


def feeds(
    subscriber: Subscriber,
    revoke: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="Make a new address for this subscription's feed; the old one ends."),
    ] = None,
    revoke_list: Annotated[
        bool, typer.Option("--revoke-list", help="Make a new address for the list of all feeds.")
    ] = False,
    public_url: PublicUrl = None,
    home: Home = DEFAULT_HOME,
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Show where a subscriber's feeds are: one for each subscription but rules, and the list of all (OPML).

    Whoever knows an address can read the feed, so keep it as you keep a password. [cyan]tidings serve[/] has to run for
    readers to find it. Without an ending an address gives the format that the reader asks for; with [cyan].atom[/],
    [cyan].rss[/], [cyan].rdf[/] or [cyan].json[/] it gives that one.

    [dim]Examples[/]
      tidings feeds --as cy
      tidings feeds --as cy --revoke s-21bd0c4e
    """
    from tidings.feeds.addressed import addressed, all_addressed, renewed
    from tidings.operating.loading import load

    reached = public_url or load({"home": home}).settings.reached_at()
    with open_tidings(home, store) as tidings:
        subscriber = found_as(tidings.store, subscriber, quiet=as_json)
        found = tidings.feeds_at(reached)
        for id in revoke or ():
            if found.find(subscriber, id) is None:
                hint = f"tidings subscriptions --as {subscriber}"
                raise InputError(f"{subscriber} has no subscription '{id}'", hint=hint)
        for each in [*(revoke or ()), *([None] if revoke_list else [])]:
            renewed(found, subscriber, each)
        listed = all_addressed(found, subscriber)
        listed += [addressed(found, subscriber)] if listed else []
        has_rules = tidings.store.metadata.has_rules(subscriber)
    if has_rules and not as_json:
        output.note(f"the rules of {subscriber} {NO_RULE_FEEDS}")
    elif not listed and not as_json:
        output.note(f"no subscriptions for {subscriber}")
    if as_json:
        for one in listed:
            kind = "opml" if one.subscription is None else "feed"
            output.json_line({"kind": kind, "subscription": one.subscription, "address": one.address})
    else:
        _show(listed)


def _show(listed: Sequence[Addressed]) -> None:
    names = ["all" if one.subscription is None else one.subscription for one in listed]
    wide = max(map(len, names), default=0), max((len(one.address or "") for one in listed), default=0)
    for name, one in zip(names, listed, strict=True):
        called = (name.ljust(wide[0]), "bold cyan")
        if one.address is None:
            output.line(called, (MADE_ELSEWHERE, "yellow"))
        else:
            formats = "OPML" if one.subscription is None else "Atom, RSS, JSON"
            output.line(called, one.address.ljust(wide[1]), (f"({formats})", "dim"))

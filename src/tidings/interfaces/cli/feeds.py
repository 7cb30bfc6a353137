"""`feeds`: where a subscriber's feeds are."""

from __future__ import annotations

from typing import Annotated

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
    """Show where a subscriber's feeds are: one for each subscription, and the list of all (OPML).

    Whoever knows an address can read the feed, so keep it as you keep a password. [cyan]tidings serve[/] has to run for
    readers to find it. Without an ending an address gives the format that the reader asks for; with [cyan].atom[/],
    [cyan].rss[/], [cyan].rdf[/] or [cyan].json[/] it gives that one.

    [dim]Examples[/]
      tidings feeds --as cy
      tidings feeds --as cy --revoke s-21bd0c4e
    """
    from tidings.feeds.tokens import ALL
    from tidings.operating.loading import load

    reached = public_url or load({"home": home}).settings.reached_at()
    with open_tidings(home, store) as tidings:
        found = tidings.feeds_at(reached)
        known = {one.id for one, _ in found.listed(subscriber)}
        for id in revoke or ():
            if id not in known:
                hint = f"tidings subscriptions --as {subscriber}"
                raise InputError(f"{subscriber} has no subscription '{id}'", hint=hint)
        for id in [*(revoke or ()), *([ALL] if revoke_list else [])]:
            found.addresses.renew(subscriber, id)
        listed = [(one.id, token and found.places.feed(token)) for one, token in found.listed(subscriber)]
        of_all = found.addresses.token(subscriber) if listed else None
        opml = of_all and found.places.opml(of_all)
    if not listed and not as_json:
        output.note(f"no subscriptions for {subscriber}")
    for id, address in listed:
        _show(id, address, "Atom, RSS, JSON", as_json)
    if listed:
        _show("all", opml, "OPML", as_json)


def _show(name: str, address: str | None, formats: str, as_json: bool) -> None:
    if as_json:
        kind = "opml" if formats == "OPML" else "feed"
        output.json_line({"kind": kind, "subscription": None if kind == "opml" else name, "address": address})
    elif address is None:
        output.line((name, "bold cyan"), (MADE_ELSEWHERE, "yellow"))
    else:
        output.line((name, "bold cyan"), address, (f"({formats})", "dim"))

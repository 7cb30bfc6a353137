"""`token make`, `token list` and `token revoke`: who may use the service over HTTP, and for what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidings.cli import output
from tidings.cli.options import (
    DEFAULT_HOME,
    HomeOption,
    JsonOption,
    StoreOption,
    format_help,
    open_tidings,
    resolve_subscriber,
)

if TYPE_CHECKING:
    from tidings.store.tokens import Token

app = typer.Typer(
    no_args_is_help=True, help="Tokens: who may use [cyan]tidings serve[/] over HTTP, and what for."
)


def make(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="What the token is called.", show_default=False)
    ],
    scope: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SCOPE",
            help="What it is for: [cyan]publish[/], [cyan]subscribe[/] or [cyan]administer[/]; may be repeated. "
            "[cyan]subscribe[/] when nothing is said.",
            show_default=False,
        ),
    ] = None,
    subscriber: Annotated[
        str | None,
        typer.Option("--as", metavar="NAME", help="The subscriber it is for.", show_default=False),
    ] = None,
    lasting: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="How long it is good for: [cyan]30 days[/]. For ever when nothing is said.",
            show_default=False,
        ),
    ] = None,
    home: HomeOption = DEFAULT_HOME,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a token. It is shown once: the store keeps its hash only.

    With [cyan]subscribe[/] whoever has it sees and changes the subscriptions and notifications of one subscriber, and
    of nobody else.

    [dim]Examples[/]
      tidings token make "ana's phone" --as ana
      tidings token make shop --scope publish --lasting "365 days"
      tidings token make operations --scope administer
    """
    from tidings.service.authorization import Access

    with open_tidings(home, store) as tidings:
        whose = subscriber and resolve_subscriber(tidings.store, subscriber, as_json)
        made = Access(tidings.store).make(name, scope or ["subscribe"], whose, lasting)
    if as_json:
        output.print_json(_record(made.token) | {"token": made.secret})
    else:
        output.print_line((made.token.id, "bold cyan"), _for(made.token))
        output.print_line(made.secret)
        output.print_note("it is not shown again")


def list_tokens(
    home: HomeOption = DEFAULT_HOME, store: StoreOption = None, as_json: JsonOption = False
) -> None:
    """List the tokens that were made, with what they are for and how long; never the tokens themselves.

    [dim]Example[/]
      tidings token list
    """
    from tidings.service.authorization import Access

    with open_tidings(home, store) as tidings:
        found = Access(tidings.store).list()
    if as_json:
        for one in found:
            output.print_json(_record(one))
    elif found:
        rows = [(one.id, one.name, _for(one), one.made[:10], _end(one)) for one in found]
        output.print_table(("id", "name", "for", "made", "until"), rows)
    else:
        output.print_note("no tokens: tidings token make NAME --as SUBSCRIBER")


def revoke(
    id: Annotated[str, typer.Argument(metavar="ID", help="The token's id.", show_default=False)],
    home: HomeOption = DEFAULT_HOME,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Revoke a token: it is good for nothing from now on.

    [dim]Example[/]
      tidings token revoke t-3
    """
    from tidings.service.authorization import Access

    with open_tidings(home, store) as tidings:
        revoked = Access(tidings.store).revoke(id)
    output.print_removal(
        {"id": id}, revoked, "revoked", "there is no such token, or it was revoked before", as_json
    )


def _for(token: Token) -> str:
    scopes = ", ".join(sorted(token.scopes))
    return f"{scopes} as {token.subscriber}" if token.subscriber else scopes


def _end(token: Token) -> str:
    if token.revoked:
        return f"revoked {token.revoked[:10]}"
    return token.expires[:16].replace("T", " ") if token.expires else ""


def _record(token: Token) -> dict[str, Any]:
    names = ("id", "name", "subscriber", "made", "expires", "revoked")
    return {name: getattr(token, name) for name in names} | {"scopes": sorted(token.scopes)}


app.command(help=format_help(make))(make)
app.command("list", help=format_help(list_tokens))(list_tokens)
app.command(help=format_help(revoke))(revoke)

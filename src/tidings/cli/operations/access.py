"""`token ...` and `audience ...`: who may use the service over HTTP, and who may see labelled publications."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidings.cli import output
from tidings.cli.command import make_group
from tidings.cli.options import (
    Home,
    SubscriberFilter,
    SubscriberOption,
    find_subscriber,
    resolve_subscriber,
)
from tidings.cli.output import Output, View, select_fields

if TYPE_CHECKING:
    from tidings.store.audiences import Grant
    from tidings.store.tokens import Token


def make(
    home: Home,
    out: Output,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name for the token.")],
    scope: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SCOPE",
            help="`publish`, `subscribe` (the default) or `administer`; may be repeated.",
        ),
    ] = None,
    subscriber: Annotated[
        str | None, typer.Option("--as", metavar="NAME", help="The subscriber it is for.")
    ] = None,
    expires_in: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="How long it is valid: `30 days`. By default without limit."),
    ] = None,
) -> None:
    """Create a token. It is printed once: the store only keeps its hash.

    Examples:
      tidings token make "ana's phone" --as ana
      tidings token make shop --scope publish --expires-in "365 days"
      tidings token make operations --scope administer

    A token with the scope `subscribe` gives access to the subscriptions and notifications of one subscriber only.
    """
    from tidings.service.authorization import Access

    with home.open() as tidings:
        owner = subscriber and resolve_subscriber(tidings.store, subscriber, out)
        created = Access(tidings.store).make(name, scope or ["subscribe"], owner, expires_in)
    record = _to_record(created.token) | {"token": created.secret}
    out.print_record(record, (created.token.id, "bold cyan"), _format_scopes(created.token))
    if not out.as_json:
        output.print_line(created.secret)
        output.print_note("it is not shown again")


def _format_scopes(token: Token) -> str:
    scopes = ", ".join(sorted(token.scopes))
    return f"{scopes} as {token.subscriber}" if token.subscriber else scopes


def _format_end(token: Token) -> str:
    if token.revoked:
        return f"revoked {token.revoked[:10]}"
    return token.expires[:16].replace("T", " ") if token.expires else ""


def _to_record(token: Token) -> dict[str, Any]:
    names = ("id", "name", "subscriber", "made", "expires", "revoked")
    return select_fields(token, *names) | {"scopes": sorted(token.scopes)}


TOKENS: View[Token] = View(
    "no tokens: tidings token make NAME --as SUBSCRIBER",
    columns=(
        ("id", "id"),
        ("name", "name"),
        ("for", _format_scopes),
        ("made", lambda token: token.made[:10]),
        ("until", _format_end),
    ),
    record=_to_record,
)


def list_tokens(home: Home, out: Output) -> None:
    """List tokens with their scopes and validity; never the secrets.

    Example:
      tidings token list
    """
    from tidings.service.authorization import Access

    with home.open() as tidings:
        tokens = Access(tidings.store).list()
    out.print_records(tokens, TOKENS)


def revoke_token(
    home: Home, out: Output, id: Annotated[str, typer.Argument(metavar="ID", help="The id of the token.")]
) -> None:
    """Revoke a token: it is invalid from now on.

    Example:
      tidings token revoke t-3
    """
    from tidings.service.authorization import Access

    with home.open() as tidings:
        revoked = Access(tidings.store).revoke(id)
    out.print_removal({"id": id}, revoked, "revoked", "there is no such token, or it was revoked before")


token_app = make_group(
    "Tokens: access to `tidings serve` over HTTP, by scope.",
    {"make": make, "list": list_tokens, "revoke": revoke_token},
)


# Audiences.


Label = Annotated[str, typer.Argument(metavar="LABEL", help="The label of the publications.")]


def grant(home: Home, out: Output, label: Label, subscriber: SubscriberOption) -> None:
    """Let a subscriber see publications with a label, from now on.

    Examples:
      tidings audience grant board --as ana
      tidings publish merger.json --audience board
    """
    with home.open() as tidings:
        subscriber = resolve_subscriber(tidings.store, subscriber, out)
        new = tidings.store.audiences.grant(subscriber, label)
    message = f"{subscriber} may see it" if new else f"{subscriber} may see it already"
    record = {"label": label, "subscriber": subscriber, "new": new}
    out.print_record(record, (label, "bold cyan"), message)


def revoke_grant(home: Home, out: Output, label: Label, subscriber: SubscriberOption) -> None:
    """Revoke a label from a subscriber. The contents of earlier notifications are withheld as well.

    Example:
      tidings audience revoke board --as ana
    """
    with home.open() as tidings:
        subscriber = find_subscriber(tidings.store, subscriber, out)
        revoked = tidings.store.audiences.revoke(subscriber, label)
    done, missing = f"{subscriber} may not see it any more", f"{subscriber} was not granted it"
    out.print_removal({"label": label}, revoked, done, missing)


GRANTS: View[Grant] = View(
    "no grants: tidings audience grant LABEL --as SUBSCRIBER",
    columns=(("subscriber", "subscriber"), ("may see", "label"), ("since", lambda grant: grant.since[:10])),
)


def list_grants(home: Home, out: Output, subscriber: SubscriberFilter = None) -> None:
    """List who may see which labels.

    Example:
      tidings audience list
    """
    with home.open() as tidings:
        subscriber = subscriber and find_subscriber(tidings.store, subscriber, out)
        grants = tidings.store.audiences.list(subscriber)
    out.print_records(grants, GRANTS)


audience_app = make_group(
    "Audiences: who may see publications that are not for everybody.",
    {"grant": grant, "revoke": revoke_grant, "list": list_grants},
)

"""`serve`: feeds and the hub over HTTP, and what pushes feeds that are read."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Annotated

import typer

from tidings.errors import InputError
from tidings.interfaces.cli import output
from tidings.interfaces.cli.backbone import Follow, Log, following
from tidings.interfaces.cli.options import DEFAULT_HOME, Contact, Home, PublicUrl, Store, open_tidings

if TYPE_CHECKING:
    from socket import socket
    from types import FrameType

    from tidings.interfaces.http.serving import Server

INTERRUPTED = 130
EVERYWHERE = ("0.0.0.0", "::", "")


def serve(
    host: Annotated[str, typer.Option(metavar="HOST", help="The address to listen at.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65_535, metavar="PORT", help="The port; 0 takes one that is free.")
    ] = 8080,
    public_url: PublicUrl = None,
    contact: Contact = None,
    private_callbacks: Annotated[
        bool,
        typer.Option(
            "--private-callbacks",
            help="Let the hub call back to this machine and to private networks.",
        ),
    ] = False,
    follow: Follow = None,
    log: Log = None,
    home: Home = DEFAULT_HOME,
    store: Store = None,
) -> None:
    """Serve the feeds of subscriptions, and a WebSub hub for them; read the feeds that were added; provide metadata.
    Until Ctrl-C.

    Whoever knows the address of a feed ([cyan]tidings feeds[/] tells it) reads it with any feed reader. Behind a proxy,
    say with [cyan]--public-url[/] how readers reach it. Feeds that [cyan]tidings feed add[/] has added are polled while
    it runs; content systems may ping it, and hubs may push to it.

    Metadata is below [cyan]/metadata[/], for repositories and other providers. With [cyan]--follow[/] it is the
    metadata of another provider, which is followed while it runs. Below [cyan]/objects[/] people watch objects of the
    databases that [cyan]tidings objects add[/] has added. Whoever is not on this machine needs the token that
    [cyan]TIDINGS_RPC_TOKEN[/] says.

    [dim]Examples[/]
      tidings serve
      tidings serve --port 8000 --public-url https://tidings.example.org
      tidings serve --port 8081 --home second --follow http://127.0.0.1:8080
    """
    from tidings.feeds.hub import Hub
    from tidings.feeds.hub_rules import Rules
    from tidings.interfaces.http.app import app_for
    from tidings.interfaces.http.serving import listen, server_for

    if host in EVERYWHERE and public_url is None:
        hint = "say how readers reach this machine: --public-url http://HOST:PORT"
        raise InputError("listening everywhere needs a public address", where="--host", hint=hint)
    with (
        open_tidings(home, store) as tidings,
        listen(host, port) as listening,
        following(tidings.store, follow, log, _own(host, listening, public_url)) as loop,
    ):
        address = _address(host, listening)
        feeds = tidings.feeds_at(public_url or address)
        hub = Hub(feeds, Rules(inside=private_callbacks))
        server = server_for(app_for(tidings, hub, public_url, contact, loop))
        output.line(("feeds", "bold"), f"{feeds.places.public_url}/feeds/...  at {address}; Ctrl-C ends it")
        output.line(("metadata", "bold"), f"{feeds.places.public_url}/browse")
        if loop is not None:
            output.note(f"following {loop.log.name}")
        by = _run(server, listening)
    if by == signal.SIGINT:
        raise typer.Exit(INTERRUPTED)


def _address(host: str, listening: socket) -> str:
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{listening.getsockname()[1]}"


def _own(host: str, listening: socket, public_url: str | None) -> list[str]:
    """Where this provider is reached. Who listens everywhere does so at this machine, too."""
    here = _address("localhost" if host in EVERYWHERE else host, listening)
    return [here, public_url] if public_url else [here]


def _run(server: Server, listening: socket) -> int | None:
    """Serve until a signal comes, and say which: requests under way are answered first."""
    came: list[int] = []

    def stop(number: int, _: FrameType | None) -> None:
        came.append(number)
        server.should_exit = True

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        server.run(sockets=[listening])
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return came[0] if came else None

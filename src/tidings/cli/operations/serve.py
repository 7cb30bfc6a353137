"""`serve`: the API and the console over HTTP, the stream and delivery in one process, or some of these parts."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Annotated

import typer

from tidings.cli import output
from tidings.cli.metadata.replication import FollowOption, LogOption
from tidings.cli.options import (
    DEFAULT_HOME,
    ConfigOption,
    ContactOption,
    HomeOption,
    MasterOption,
    PublicUrlOption,
    StoreOption,
    check_master,
    load_command_settings,
)
from tidings.errors import InputError

if TYPE_CHECKING:
    from tidings.operations.settings import ServicePart
    from tidings.service.application import HttpServer
    from tidings.service.context import ServiceContext
    from tidings.service.workers import Workers

INTERRUPTED = 130
PARTS = ("api", "stream", "delivery")


def serve(
    context: typer.Context,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PART",
            help="Start this part and no other: [cyan]api[/], [cyan]stream[/] or [cyan]delivery[/]; may be repeated.",
            show_default=False,
        ),
    ] = None,
    host: Annotated[
        str, typer.Option(metavar="HOST", envvar="TIDINGS_HOST", help="The address to listen at.")
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option(
            min=0,
            max=65_535,
            metavar="PORT",
            envvar="TIDINGS_PORT",
            help="The port; 0 takes one that is free.",
        ),
    ] = 8080,
    public_url: PublicUrlOption = None,
    contact: ContactOption = None,
    private_callbacks: Annotated[
        bool,
        typer.Option(
            "--private-callbacks",
            help="Let the hub and destinations lead to this machine and to private networks.",
        ),
    ] = False,
    follow: FollowOption = None,
    metadata_log: LogOption = None,
    master: MasterOption = None,
    config: ConfigOption = None,
    home: HomeOption = DEFAULT_HOME,
    store: StoreOption = None,
) -> None:
    """Start the service: the console and the API over HTTP, the stream, delivery. Until Ctrl-C, or a second one, which
    does not wait for work in progress.

    The first start of a home writes a token for the administrator to [cyan]administrator.token[/] in it. Requests are
    answered while Spark still starts. For a larger installation the parts run as separate processes, over one
    PostgreSQL: [cyan]--only api[/], [cyan]--only delivery[/], [cyan]--only stream --master spark://...[/].
    Each part answers [cyan]/healthz[/] and [cyan]/readyz[/]. All options, and more, can be set in
    [cyan]tidings.toml[/] in the home folder, or in the environment: [cyan]tidings config show[/].

    The service publishes feeds of subscriptions for feed readers ([cyan]tidings feeds[/]), behind a proxy below
    [cyan]--public-url[/]. It polls the feeds of [cyan]tidings feed add[/], and notifies subscribers of object changes
    in the databases of [cyan]tidings objects add[/]. Metadata is below [cyan]/metadata[/]; with [cyan]--follow[/] it
    is that of another provider.

    [dim]Examples[/]
      tidings serve
      tidings serve --port 8000 --public-url https://tidings.example.org
      tidings serve --only api --only delivery --store postgresql://tidings@db/tidings
      tidings serve --port 8081 --home second --follow http://127.0.0.1:8080
    """
    from tidings.api.server import listen
    from tidings.cli.operations.serve_status import ServeOutput
    from tidings.service.application import Application, HttpFactory, observe_service

    named = {"master": "spark.master", "private_callbacks": "delivery.private_callbacks"}
    loaded = load_command_settings(context, config, named)
    parts = _parts(only or [])
    _warn_of_variables()
    loaded.export()
    settings = loaded.settings
    check_master(settings.spark.master)
    http = HttpFactory(listen, _create_server)
    with observe_service(settings):
        number = Application(settings, parts, http, ServeOutput(settings)).run()
    if number == signal.SIGINT:
        raise typer.Exit(INTERRUPTED)


def _warn_of_variables() -> None:
    """Warn of mistyped variables, which are ignored: other programs may have such names as well."""
    from tidings.cli.operations.config import OTHER_VARIABLES
    from tidings.operations.settings_sources import find_unknown_variables

    for problem in find_unknown_variables(os.environ, OTHER_VARIABLES):
        output.print_line(("warning", "bold yellow"), problem.message(), stderr=True)


def _parts(only: list[str]) -> frozenset[ServicePart]:
    from tidings.operations.settings import ServicePart

    for part in only:
        if part not in PARTS:
            accepted = ", ".join(PARTS)
            raise InputError("unknown part of the service", where="--only", received=part, accepted=accepted)
    return frozenset(map(ServicePart, only or PARTS))


def _create_server(context: ServiceContext, workers: Workers) -> HttpServer:
    from tidings.api.app import create_http_server  # slow to import: Spark starts meanwhile

    return create_http_server(context, workers)

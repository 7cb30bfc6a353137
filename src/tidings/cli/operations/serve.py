"""`serve`: everything in one command: the API and the console over HTTP, the stream, delivery; or some of it."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from tidings.cli import output
from tidings.cli.metadata.replication import FollowOption, LogOption, follow_in_background
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
from tidings.errors import InputError, SetupError

if TYPE_CHECKING:
    from socket import socket
    from types import FrameType

    from tidings.api.server import Server
    from tidings.cli.operations.serve_status import ShutdownNotice
    from tidings.operations.settings import ServicePart, Settings
    from tidings.service.context import ServiceContext
    from tidings.service.stream_worker import SparkStartup, StreamWorker
    from tidings.service.tidings import Tidings

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
    log: LogOption = None,
    master: MasterOption = None,
    config: ConfigOption = None,
    home: HomeOption = DEFAULT_HOME,
    store: StoreOption = None,
) -> None:
    """Start the service: the console and the API over HTTP, the stream, delivery. Until Ctrl-C, or a second one, which
    does not wait for what is under way.

    The first start of a home writes a token for the administrator to [cyan]administrator.token[/] in it. Requests are
    answered while Spark still starts. For a larger installation the parts run as processes of their own, over one
    PostgreSQL: [cyan]--only api[/], [cyan]--only delivery[/], [cyan]--only stream --master spark://...[/].
    Whatever runs answers [cyan]/healthz[/] and [cyan]/readyz[/]. All options, and more, can stand in
    [cyan]tidings.toml[/] in the home folder, or in the environment: [cyan]tidings config show[/].

    Feeds of subscriptions are there for feed readers ([cyan]tidings feeds[/]), behind a proxy below
    [cyan]--public-url[/]; feeds that [cyan]tidings feed add[/] has added are read; whoever watches objects of the
    databases that [cyan]tidings objects add[/] has added is told. Metadata is below [cyan]/metadata[/]; with
    [cyan]--follow[/] it is that of another provider.

    [dim]Examples[/]
      tidings serve
      tidings serve --port 8000 --public-url https://tidings.example.org
      tidings serve --only api --only delivery --store postgresql://tidings@db/tidings
      tidings serve --port 8081 --home second --follow http://127.0.0.1:8080
    """
    named = {"master": "spark.master", "private_callbacks": "delivery.private_callbacks"}
    loaded = load_command_settings(context, config, named)
    parts = _parts(only or [])
    _warn_of_variables()
    loaded.export()
    with observe_service(loaded.settings):
        by = Service(loaded.settings, parts).run()
    if by == signal.SIGINT:
        raise typer.Exit(INTERRUPTED)


def _warn_of_variables() -> None:
    """One that is mistyped is ignored. That is no reason not to start: other programs may have such names, too."""
    from tidings.cli.operations.config import OTHER_VARIABLES
    from tidings.operations.settings_errors import find_unknown_variables

    for problem in find_unknown_variables(os.environ, OTHER_VARIABLES):
        output.print_line(("warning", "bold yellow"), problem.message(), stderr=True)


@contextmanager
def observe_service(settings: Settings) -> Iterator[None]:
    """Log and trace as the settings say, until the end of the `with`."""
    from tidings.operations import logs, traces

    given = settings.traces
    headers = {name: value.get_secret_value() for name, value in given.headers.items()}
    with logs.configure_logging(settings.logging.level, settings.logging.format):
        traces.configure_tracing(given.endpoint, given.service, headers, given.ratio)
        try:
            yield
        finally:
            traces.end_tracing()


def _parts(only: list[str]) -> frozenset[ServicePart]:
    from tidings.operations.settings import ServicePart

    for one in only:
        if one not in PARTS:
            accepted = ", ".join(PARTS)
            raise InputError(
                "this is no part of the service", where="--only", received=one, accepted=accepted
            )
    return frozenset(map(ServicePart, only or PARTS))


class Service:
    """The parts of this process, from the first to the last."""

    def __init__(self, settings: Settings, parts: frozenset[ServicePart]) -> None:
        from tidings.cli.operations.serve_status import StreamStatusLine

        self._settings, self._parts = settings, parts
        self._words = StreamStatusLine(settings.spark.master)

    def run(self) -> int | None:
        """Serve until a signal comes, and say which."""
        from tidings.api.server import listen
        from tidings.service.stream_worker import SparkStartup, refuse_second_stream
        from tidings.service.tidings import Tidings

        settings = self._settings
        if settings.listens_everywhere() and settings.public_url is None and "api" in self._parts:
            hint = "say how readers reach this machine: --public-url http://HOST:PORT"
            raise InputError("listening everywhere needs a public address", where="--host", hint=hint)
        check_master(settings.spark.master)
        spark = None
        if "stream" in self._parts:
            refuse_second_stream(settings.home)
            spark = SparkStartup(settings)  # Java starts beside the store and the API
        with (
            Tidings(settings.home, settings.store_url(), settings.migrate) as tidings,
            listen(settings.host, settings.port) as listening,
            ExitStack() as beside,
        ):
            self._address = _address(settings.host, listening)
            return self._serve(tidings, listening, beside, spark)

    def _serve(
        self, tidings: Tidings, listening: socket, beside: ExitStack, spark: SparkStartup | None
    ) -> int | None:
        from tidings.api.app import create_app
        from tidings.api.server import allow_many_files, create_server
        from tidings.cli.operations.serve_status import ShutdownNotice, describe_requests
        from tidings.service.stream_telemetry import Heartbeat

        context = self._context(tidings, beside)
        allow_many_files()
        server = create_server(create_app(context), self._settings)
        keeper = self._keeper(context, server, spark)
        context.under_way.watch(lambda: describe_requests(server.under_way, server.patience))
        ending = ShutdownNotice(context.under_way, self._settings.drain, self._words.end)
        with shut_down_on_signals(server, keeper, ending) as came:
            self._announce(context)
            with keeper or ExitStack(), Heartbeat(context, keeper) if keeper else ExitStack():
                server.run(sockets=[listening])
        if keeper and keeper.is_given_up and self._parts == {"stream"}:
            raise SetupError("the stream failed again and again", hint=keeper.failure)
        return came[0] if came else None

    def _context(self, tidings: Tidings, beside: ExitStack) -> ServiceContext:
        from tidings.feeds.hub.hub import Hub, HubPolicy
        from tidings.operations.metrics import Metrics
        from tidings.service.context import ServiceContext
        from tidings.service.pipeline import count_totals

        settings = self._settings
        loop = None
        if "api" in self._parts:
            shared = settings.log.get_secret_value() if settings.log else None
            own = _own(settings, self._address)
            loop = beside.enter_context(follow_in_background(tidings.store, settings.follow, shared, own))
            if loop is not None:
                output.print_note(f"following {loop.log.name}")
        feeds = tidings.feeds_at(settings.public_url or self._address)
        hub = Hub(feeds, HubPolicy(inside=settings.delivery.private_callbacks))
        metrics = Metrics(lambda: count_totals(tidings.store))
        return ServiceContext(tidings, hub, settings, loop, self._parts, metrics=metrics)

    def _announce(self, context: ServiceContext) -> None:
        """Print the address and, with the first start, where the administrator's token is.

        The token itself goes to a terminal only: standard output of a service ends in journald and in pod logs.
        """
        from tidings.service.authorization import ADMINISTRATOR_FILE, Access

        public = context.hub.feeds.places.public_url
        if "api" not in self._parts:
            output.print_line(("probes", "bold"), f"{self._address}/readyz", "Ctrl-C ends it")
            return
        file = self._settings.home / ADMINISTRATOR_FILE
        made = Access(context.tidings.store).begin(file)
        at = [] if public == self._address else [f"at {self._address}"]
        shown = [f"administrator token: {made.secret}"] if made and _is_interactive() else []
        token = [*shown, f"administrator token in {file}"] if made else ["Ctrl-C ends it"]
        output.print_line(("console", "bold"), public, *at, *token)

    def _keeper(
        self, context: ServiceContext, server: Server, spark: SparkStartup | None
    ) -> StreamWorker | None:
        from tidings.service.stream_telemetry import StreamMetrics
        from tidings.service.stream_worker import StreamWorker

        if "stream" not in self._parts:
            return None

        def gave_up() -> None:
            server.should_exit = self._parts == {"stream"}

        hear = StreamMetrics(context, self._words)
        keeper = StreamWorker(context.tidings, self._settings, hear, gave_up, spark)
        context.health.watch("stream", lambda: keeper.problem)
        context.under_way.watch(lambda: keeper.under_way)
        return keeper


def _is_interactive() -> bool:
    """Whether a person sits at a terminal. A container may have a terminal for its output alone."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def _address(host: str, listening: socket) -> str:
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{listening.getsockname()[1]}"


def _own(settings: Settings, address: str) -> list[str]:
    """Where this provider is reached. Who listens everywhere does so at this machine, too."""
    port = address.rpartition(":")[2]
    here = f"http://localhost:{port}" if settings.listens_everywhere() else address
    return [here, settings.public_url] if settings.public_url else [here]


@contextmanager
def shut_down_on_signals(
    server: Server, keeper: StreamWorker | None, ending: ShutdownNotice
) -> Iterator[list[int]]:
    """Ctrl-C and SIGTERM ask all parts to end: requests, the batch and deliveries under way end first. Whoever has
    typed Ctrl-C sits there, and is told what takes so long.

    A second signal does not wait for them. Nothing is lost by that: the journal has what was published, and the next
    stream repeats the batch. What is given are the signals that came.
    """
    came: list[int] = []

    def stop(number: int, _: FrameType | None) -> None:
        if came:
            os._exit(128 + number)
        came.append(number)
        server.should_exit = True
        if number == signal.SIGINT:
            ending.begin()
        if keeper:
            keeper.end()

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield came
    finally:
        ending.end()
        for number, handler in before.items():
            signal.signal(number, handler)

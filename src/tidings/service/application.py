"""Composition root: builds the parts of a service from its settings, and runs them until a signal comes.

    Application(settings, parts, http, listener).run()

Spark starts first, in a thread: the JVM takes seconds, and meanwhile the store opens and the API is imported. That is
why most imports are inside of functions. The HTTP API is passed in, because it imports this package.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, Protocol

from tidings.core.text import plural
from tidings.errors import InputError, SetupError
from tidings.operations.settings import ServicePart, Settings

if TYPE_CHECKING:
    from socket import socket
    from types import FrameType

    from tidings.service.authorization import NewToken
    from tidings.service.context import PendingWork, ServiceContext
    from tidings.service.stream_worker import SparkStartup, StreamWorker
    from tidings.service.tidings import Tidings
    from tidings.service.workers import Workers
    from tidings.spark.stream.stream_events import StreamEvent


class HttpServer(Protocol):
    """A server that runs until `should_exit` is set."""

    should_exit: bool

    @property
    def requests_in_progress(self) -> int: ...

    @property
    def grace_seconds(self) -> int:
        """Time limit for requests in progress when the server ends."""

    def run(self, sockets: list[socket] | None = None) -> None: ...


class HttpFactory(NamedTuple):
    """Factory of the HTTP part of a service."""

    listen: Callable[[str, int], socket]
    create_server: Callable[[ServiceContext, Workers], HttpServer]


class ServiceListener(Protocol):
    """Receives the events of a service, to print them."""

    def show_following(self, log: str) -> None:
        """Show that the metadata of another provider is followed."""

    def show_address(self, address: str, public_url: str | None, token: NewToken | None) -> None:
        """Show where the service is reached, and the administrator's token if it is new.

        Without the API there is no public URL.
        """

    def show_stream(self, event: StreamEvent) -> None: ...

    def begin_shutdown(self, pending: PendingWork) -> None:
        """Ctrl-C was pressed: show the work that the service still waits for."""

    def end_shutdown(self) -> None: ...


class Application:
    """The parts of a service that run in this process."""

    def __init__(
        self,
        settings: Settings,
        parts: frozenset[ServicePart],
        http: HttpFactory,
        listener: ServiceListener,
    ) -> None:
        self._settings, self._parts, self._http, self._listener = settings, parts, http, listener

    def run(self) -> int | None:
        """Serve until a signal comes, and return its number."""
        _check_public_url(self._settings, self._parts)
        spark = self._start_spark()

        from tidings.service.tidings import Tidings

        settings = self._settings
        with (
            Tidings(settings.home, settings.store_url(), settings.migrate) as tidings,
            self._http.listen(settings.host, settings.port) as listening,
        ):
            address = _format_address(settings.host, listening)
            context = self._create_context(tidings, address)
            return self._serve(context, listening, address, spark)

    def _start_spark(self) -> SparkStartup | None:
        from tidings.service.stream_worker import SparkStartup, refuse_second_stream

        if ServicePart.STREAM not in self._parts:
            return None
        refuse_second_stream(self._settings.home)
        return SparkStartup(self._settings)

    def _create_context(self, tidings: Tidings, address: str) -> ServiceContext:
        from tidings.feeds.hub.hub import Hub, HubPolicy
        from tidings.operations.metrics import Metrics
        from tidings.service.context import ServiceContext
        from tidings.service.pipeline_status import count_totals
        from tidings.service.workers import create_follow_worker

        settings, following = self._settings, None
        if ServicePart.API in self._parts:
            shared = settings.metadata_log.get_secret_value() if settings.metadata_log else None
            own = _list_own_addresses(settings, address)
            following = create_follow_worker(tidings.store, settings.follow, shared, own)
            if following is not None:
                self._listener.show_following(following.log.name)
        feeds = tidings.feeds_at(settings.public_url or address)
        hub = Hub(feeds, HubPolicy(inside=settings.delivery.private_callbacks))
        metrics = Metrics(lambda: count_totals(tidings.store))
        return ServiceContext(tidings, hub, settings, following, self._parts, metrics=metrics)

    def _serve(
        self, context: ServiceContext, listening: socket, address: str, spark: SparkStartup | None
    ) -> int | None:
        from tidings.service.workers import Workers

        is_stream_only = self._parts == {ServicePart.STREAM}

        def stop_if_alone() -> None:
            server.should_exit = is_stream_only

        stream = self._create_stream(context, stop_if_alone, spark) if spark else None
        server = self._http.create_server(context, Workers(context, stream))
        context.pending.watch(lambda: _describe_requests(server))
        with self._stop_on_signals(context, server, stream) as received:
            self._announce(context, address)
            server.run(sockets=[listening])
        if stream and stream.is_given_up and is_stream_only:
            raise SetupError("the stream failed too often", hint=stream.failure)
        return received[0] if received else None

    def _announce(self, context: ServiceContext, address: str) -> None:
        if context.includes(ServicePart.API):
            token = context.create_first_token()
            self._listener.show_address(address, context.hub.feeds.places.public_url, token)
        else:
            self._listener.show_address(address, None, None)

    def _create_stream(
        self, context: ServiceContext, on_give_up: Callable[[], object], spark: SparkStartup
    ) -> StreamWorker:
        from tidings.service.pipeline_status import StreamMetrics
        from tidings.service.stream_worker import StreamWorker

        metrics = StreamMetrics(context, self._listener.show_stream)
        return StreamWorker(context.tidings, self._settings, metrics, on_give_up, spark)

    @contextmanager
    def _stop_on_signals(
        self, context: ServiceContext, server: HttpServer, stream: StreamWorker | None
    ) -> Iterator[list[int]]:
        """Let SIGINT and SIGTERM end all parts; yield the signals that came.

        Requests, the batch and the deliveries in progress finish first. A second signal does not wait for them, and
        loses nothing: publications are in the journal, and the next stream repeats the batch.
        """
        received: list[int] = []

        def stop(number: int, _: FrameType | None) -> None:
            if received:
                os._exit(128 + number)
            received.append(number)
            server.should_exit = True
            if number == signal.SIGINT:
                self._listener.begin_shutdown(context.pending)
            if stream:
                stream.stopping.set()

        handlers = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield received
        finally:
            self._listener.end_shutdown()
            for number, handler in handlers.items():
                signal.signal(number, handler)


@contextmanager
def observe_service(settings: Settings) -> Iterator[None]:
    """Configure logs and traces by the settings, until the end of the `with` block."""
    from tidings.operations import logs, traces

    tracing = settings.traces
    headers = {name: value.get_secret_value() for name, value in tracing.headers.items()}
    with logs.configure_logging(settings.logging.level, settings.logging.format):
        traces.configure_tracing(tracing.endpoint, tracing.service, headers, tracing.ratio)
        try:
            yield
        finally:
            traces.end_tracing()


def _check_public_url(settings: Settings, parts: frozenset[ServicePart]) -> None:
    if settings.listens_everywhere() and settings.public_url is None and ServicePart.API in parts:
        hint = "name the address at which readers reach this machine: --public-url http://HOST:PORT"
        raise InputError("listening on all addresses needs a public URL", where="--host", hint=hint)


def _format_address(host: str, listening: socket) -> str:
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{listening.getsockname()[1]}"


def _list_own_addresses(settings: Settings, address: str) -> list[str]:
    """Return the addresses of this provider. One that listens on all addresses is reached at localhost as well."""
    port = address.rpartition(":")[2]
    local = f"http://localhost:{port}" if settings.listens_everywhere() else address
    return [local, settings.public_url] if settings.public_url else [local]


def _describe_requests(server: HttpServer) -> str | None:
    """Describe the requests in progress, which have less time than everything else."""
    count = server.requests_in_progress
    return f"{plural(count, 'request')} ({server.grace_seconds:g} seconds)" if count else None

"""A receiver of traces and webhooks on loopback."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span


class Receiver:
    """An OTLP endpoint that records spans and other posted bodies."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.headers: list[str | None] = []
        self.posted: list[Any] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.path != "/v1/traces":
                    outer.posted.append(json.loads(body))
                    self._reply()
                    return
                outer.headers.append(self.headers.get("x-key"))
                for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                    outer.spans += [span for scope in resource.scope_spans for span in scope.spans]
                self._reply()

            def _reply(self) -> None:
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: Any) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = Thread(target=self._server.serve_forever)
        self._thread.start()

    def in_trace(self, id: str) -> set[str]:
        """Return the names of the spans of a trace."""
        return {span.name for span in self.spans if span.trace_id.hex() == id}

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def named(self, name: str) -> list[Span]:
        return [span for span in self.spans if span.name == name]

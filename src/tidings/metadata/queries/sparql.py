"""SPARQL over resources, evaluated by Oxigraph on a graph in memory.

A resource has its class and all superclasses as types. Values have XML Schema datatypes: integers, doubles for other
numbers, dateTimes for instants. References are included whether or not their targets exist.

Each query runs in a forked process that shares the memory of the graph. Oxigraph cannot be interrupted, but a process
can be killed at its time or memory limit. It cannot open files or sockets.
"""

from __future__ import annotations

import faulthandler
import json
import os
import resource as process_limits
import selectors
import signal
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import BoundedSemaphore, Lock
from typing import IO, NoReturn, cast

import pyoxigraph as ox

from tidings.core.limits import check_limits, limits_from
from tidings.errors import InputError, TidingsError, TooLarge
from tidings.graphs.model import RDF, RDFS, XSD
from tidings.metadata.queries.sparql_syntax import check_sparql, sparql_syntax_error
from tidings.metadata.resources import Ref, Resource
from tidings.metadata.schema.model import Schema
from tidings.values import Kind, Scalar

_DATE_TIME = ox.NamedNode(XSD + "dateTime")
PREFIXES = {"rdf": RDF, "rdfs": RDFS, "xsd": XSD}
RESULT_FORMATS = {
    "application/sparql-results+json": ox.QueryResultsFormat.JSON,
    "application/sparql-results+xml": ox.QueryResultsFormat.XML,
    "text/csv": ox.QueryResultsFormat.CSV,
    "text/tab-separated-values": ox.QueryResultsFormat.TSV,
}
"""Formats of SELECT and ASK by media type; the first is the default."""

GRAPH_FORMATS = {
    "application/n-triples": ox.RdfFormat.N_TRIPLES,
    "text/turtle": ox.RdfFormat.TURTLE,
    "application/rdf+xml": ox.RdfFormat.RDF_XML,
}
"""Formats of CONSTRUCT and DESCRIBE by media type; the first is the default."""

JSON, CSV = "application/sparql-results+json", "text/csv"
N_TRIPLES = "application/n-triples"


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a query: seconds, and megabytes of its answer and of memory; and the number of concurrent queries."""

    seconds: int = 10
    answer: int = 64
    memory: int = 1_024
    processes: int = 4

    def __post_init__(self) -> None:
        check_limits(self, {})


SPARQL_LIMITS = limits_from("TIDINGS_SPARQL_LIMITS", Limits)
_TURNS = BoundedSemaphore(SPARQL_LIMITS.processes)
"""Queries wait while all processes are busy; the time limit starts with the process."""


@dataclass(frozen=True, slots=True)
class SparqlAnswer:
    """A serialized answer."""

    media_type: str
    body: bytes
    left_out: int = 0


class ResourceGraph:
    """Resources as RDF. `left_out` counts resources and references whose URIs are not valid IRIs.

    These are not escaped: an answer would contain names that occur nowhere else.
    """

    def __init__(self, resources: Iterable[Resource], schema: Schema) -> None:
        self._store = ox.Store()
        self.left_out = 0
        self._store.bulk_extend(self._quads(resources, schema))
        self._forking = Lock()

    def ask(
        self, text: str, results: str = JSON, graph: str = N_TRIPLES, limits: Limits = SPARQL_LIMITS
    ) -> SparqlAnswer:
        """Answer a query: SELECT and ASK in the format `results`, CONSTRUCT and DESCRIBE in the format `graph`."""
        check_sparql(text)
        with _TURNS:
            child = self._start_process(text, results, graph, limits)
            body, status = child.finish(time.monotonic() + limits.seconds)
        if "media_type" in status:
            return SparqlAnswer(status["media_type"], body, self.left_out)
        raise _problem(text, status, limits)

    def _quads(self, resources: Iterable[Resource], schema: Schema) -> Iterator[ox.Quad]:
        """Yield the statements about resources, in the default graph."""
        is_a = ox.NamedNode(RDF + "type")
        terms = {name: _ClassTerms.of(schema, name) for name in schema.classes}
        for resource in resources:
            subject, of_class = self._node(resource.uri), terms[resource.cls]
            if subject is None:
                continue
            for cls in of_class.classes:
                yield ox.Quad(subject, is_a, cls)
            for name, values in resource.values.items():
                property, is_instant = of_class.properties[name]
                for value in values:
                    object = (
                        self._node(value.uri) if isinstance(value, Ref) else to_literal(value, is_instant)
                    )
                    if object is not None:
                        yield ox.Quad(subject, property, object)

    def _node(self, uri: str) -> ox.NamedNode | None:
        try:
            return ox.NamedNode(uri)
        except ValueError:  # impossible in documents, but possible in data from another provider
            self.left_out += 1
            return None

    def _start_process(self, text: str, results: str, graph: str, limits: Limits) -> _Child:
        """Fork, one at a time: a lock that another thread holds in Oxigraph would stay locked in the child."""
        with self._forking:
            body, saying = os.pipe(), os.pipe()
            number = os.fork()
            if number == 0:
                _answer_and_end(self._store, (text, results, graph), body[1], saying[1], limits)
        for end in (body[1], saying[1]):
            os.close(end)
        return _Child(number, body[0], saying[0])


@dataclass(frozen=True, slots=True)
class _ClassTerms:
    """RDF terms for the instances of a class: its superclasses, and properties with whether they are instants."""

    classes: tuple[ox.NamedNode, ...]
    properties: Mapping[str, tuple[ox.NamedNode, bool]]

    @classmethod
    def of(cls, schema: Schema, name: str) -> _ClassTerms:
        above = sorted(schema.at_or_above(name))
        inherited = (schema.property_of(name, property) for property in schema.properties)
        properties = {
            property.name: (ox.NamedNode(property.iri), property.kind is Kind.INSTANT)
            for property in inherited
            if property
        }
        return cls(tuple(ox.NamedNode(schema.classes[property].iri) for property in above), properties)


def to_literal(value: Scalar, is_instant: bool) -> ox.Literal:
    if is_instant:
        return ox.Literal(str(value), datatype=_DATE_TIME)
    return ox.Literal(value)


def _problem(text: str, status: dict[str, str], limits: Limits) -> TidingsError:
    if "syntax" in status:
        return sparql_syntax_error(text, status["syntax"])
    if "failed" in status:
        return InputError("the query cannot be evaluated", received=status["failed"])
    message, accepted = {
        "time": ("takes too long", f"at most {limits.seconds} s (the limit seconds)"),
        "answer": ("has too large an answer", f"at most {limits.answer:,} MB (the limit answer)"),
    }.get(
        status.get("over", ""),
        ("needs too much memory", f"at most {limits.memory:,} MB (the limit memory)"),
    )
    return TooLarge(f"the query {message}", accepted=accepted, hint="ask for fewer with LIMIT")


@dataclass(frozen=True, slots=True)
class _Child:
    """The process that evaluates a query, with the read ends of its pipes."""

    pid: int
    body: int
    status: int

    def finish(self, deadline: float) -> tuple[bytes, dict[str, str]]:
        """Wait for the answer and its status, which is empty if the process was killed."""
        received: dict[int, list[bytes]] = {self.body: [], self.status: []}
        try:
            if not _read_pipes(received, deadline):
                return b"", {"over": "time"}
            status = b"".join(received[self.status])
            return b"".join(received[self.body]), json.loads(status) if status else {}
        finally:
            os.kill(self.pid, signal.SIGKILL)  # it has ended, or must end
            os.waitpid(self.pid, 0)
            os.close(self.body)
            os.close(self.status)


def _read_pipes(pieces: dict[int, list[bytes]], deadline: float) -> bool:
    """Read pipes to their ends; False if the deadline passed before."""
    with selectors.DefaultSelector() as selector:
        for end in pieces:
            selector.register(end, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(max(0.0, deadline - time.monotonic()))
            if not ready:
                return False
            for key, _ in ready:
                piece = os.read(key.fd, 1 << 20)
                if piece:
                    pieces[key.fd].append(piece)
                else:
                    selector.unregister(key.fd)
    return True


def _answer_and_end(
    store: ox.Store, query: tuple[str, str, str], body: int, status: int, limits: Limits
) -> NoReturn:
    """Run the child process. It reports errors by its status, and runs no exit handlers of the parent."""
    try:
        _confine(limits)
        result = _evaluate(store, *query, _LimitedPipe(body, limits.answer << 20))
        os.write(status, json.dumps(result).encode())
    except BaseException as error:  # noqa: BLE001  handlers of the parent process must not see it
        os.write(status, json.dumps({"failed": f"{type(error).__name__}: {error}"}).encode())
    finally:
        os._exit(0)


def _confine(limits: Limits) -> None:
    """Limit memory to the shared part plus the limit, and forbid to open anything, so that even SERVICE would fail."""
    used = Path("/proc/self/statm")
    if used.exists():
        most = int(used.read_text().split()[0]) * process_limits.getpagesize() + (limits.memory << 20)
        process_limits.setrlimit(process_limits.RLIMIT_AS, (most, most))
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # hide messages of the allocator
    faulthandler.disable()
    process_limits.setrlimit(process_limits.RLIMIT_CORE, (0, 0))
    process_limits.setrlimit(process_limits.RLIMIT_NOFILE, (0, 0))
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


def _evaluate(store: ox.Store, text: str, results: str, graph: str, body: _LimitedPipe) -> dict[str, str]:
    try:
        answer = store.query(text, prefixes=PREFIXES)
    except SyntaxError as error:
        return {"syntax": str(error)}
    try:
        if isinstance(answer, ox.QueryTriples):
            answer.serialize(cast(IO[bytes], body), format=GRAPH_FORMATS[graph])
            return {"media_type": graph}
        answer.serialize(cast(IO[bytes], body), format=RESULT_FORMATS[results])
        return {"media_type": results}
    except Exception:
        if body.is_over:
            return {"over": "answer"}
        raise


class _LimitedPipe:
    """A pipe with a limit of bytes."""

    def __init__(self, end: int, most: int) -> None:
        self._end, self._left = end, most
        self.is_over = False

    def write(self, piece: bytes) -> int:
        self._left -= len(piece)
        if self._left < 0:
            self.is_over = True
            raise OSError("the answer is too large")
        remaining = memoryview(piece)
        while remaining:
            remaining = remaining[os.write(self._end, remaining) :]
        return len(piece)

    def flush(self) -> None:
        """Do nothing: writes are not buffered."""

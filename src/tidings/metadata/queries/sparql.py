"""SPARQL over resources: a graph in memory, which Oxigraph asks.

A resource is of its class and of all above it. Values have XML Schema's types: whole numbers are integers, others are
doubles, instants are dateTimes. A reference is there whether it leads somewhere or not.

A query is evaluated in a process of its own, which shares the graph's memory until it ends. Oxigraph cannot be stopped;
a process can, when its time is over or its memory is used up. It can open no file and no socket.
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
"""How the results of SELECT and ASK are written, by media type; the first when nothing is said."""

GRAPH_FORMATS = {
    "application/n-triples": ox.RdfFormat.N_TRIPLES,
    "text/turtle": ox.RdfFormat.TURTLE,
    "application/rdf+xml": ox.RdfFormat.RDF_XML,
}
"""The same for CONSTRUCT and DESCRIBE."""

JSON, CSV = "application/sparql-results+json", "text/csv"
N_TRIPLES = "application/n-triples"


@dataclass(frozen=True, slots=True)
class Limits:
    """What one query may take: seconds, and megabytes of its answer and of memory; and how many are asked at once."""

    seconds: int = 10
    answer: int = 64
    memory: int = 1_024
    processes: int = 4

    def __post_init__(self) -> None:
        check_limits(self, {})


SPARQL_LIMITS = limits_from("TIDINGS_SPARQL_LIMITS", Limits)
_TURNS = BoundedSemaphore(SPARQL_LIMITS.processes)
"""Who comes when all processes are busy waits; the time of a query begins with its process."""


@dataclass(frozen=True, slots=True)
class SparqlAnswer:
    """An answer as its media type has it."""

    media_type: str
    body: bytes
    left_out: int = 0


class ResourceGraph:
    """Resources as RDF. `left_out` are those that cannot be in it, and references to such: their URIs are no IRIs.

    They are not written in another way: an answer would name resources that nothing else here knows by that name.
    """

    def __init__(self, resources: Iterable[Resource], schema: Schema) -> None:
        self._store = ox.Store()
        self.left_out = 0
        self._store.bulk_extend(self._quads(resources, schema))
        self._forking = Lock()

    def ask(
        self, text: str, results: str = JSON, graph: str = N_TRIPLES, limits: Limits = SPARQL_LIMITS
    ) -> SparqlAnswer:
        """The answer to a query: of SELECT and ASK as `results`, of CONSTRUCT and DESCRIBE as `graph`."""
        check_sparql(text)
        with _TURNS:
            child = self._started(text, results, graph, limits)
            body, said = child.finished(time.monotonic() + limits.seconds)
        if "media_type" in said:
            return SparqlAnswer(said["media_type"], body, self.left_out)
        raise _problem(text, said, limits)

    def _quads(self, resources: Iterable[Resource], schema: Schema) -> Iterator[ox.Quad]:
        """What there is to say about resources, in the default graph."""
        is_a = ox.NamedNode(RDF + "type")
        said = {name: _Said.of(schema, name) for name in schema.classes}
        for each in resources:
            subject, of_class = self._node(each.uri), said[each.cls]
            if subject is None:
                continue
            for cls in of_class.classes:
                yield ox.Quad(subject, is_a, cls)
            for name, values in each.values.items():
                property, is_instant = of_class.properties[name]
                for value in values:
                    found = self._node(value.uri) if isinstance(value, Ref) else to_literal(value, is_instant)
                    if found is not None:
                        yield ox.Quad(subject, property, found)

    def _node(self, uri: str) -> ox.NamedNode | None:
        try:
            return ox.NamedNode(uri)
        except ValueError:  # documents have none such, but what another provider tells may
            self.left_out += 1
            return None

    def _started(self, text: str, results: str, graph: str, limits: Limits) -> _Child:
        """One at a time: a lock that another thread holds in Oxigraph would stay locked in the new process."""
        with self._forking:
            body, saying = os.pipe(), os.pipe()
            number = os.fork()
            if number == 0:
                _answer_and_end(self._store, (text, results, graph), body[1], saying[1], limits)
        for end in (body[1], saying[1]):
            os.close(end)
        return _Child(number, body[0], saying[0])


@dataclass(frozen=True, slots=True)
class _Said:
    """The terms for the instances of a class: itself and those above it, and properties, of which some are instants."""

    classes: tuple[ox.NamedNode, ...]
    properties: Mapping[str, tuple[ox.NamedNode, bool]]

    @classmethod
    def of(cls, schema: Schema, name: str) -> _Said:
        above = sorted(schema.at_or_above(name))
        found = (schema.property_of(name, each) for each in schema.properties)
        properties = {
            each.name: (ox.NamedNode(each.iri), each.kind is Kind.INSTANT) for each in found if each
        }
        return cls(tuple(ox.NamedNode(schema.classes[each].iri) for each in above), properties)


def to_literal(value: Scalar, is_instant: bool) -> ox.Literal:
    if is_instant:
        return ox.Literal(str(value), datatype=_DATE_TIME)
    return ox.Literal(value)


def _problem(text: str, said: dict[str, str], limits: Limits) -> TidingsError:
    if "syntax" in said:
        return sparql_syntax_error(text, said["syntax"])
    if "failed" in said:
        return InputError("the query cannot be evaluated", received=said["failed"])
    what, accepted = {
        "time": ("takes too long", f"what takes {limits.seconds} s at most (the limit seconds)"),
        "answer": ("has too large an answer", f"at most {limits.answer:,} MB (the limit answer)"),
    }.get(
        said.get("over", ""),
        ("needs too much memory", f"at most {limits.memory:,} MB (the limit memory)"),
    )
    return TooLarge(f"the query {what}", accepted=accepted, hint="ask for fewer with LIMIT")


@dataclass(frozen=True, slots=True)
class _Child:
    """The process that evaluates a query: the ends of its pipes."""

    number: int
    body: int
    said: int

    def finished(self, deadline: float) -> tuple[bytes, dict[str, str]]:
        """The answer, and what is said about it; nothing is said by a process that ended without a word."""
        received: dict[int, list[bytes]] = {self.body: [], self.said: []}
        try:
            if not _received(received, deadline):
                return b"", {"over": "time"}
            said = b"".join(received[self.said])
            return b"".join(received[self.body]), json.loads(said) if said else {}
        finally:
            os.kill(self.number, signal.SIGKILL)  # it has ended, or has to
            os.waitpid(self.number, 0)
            os.close(self.body)
            os.close(self.said)


def _received(pieces: dict[int, list[bytes]], deadline: float) -> bool:
    """Read pipes to their ends; False if the time was over before."""
    with selectors.DefaultSelector() as waiting:
        for end in pieces:
            waiting.register(end, selectors.EVENT_READ)
        while waiting.get_map():
            ready = waiting.select(max(0.0, deadline - time.monotonic()))
            if not ready:
                return False
            for key, _ in ready:
                piece = os.read(key.fd, 1 << 20)
                if piece:
                    pieces[key.fd].append(piece)
                else:
                    waiting.unregister(key.fd)
    return True


def _answer_and_end(
    store: ox.Store, asked: tuple[str, str, str], body: int, said: int, limits: Limits
) -> NoReturn:
    """The whole life of the process. What goes wrong is said; nothing of the other process is ended with it."""
    try:
        _confine(limits)
        os.write(said, json.dumps(_evaluated(store, *asked, _Bounded(body, limits.answer << 20))).encode())
    except BaseException as error:  # noqa: BLE001  whatever it is, the other process's handlers are not for it
        os.write(said, json.dumps({"failed": f"{type(error).__name__}: {error}"}).encode())
    finally:
        os._exit(0)


def _confine(limits: Limits) -> None:
    """No more memory than what is shared and the limit, and nothing can be opened: SERVICE, if it got so far, fails."""
    used = Path("/proc/self/statm")
    if used.exists():
        most = int(used.read_text().split()[0]) * process_limits.getpagesize() + (limits.memory << 20)
        process_limits.setrlimit(process_limits.RLIMIT_AS, (most, most))
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # what an allocator says in the end is no answer to anybody
    faulthandler.disable()
    process_limits.setrlimit(process_limits.RLIMIT_CORE, (0, 0))
    process_limits.setrlimit(process_limits.RLIMIT_NOFILE, (0, 0))
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


def _evaluated(store: ox.Store, text: str, results: str, graph: str, body: _Bounded) -> dict[str, str]:
    try:
        found = store.query(text, prefixes=PREFIXES)
    except SyntaxError as error:
        return {"syntax": str(error)}
    try:
        if isinstance(found, ox.QueryTriples):
            found.serialize(cast(IO[bytes], body), format=GRAPH_FORMATS[graph])
            return {"media_type": graph}
        found.serialize(cast(IO[bytes], body), format=RESULT_FORMATS[results])
        return {"media_type": results}
    except Exception:
        if body.is_over:
            return {"over": "answer"}
        raise


class _Bounded:
    """A pipe that takes so many bytes and no more."""

    def __init__(self, end: int, most: int) -> None:
        self._end, self._left = end, most
        self.is_over = False

    def write(self, piece: bytes) -> int:
        self._left -= len(piece)
        if self._left < 0:
            self.is_over = True
            raise OSError("the answer is too large")
        rest = memoryview(piece)
        while rest:
            rest = rest[os.write(self._end, rest) :]
        return len(piece)

    def flush(self) -> None:
        """Nothing is kept back."""

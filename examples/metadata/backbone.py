"""Two providers, two repositories and their clients, on one machine, from one command:

    python examples/metadata/backbone.py

One provider is the leader, the other follows its log. Each repository stores what its rules register. Then one
repository is disconnected, metadata changes, a provider is killed and restarted, and the repository is connected again.
At the end, each repository must have what evaluating its rules from scratch gives, and both providers must have the
same metadata.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Thread
from typing import Any, Self

import httpx

from tidings.graphs.rdf.rdf_decoder import decode
from tidings.metadata.documents import DocumentReader
from tidings.metadata.resources import Ref, Resource
from tidings.metadata.rules.rule_parser import parse_rule
from tidings.metadata.rules.semantics import evaluate_rule
from tidings.metadata.schema.model import Reference, Schema
from tidings.metadata.schema.schema_parser import parse_schema

HERE = Path(__file__).parent
SCHEMA = (HERE / "schema.ttl").read_bytes()
TURTLE = {"Content-Type": "text/turtle"}
TIMEOUT_SECONDS = 120.0
"""Seconds to wait for each event."""

RULES = {
    "passau": {"passau": "search CycleProvider c register c where c.serverHost contains 'uni-passau.de'"},
    "large": {
        "large": "search CycleProvider c register c where c.serverInformation.memory > 64",
        "fast": "search ServerInformation s register s where s.cpu > 500",
    },
}
"""The rules of each repository, by name."""

Documents = dict[str, bytes]


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="tidings-") as folder, ExitStack() as stack:
        return Example(Path(folder), stack).run()


def print_line(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def wait_until(what: str, holds: Callable[[], bool]) -> None:
    """Return when a condition holds. The process that it asks may not accept connections yet."""
    end = time.monotonic() + TIMEOUT_SECONDS
    while time.monotonic() < end:
        try:
            if holds():
                return
        except httpx.TransportError:
            pass  # try again until the timeout
        time.sleep(0.05)
    raise SystemExit(f"timeout after {TIMEOUT_SECONDS:.0f} s: {what}")


class Program:
    """A `tidings` process, which prints its address on its first lines. Its output is printed, too."""

    def __init__(self, name: str, *words: str) -> None:
        self.name, self.words = name, words
        clean = {key: value for key, value in os.environ.items() if not key.startswith("TIDINGS_")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tidings", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=clean | {"COLUMNS": "200"},
        )
        self.address = self._read_address()
        Thread(target=self._print_output, daemon=True).start()

    def _read_address(self) -> str:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            print_line(f"  {self.name} | {line.rstrip()}")
            if found := re.search(r"\b(?:at|console) +(http://[^\s;]+)", line):
                return found[1]
        raise SystemExit(f"{self.name} did not start")

    def _print_output(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            print_line(f"  {self.name} | {line.rstrip()}")

    @property
    def port(self) -> str:
        return self.address.rpartition(":")[2]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.process.terminate()
        self.process.wait()


class Proxy:
    """TCP proxy between a repository and its provider, whose connections can be cut and restored."""

    def __init__(self, target: str) -> None:
        self._to = int(target.rpartition(":")[2])
        self._sockets: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._port = self._listener.getsockname()[1]
        Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def cut(self) -> None:
        for each in (self._listener, *self._sockets):
            _close(each)
        self._sockets.clear()

    def restore(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", self._port))
        Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def _accept(self, listener: socket.socket) -> None:
        try:
            while True:
                near, _ = listener.accept()
                self._connect(near)
        except OSError:
            return  # it was cut

    def _connect(self, near: socket.socket) -> None:
        try:
            far = socket.create_connection(("127.0.0.1", self._to))
        except OSError:
            _close(near)
            return
        self._sockets += (near, far)
        for source, target in ((near, far), (far, near)):
            Thread(target=_pump, args=(source, target), daemon=True).start()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):  # when one end is closed, the other is closed, too
        while data := source.recv(65_536):
            target.sendall(data)
    _close(source)
    _close(target)


def _close(connection: socket.socket) -> None:
    with suppress(OSError):  # it may be closed already
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()


class Example:
    """The steps of the example, and the checks of its results."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder, self.stack = folder, stack
        self.documents: Documents = {}
        self.schema = parse_schema(decode(SCHEMA, "text/turtle"))

    def run(self) -> int:
        self.start()
        self.compare("At the start")
        self.cut_off()
        self.lose_a_provider()
        self.connect_again()
        self.compare("At the end")
        self.compare_providers()
        print_line("\nEverything equals a full evaluation of the rules.")
        return 0

    def start(self) -> None:
        print_line("# Two providers: one is the leader, the other follows its log.")
        self.leader = self.begin("leader", "serve", "--only", "api", "--port", "0")
        httpx.put(f"{self.leader.address}/metadata/schema", content=SCHEMA, headers=TURTLE).raise_for_status()
        self.second = self.begin(
            "second", "serve", "--only", "api", "--port", "0", "--follow", self.leader.address
        )
        print_line("\n# Documents are registered at both of them.")
        for number in range(1, 6):
            at = (self.leader, self.second)[number % 2]
            self.register(at, number, f"host{number}.uni-passau.de", 32 * number, 300 + 100 * number)
        self.print_classes(self.second)
        print_line(
            "\n# Two repositories: one behind a connection that can be cut, one that knows both providers."
        )
        self.proxy = Proxy(self.second.address)
        self.passau = self.repository("passau", self.proxy.address)
        self.large = self.repository("large", self.second.address, self.leader.address)

    def print_classes(self, provider: Program) -> None:
        """Fetch the page for people and the JSON for programs, and print the number of resources of each class."""
        self._done(httpx.get(f"{provider.address}/browse", timeout=60))
        classes = httpx.get(f"{provider.address}/metadata/classes", timeout=60).json()["classes"]
        counts = ", ".join(f"{each['class']} {each['resources']}" for each in classes)
        print_line(f"{provider.address}/browse shows the classes of {provider.name}: {counts}")

    def begin(self, name: str, *words: str) -> Program:
        home = ("--home", str(self.folder / name))
        return self.stack.enter_context(Program(name, *words, *home))

    def repository(self, name: str, *providers: str) -> Program:
        file = self.folder / f"{name}.txt"
        file.write_text("".join(f"{rule}: {text}\n" for rule, text in RULES[name].items()))
        given = [word for url in providers for word in ("--provider", url)]
        return self.begin(name, "repository", *given, "--rules", str(file), "--name", name, "--port", "0")

    def register(self, at: Program, number: int, host: str, memory: int, cpu: int) -> None:
        uri = f"http://example.org/{number}.ttl"
        body = f"""@prefix s: <http://example.org/servers#> .
            <#host> a s:CycleProvider ; s:serverHost "{host}" ; s:serverPort {5000 + number} ;
                s:serverInformation <#info> .
            <#info> a s:ServerInformation ; s:memory {memory} ; s:cpu {cpu} .""".encode()
        self._done(httpx.put(self._document(at, uri), content=body, headers=TURTLE, timeout=60))
        self.documents[uri] = body
        print_line(f"registered at {at.name}: {uri}  {host}, memory {memory}, cpu {cpu}")

    def remove(self, at: Program, number: int) -> None:
        uri = f"http://example.org/{number}.ttl"
        self._done(httpx.delete(self._document(at, uri), timeout=60))
        del self.documents[uri]
        print_line(f"removed at {at.name}: {uri}")

    def _document(self, at: Program, uri: str) -> httpx.URL:
        return httpx.URL(f"{at.address}/metadata/documents", params={"uri": uri})

    def _done(self, answer: httpx.Response) -> None:
        if answer.status_code != 200:
            raise SystemExit(f"refused: {answer.status_code} {answer.text}")

    def cut_off(self) -> None:
        print_line("\n# The connection is cut: 'passau' has to work without its provider.")
        before = self.stored(self.passau)
        self.proxy.cut()
        wait_until(
            "'passau' detects that it is disconnected", lambda: bool(self.status(self.passau)["problem"])
        )
        print_line("\n# Meanwhile, metadata changes.")
        self.register(self.second, 1, "host1.uni-passau.de", 512, 900)  # enters 'large' and 'fast'
        self.register(self.leader, 3, "host3.tum.de", 96, 600)  # leaves 'passau'
        self.register(self.leader, 6, "host6.uni-passau.de", 48, 450)  # enters 'passau'
        self.remove(self.second, 5)
        wait_until("'large' has followed", lambda: self.stored(self.large) == self.expected("large"))
        if self.stored(self.passau) != before:
            raise SystemExit("a disconnected repository has changed")
        query = "search CycleProvider c select c.serverHost order by c.serverHost"
        print_line("query to 'passau', which is disconnected:", *self.ask(self.passau, query))
        print_line("query to 'large', which is connected:", *self.ask(self.large, query))

    def lose_a_provider(self) -> None:
        print_line("\n# The follower is killed. 'large' switches to the leader.")
        self.second.kill()
        wait_until(
            "'large' has switched", lambda: self.status(self.large)["following"] == self.leader.address
        )
        self.register(self.leader, 7, "host7.uni-passau.de", 1024, 2000)
        self.register(self.leader, 2, "host2.uni-passau.de", 16, 200)
        wait_until("'large' has followed", lambda: self.stored(self.large) == self.expected("large"))
        print_line("\n# The follower is restarted and catches up.")
        self.second = self.begin("second", "serve", "--only", "api", "--port", self.second.port)
        wait_until(
            "both providers are at the same position",
            lambda: self.position("leader") == self.position("second"),
        )

    def position(self, which: str) -> int:
        program: Program = getattr(self, which)
        position: int = httpx.get(f"{program.address}/metadata/status").json()["position"]
        return position

    def connect_again(self) -> None:
        print_line("\n# The connection is restored: 'passau' catches up.")
        self.proxy.restore()
        wait_until("'passau' has caught up", lambda: self.stored(self.passau) == self.expected("passau"))

    def status(self, repository: Program) -> dict[str, Any]:
        found: dict[str, Any] = httpx.get(f"{repository.address}/status").json()
        return found

    def stored(self, repository: Program) -> dict[str, Any]:
        """Return the resources of a repository, queried as by any client."""
        if self.status(repository)["provider"] is None:
            return {}  # it has not reached a provider yet
        answers = (self._query(repository, f"search {cls} x") for cls in self.schema.classes)
        return {each["uri"]: each["values"] for answer in answers for each in answer["resources"]}

    def ask(self, repository: Program, text: str) -> list[str]:
        return [row[0] for row in self._query(repository, text)["rows"]]

    def _query(self, repository: Program, text: str) -> dict[str, Any]:
        answer = httpx.get(f"{repository.address}/query", params={"query": text}, timeout=60)
        self._done(answer)
        found: dict[str, Any] = answer.json()
        return found

    def expected(self, name: str) -> dict[str, Any]:
        """Return the resources that a repository should have: a naive evaluation of its rules over all documents."""
        resources = read_resources(self.documents, self.schema)
        members = {
            uri
            for text in RULES[name].values()
            for uri in evaluate_rule(parse_rule(text), resources.values(), self.schema)
        }
        return {uri: as_record(resources[uri]) for uri in closure(members, resources, self.schema)}

    def compare(self, when: str) -> None:
        print_line(f"\n# {when}, each repository has what evaluating its rules from scratch gives:")
        self.compare_one(self.passau)
        self.compare_one(self.large)

    def compare_one(self, repository: Program) -> None:
        expected = self.expected(repository.name)
        what = f"'{repository.name}' has the expected resources"
        wait_until(what, lambda: self.stored(repository) == expected)
        print_line(f"{repository.name}: {len(expected)} resources, equal")
        for uri in sorted(expected):
            print_line(f"    {uri}  {json.dumps(expected[uri])}")

    def compare_providers(self) -> None:
        one, other = (self.metadata_of(each) for each in (self.leader, self.second))
        if one != other:
            raise SystemExit("the providers have different metadata")
        print_line(f"providers: {len(one)} documents each at position {self.position('leader')}, equal")

    def metadata_of(self, provider: Program) -> set[str]:
        """Return the documents of a provider with their resources, as lines of its snapshot."""
        lines = httpx.get(f"{provider.address}/metadata/snapshot", timeout=60).text.splitlines()
        return {line for line in lines[1:] if line}


def read_resources(documents: Documents, schema: Schema) -> dict[str, Resource]:
    read = (DocumentReader(schema).read(body, "text/turtle", uri) for uri, body in documents.items())
    return {resource.uri: resource for document in read for resource in document.resources}


def closure(uris: Iterable[str], resources: Mapping[str, Resource], schema: Schema) -> set[str]:
    """Return the strong closure of resources."""
    found, waiting = set[str](), list(uris)
    while waiting:
        uri = waiting.pop()
        if uri in found or uri not in resources:
            continue
        found.add(uri)
        for name, values in resources[uri].values.items():
            declared = schema.property_of(resources[uri].cls, name)
            if declared is not None and declared.reference is Reference.STRONG:
                waiting += (value.uri for value in values if isinstance(value, Ref))
    return found


def as_record(resource: Resource) -> dict[str, Any]:
    return {
        name: [{"ref": value.uri} if isinstance(value, Ref) else value for value in values]
        for name, values in resource.values.items()
    }


if __name__ == "__main__":
    sys.exit(main())

"""Parsers in separate processes: an input that crashes one affects no other input."""

from __future__ import annotations

import os
import pickle
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from datetime import datetime
from pathlib import Path
from threading import Barrier
from xmlrpc.client import dumps

import pytest

from tests.parsers import parser_hooks as hooks
from tests.support.paths import ROOT
from tidings.api.xml_rpc import xml_rpc_call
from tidings.documents.kind import check_document
from tidings.errors import DecodeProblem, Overloaded
from tidings.graphs.kind import check_graph
from tidings.graphs.model import RDF, Graph
from tidings.graphs.rdf import multipart, rdf_decoder, statements
from tidings.graphs.syndication import feed_parser
from tidings.parsers import xml_parser
from tidings.parsers.parser_pool import MODULES, Lane, Limits, ParserPool, run_isolated
from tidings.parsers.xml_bytes import CODECS, ENCODINGS

pytestmark = pytest.mark.xdist_group("parser_pool")

SMALL = Limits(seconds=2, memory=256, processes=2, waiting=1)
HOOKS = (hooks.__name__, *MODULES)
CALLERS, STRANGERS = Lane.CALLERS, Lane.STRANGERS


@pytest.fixture(scope="module", autouse=True)
def importable() -> Iterator[None]:
    """Let parser processes import the hooks, and the same copy of Tidings as this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)
        yield


@pytest.fixture(scope="module")
def shared() -> Iterator[ParserPool]:
    with ParserPool(SMALL, HOOKS) as pool:
        yield pool


def test_call_returns_result_of_function(shared: ParserPool) -> None:
    assert shared.call(CALLERS, hooks.count, list(range(1_000_000))) == 1_000_000


def test_call_raises_error_of_function(shared: ParserPool) -> None:
    with pytest.raises(DecodeProblem) as problem:
        shared.call(CALLERS, hooks.reject)
    assert (problem.value.what, problem.value.where, problem.value.accepted) == ("no", "line 1", "yes")


def test_call_unexpected_error_includes_traceback(shared: ParserPool) -> None:
    with pytest.raises(RuntimeError, match=r"(?s)fail failed in a parser process.*KeyError: 'a bug'"):
        shared.call(CALLERS, hooks.fail)


def test_call_hanging_function_is_killed_and_next_call_succeeds(shared: ParserPool) -> None:
    with pytest.raises(
        DecodeProblem, match="parsing took too long; accepted: input that is parsed within 2 s"
    ):
        shared.call(CALLERS, hooks.hang)
    assert shared.call(CALLERS, hooks.count, [1]) == 1


def test_call_exceeding_memory_is_rejected_and_next_call_succeeds(shared: ParserPool) -> None:
    with pytest.raises(DecodeProblem, match=r"too much memory, .* within 256 MB"):
        shared.call(CALLERS, hooks.allocate)
    assert shared.call(CALLERS, hooks.count, [1]) == 1


def test_call_aborting_function_is_rejected_and_next_call_succeeds(shared: ParserPool) -> None:
    with pytest.raises(DecodeProblem, match="the parser crashed"):
        shared.call(CALLERS, hooks.abort)
    assert shared.call(CALLERS, hooks.count, [1]) == 1


def test_call_expanding_entities_without_end_is_rejected(shared: ParserPool) -> None:
    with pytest.raises(DecodeProblem, match=r"too much memory|took too long"):
        shared.call(CALLERS, hooks.expand_entities)
    assert shared.call(CALLERS, hooks.count, [1]) == 1


def test_call_parser_that_loads_files_cannot_open_any(shared: ParserPool, tmp_path: Path) -> None:
    """Only the process prevents it: in this process the parser loads the file."""
    path = tmp_path / "x.dtd"
    path.write_text('<!ENTITY x "loaded">')
    assert b"loaded" in hooks.load_external_dtd(str(path))
    with pytest.raises(RuntimeError, match="Too many open files"):
        shared.call(CALLERS, hooks.load_external_dtd, str(path))


def test_pool_process_that_died_while_idle_is_replaced() -> None:
    with ParserPool(SMALL, HOOKS) as pool:
        pool.call(CALLERS, hooks.count, [1])
        [process] = pool._idle
        process._process.kill()
        process._process.wait()
        assert pool.call(CALLERS, hooks.count, [1, 2]) == 2


def test_pool_process_cannot_open_files_or_sockets(shared: ParserPool, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"secret")
    with pytest.raises(RuntimeError, match="Too many open files"):
        shared.call(CALLERS, hooks.open_file, str(tmp_path / "file"))
    with socket.create_server(("127.0.0.1", 0)) as server, pytest.raises(RuntimeError, match="OSError"):
        shared.call(CALLERS, hooks.connect, server.getsockname()[1])


def test_call_result_with_code_is_not_unpickled(shared: ParserPool) -> None:
    with pytest.raises(pickle.UnpicklingError, match=r"posix.system|os.system"):
        shared.call(CALLERS, hooks.malicious_answer)


def test_call_lane_of_strangers_leaves_process_to_callers_and_queue_is_bounded(shared: ParserPool) -> None:
    """Of three hanging strangers one runs, one waits and one is rejected at once. A caller is served meanwhile."""
    started = Barrier(4)

    def stranger() -> str:
        started.wait()
        with pytest.raises((DecodeProblem, Overloaded)) as problem:
            shared.call(STRANGERS, hooks.hang)
        return type(problem.value).__name__

    with ThreadPoolExecutor(3) as threads:
        strangers = [threads.submit(stranger) for _ in range(3)]
        started.wait()
        assert shared.call(CALLERS, hooks.count, [1]) == 1
        outcomes = sorted(each.result() for each in strangers)
    assert outcomes[-1] == "Overloaded" and outcomes[0] == "DecodeProblem"


def test_close_fails_running_calls() -> None:
    pool = ParserPool(Limits(seconds=60, processes=1), HOOKS)
    with ThreadPoolExecutor(1) as threads:
        pool.call(CALLERS, hooks.count, [])
        hanging = threads.submit(pool.call, CALLERS, hooks.hang)
        while not pool._busy[CALLERS]:
            pass
        pool.close()
        with pytest.raises((DecodeProblem, Overloaded)):
            hanging.result()
    with pytest.raises(Overloaded):
        pool.call(CALLERS, hooks.count, [])


# --- Functions that the service calls in parser processes ---------------------------------------------------------

RDF_XML = "application/rdf+xml"
GRAPH = f'<r:RDF xmlns:r="{RDF}" xmlns:e="urn:e:"><e:a r:about="urn:a"/></r:RDF>'.encode()
ITEM = b"<item><title>x</title><pubDate>Wed, 01 May 2024 12:00:00 +0200</pubDate></item>"
FEED = b'<rss version="2.0"><channel>' + ITEM + b"</channel></rss>"
CALL = dumps((datetime(2026, 5, 1, 12), 1, 0.5, b"x", [{"a": True}]), "m").encode()


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (rdf_decoder.decode, (GRAPH, RDF_XML)),
        (rdf_decoder.decode, (b'{"@context": "http://schema.org", "name": "x"}', "application/ld+json")),
        (statements.statements, (GRAPH, RDF_XML, "http://example.org/")),
        (multipart.write_parts, (FEED, "application/rss+xml", None)),
        (multipart.write_graph, (GRAPH, RDF_XML, "http://example.org/")),
        (multipart.count_graphs, (GRAPH, RDF_XML, None)),
        (feed_parser.read_feed, (FEED, "", "http://example.org/")),
        (feed_parser.items_of, (FEED, "")),
        (xml_rpc_call.read_call, (CALL, "text/xml")),
        (check_document, (b"<a/>",)),
        (check_graph, (GRAPH, RDF_XML)),
        (xml_parser.indent_xml, (b"<a><b/></a>",)),
    ],
)
def test_call_functions_of_service_give_same_result_in_process(
    shared: ParserPool, function: object, args: tuple[object, ...]
) -> None:
    assert shared.call(CALLERS, function, *args) == function(*args)  # type: ignore[operator, arg-type]


def test_call_document_in_any_encoding_is_decoded(shared: ParserPool) -> None:
    """Python imports a codec when it is first used, but a parser process cannot import modules."""
    for name in CODECS[3:]:
        body = f'<?xml version="1.0" encoding="{name.replace("cp125", "windows-125")}"?><a/>'.encode(name)
        shared.call(CALLERS, check_document, body)
    assert len(ENCODINGS) < len(CODECS)


def test_run_isolated_without_pool_calls_function() -> None:
    assert run_isolated(hooks.count, [1, 2]) == 2


def test_run_isolated_with_pool_calls_function_in_process(shared: ParserPool) -> None:
    with shared.install():
        assert run_isolated(rdf_decoder.decode, GRAPH, RDF_XML) != Graph(())
        with pytest.raises(DecodeProblem, match="the parser crashed"):
            run_isolated(hooks.abort)
    assert run_isolated(hooks.count, [1, 2]) == 2


@pytest.mark.parametrize("limit", [field.name for field in fields(Limits)])
def test_limits_are_documented_with_defaults(limit: str) -> None:
    page = (ROOT / "docs/operating.md").read_text()
    assert f"\n| `{limit}` | {getattr(Limits(), limit):,} | " in page

"""Parsers in processes of their own: what ends one is the problem of one input, and the next gets another process."""

from __future__ import annotations

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
from tidings.parsers.parser_pool import MODULES, Lane, Limits, ParserPool, isolated
from tidings.parsers.xml_bytes import CODECS, ENCODINGS

pytestmark = pytest.mark.xdist_group("parser_pool")

SMALL = Limits(seconds=2, memory=256, processes=2, waiting=1)
HOOKS = (hooks.__name__, *MODULES)
CALLERS, STRANGERS = Lane.CALLERS, Lane.STRANGERS


@pytest.fixture(scope="module", autouse=True)
def importable() -> Iterator[None]:
    """Parser processes find the hooks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        yield


@pytest.fixture(scope="module")
def shared() -> Iterator[ParserPool]:
    with ParserPool(SMALL, HOOKS) as made:
        yield made


def test_call_returns_what_the_function_returns(shared: ParserPool) -> None:
    assert shared.call(CALLERS, hooks.count, list(range(1_000_000))) == 1_000_000


def test_call_raises_what_the_function_refuses(shared: ParserPool) -> None:
    with pytest.raises(DecodeProblem) as problem:
        shared.call(CALLERS, hooks.refuse)
    assert (problem.value.what, problem.value.where, problem.value.accepted) == ("no", "line 1", "yes")


def test_call_of_a_function_with_a_mistake_says_where_it_failed(shared: ParserPool) -> None:
    with pytest.raises(RuntimeError, match=r"(?s)fail failed in a parser process.*KeyError: 'a mistake'"):
        shared.call(CALLERS, hooks.fail)


def test_call_that_hangs_is_ended_and_the_next_is_answered(shared: ParserPool) -> None:
    with pytest.raises(
        DecodeProblem, match="parsing took too long; accepted: input that is parsed within 2 s"
    ):
        shared.call(CALLERS, hooks.hang)
    assert shared.call(CALLERS, hooks.count, [1]) == 1


def test_call_that_takes_too_much_memory_is_refused_and_the_next_is_answered(shared: ParserPool) -> None:
    with pytest.raises(DecodeProblem, match=r"too much memory, .* within 256 MB"):
        shared.call(CALLERS, hooks.allocate)
    assert shared.call(CALLERS, hooks.count, [1]) == 1


def test_call_that_aborts_is_refused_and_the_next_is_answered(shared: ParserPool) -> None:
    with pytest.raises(DecodeProblem, match="the parser crashed"):
        shared.call(CALLERS, hooks.abort)
    assert shared.call(CALLERS, hooks.count, [1]) == 1


def test_call_whose_parser_expands_entities_without_end_is_refused(shared: ParserPool) -> None:
    with pytest.raises(DecodeProblem, match=r"too much memory|took too long"):
        shared.call(CALLERS, hooks.expand_entities)
    assert shared.call(CALLERS, hooks.count, [1]) == 1


def test_call_whose_parser_is_told_to_load_a_file_loads_none(shared: ParserPool, tmp_path: Path) -> None:
    """Though nothing but the process keeps it from doing so: here it loads the file."""
    path = tmp_path / "x.dtd"
    path.write_text('<!ENTITY x "loaded">')
    assert b"loaded" in hooks.load_external_dtd(str(path))
    with pytest.raises(RuntimeError, match="Too many open files"):
        shared.call(CALLERS, hooks.load_external_dtd, str(path))


def test_process_that_ended_while_it_was_idle_is_replaced() -> None:
    with ParserPool(SMALL, HOOKS) as pool:
        pool.call(CALLERS, hooks.count, [1])
        [process] = pool._idle
        process._process.kill()
        process._process.wait()
        assert pool.call(CALLERS, hooks.count, [1, 2]) == 2


def test_process_opens_no_file_and_no_socket(shared: ParserPool, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"secret")
    with pytest.raises(RuntimeError, match="Too many open files"):
        shared.call(CALLERS, hooks.open_file, str(tmp_path / "file"))
    with socket.create_server(("127.0.0.1", 0)) as server, pytest.raises(RuntimeError, match="OSError"):
        shared.call(CALLERS, hooks.connect, server.getsockname()[1])


def test_answer_that_would_do_something_is_not_read(shared: ParserPool) -> None:
    with pytest.raises(pickle.UnpicklingError, match=r"posix.system|os.system"):
        shared.call(CALLERS, hooks.evil)


def test_strangers_leave_a_process_to_callers_and_a_queue_is_not_endless(shared: ParserPool) -> None:
    """Three strangers hang: one is at it, one waits, one is refused at once. A caller is answered meanwhile."""
    begun = Barrier(4)

    def stranger() -> str:
        begun.wait()
        with pytest.raises((DecodeProblem, Overloaded)) as problem:
            shared.call(STRANGERS, hooks.hang)
        return type(problem.value).__name__

    with ThreadPoolExecutor(3) as threads:
        strangers = [threads.submit(stranger) for _ in range(3)]
        begun.wait()
        assert shared.call(CALLERS, hooks.count, [1]) == 1
        ended = sorted(each.result() for each in strangers)
    assert ended[-1] == "Overloaded" and ended[0] == "DecodeProblem"


def test_close_fails_what_is_under_way() -> None:
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


# --- What the service calls there ---------------------------------------------------------------------------------

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
        (xml_parser.indented, (b"<a><b/></a>",)),
    ],
)
def test_functions_of_the_service_answer_there_as_here(
    shared: ParserPool, function: object, args: tuple[object, ...]
) -> None:
    assert shared.call(CALLERS, function, *args) == function(*args)  # type: ignore[operator, arg-type]


def test_every_encoding_is_known_there(shared: ParserPool) -> None:
    """Python imports an encoding when it is first used; nothing can be imported there."""
    for name in CODECS[3:]:
        body = f'<?xml version="1.0" encoding="{name.replace("cp125", "windows-125")}"?><a/>'.encode(name)
        shared.call(CALLERS, check_document, body)
    assert len(ENCODINGS) < len(CODECS)


def test_isolated_without_a_pool_calls_the_function() -> None:
    assert isolated(hooks.count, [1, 2]) == 2


def test_isolated_with_a_pool_calls_the_function_there(shared: ParserPool) -> None:
    with shared.installed():
        assert isolated(rdf_decoder.decode, GRAPH, RDF_XML) != Graph(())
        with pytest.raises(DecodeProblem, match="the parser crashed"):
            isolated(hooks.abort)
    assert isolated(hooks.count, [1, 2]) == 2


@pytest.mark.parametrize("limit", [field.name for field in fields(Limits)])
def test_the_docs_have_each_limit_with_its_default(limit: str) -> None:
    page = (ROOT / "docs/operating.md").read_text()
    assert f"\n| `{limit}` | {getattr(Limits(), limit):,} | " in page

"""Reasons of notifications: comparisons that hold or no longer hold, and what changed."""

from __future__ import annotations

import pytest

from tests.support.stores.server_documents import ALL, DOC, HOST, INFO, LARGE, OTHER, RDF_XML, SCHEMA, body
from tidings.metadata.provider.provider import Provider
from tidings.model import Reason
from tidings.notification_text import format_reasons
from tidings.store.store import Store


@pytest.fixture
def provider(store: Store) -> Provider:
    opened = Provider(store)
    opened.load_schema(SCHEMA.body, SCHEMA.media_type)
    return opened


def register_turtle(provider: Provider, text: str, uri: str = DOC) -> None:
    provider.register(uri, f"@prefix s: <http://example.org/servers#> . {text}".encode(), "text/turtle")


def read_reasons(store: Store, after: int = 0) -> list[tuple[str, str]]:
    return [(each.kind, format_reasons(each.because)) for each in store.notifications.read("ana", after)]


def test_reason_of_comparison_has_its_value(provider: Provider, store: Store) -> None:
    provider.add_rules({"large": LARGE}, "ana")
    provider.register(DOC, body("host.rdf"), RDF_XML)
    provider.register(DOC, body("host-with-32MB.rdf"), RDF_XML)
    assert read_reasons(store) == [
        ("entered", "serverInformation.memory 92 > 64"),
        ("left", "serverInformation.memory 32 is not > 64"),
    ]
    [entered, _] = store.notifications.read("ana")
    assert entered.because == (Reason("serverInformation.memory > 64", 92, INFO),)


def test_reason_of_left_names_failed_condition(provider: Provider, store: Store) -> None:
    rule = "search CycleProvider c register c where c.serverInformation.memory > 64 and c.serverHost contains 'a'"
    provider.add_rules({"r": rule}, "ana")
    full = "<#host> a s:CycleProvider ; s:serverHost 'abc' ; s:serverInformation <#info> . "
    info = "<#info> a s:ServerInformation ; s:memory 92 ."
    for text in (
        full,
        "<#host> a s:CycleProvider ; s:serverHost 'abc' .",
        "<#host> a s:CycleProvider ; s:serverHost 'bcd' ; s:serverInformation <#info> . ",
        "<#host> a s:CycleProvider ; s:serverInformation <#info> . ",
        full.replace("CycleProvider", "ServerInformation").split(";")[0] + " . ",
    ):
        register_turtle(provider, full + info)
        register_turtle(provider, text + ("" if text == full else info))
    register_turtle(provider, full + info)
    provider.remove(DOC)
    assert [text_of_reasons for kind, text_of_reasons in read_reasons(store) if kind == "left"] == [
        "serverInformation has no target",
        "serverInformation is missing",
        "serverHost 'bcd' does not contain 'a'",
        "serverHost is missing",
        "is not a CycleProvider; serverInformation is missing",
        "removed",
    ]


def test_reason_of_changed_names_property_and_place(provider: Provider, store: Store) -> None:
    provider.add_rules({"all": ALL}, "ana")
    host = "<#host> a s:CycleProvider ; s:serverPort {} ; s:serverInformation <#info> . "
    register_turtle(provider, host.format(1))
    for port, info in ((1, "s:memory 92"), (2, "s:memory 128"), (2, "s:cpu 600"), (2, "")):
        register_turtle(provider, host.format(port) + f"<#info> a s:ServerInformation ; {info} .")
    register_turtle(provider, host.format(2))
    register_turtle(provider, "<#host> a s:CycleProvider .")
    assert read_reasons(store) == [
        ("entered", "is a CycleProvider"),
        ("changed", "serverInformation is new"),
        ("changed", "serverPort 2 was 1; serverInformation.memory 128 was 92"),
        ("changed", "serverInformation.cpu 600 is new; serverInformation.memory 128 is no longer set"),
        ("changed", "serverInformation.cpu 600 is no longer set"),
        ("changed", "serverInformation was removed"),
        ("changed", f"serverInformation '{INFO}' is no longer set; serverPort 2 is no longer set"),
    ]
    assert [each.at for each in store.notifications.read("ana")[2].because] == [HOST, INFO]


def test_reason_of_join_names_partner(provider: Provider, store: Store) -> None:
    used = "search ServerInformation s, CycleProvider c register s where c.serverInformation = s and c.serverPort > 5"
    search = "search CycleProvider c, CycleProvider d register c where"
    ports = f"{search} c.serverPort < d.serverPort and d.serverHost = 'd'"
    provider.add_rules({"used": used, "ports": ports}, "ana")
    register_turtle(
        provider,
        "<#d> a s:CycleProvider ; s:serverPort 9 ; s:serverHost 'd' ; s:serverInformation <#i> ."
        "<#i> a s:ServerInformation .",
        OTHER,
    )
    register_turtle(provider, "<#c> a s:CycleProvider ; s:serverPort 7 .")
    provider.remove(OTHER)
    d = f"<{OTHER}#d>"
    assert read_reasons(store) == [
        ("entered", f"it = {d}.serverInformation; {d}.serverPort 9 > 5"),
        ("entered", f"serverPort 7 < {d}.serverPort; {d}.serverHost 'd' = 'd'"),
        ("left", "serverPort 7 is not < any CycleProvider.serverPort"),
        ("left", "removed"),
    ]


def test_reason_of_join_lists_all_comparisons(provider: Provider, store: Store) -> None:
    """A partner along a reference is named by its path, another one by its URI."""
    twins = "search CycleProvider c, CycleProvider d register c where"
    provider.add_rules(
        {"above": "search CycleProvider c register c where c.serverInformation.cpu > c.serverPort"}, "ana"
    )
    provider.add_rules(
        {"twins": f"{twins} c.serverHost = d.serverHost and c.serverPort < d.serverPort"}, "bob"
    )
    provider.add_rules({"own": "search ServerInformation s register s where s.memory >= s.cpu"}, "cy")
    host, info = (
        "<#c> a s:CycleProvider ; {} ; s:serverInformation <#i> . ",
        "<#i> a s:ServerInformation ; {} . ",
    )
    register_turtle(provider, "<#d> a s:CycleProvider ; s:serverPort 9 ; s:serverHost 'h' .", OTHER)
    for host_properties, info_properties in (
        ("s:serverPort 7 ; s:serverHost 'h'", "s:cpu 8 ; s:memory 8"),
        ("s:serverPort 9 ; s:serverHost 'h'", "s:cpu 8 ; s:memory 7"),
        ("s:serverPort 8 ; s:serverHost 'h'", "s:cpu 9 ; s:memory 9"),
        ("s:serverHost 'h'", "s:cpu 9"),
        ("s:serverPort 8 ; s:serverHost 'h'", "s:cpu 9"),
        ("s:serverPort 8 ; s:serverHost 'x'", "s:memory 9"),
    ):
        register_turtle(provider, host.format(host_properties) + info.format(info_properties))
    d = f"<{OTHER}#d>"
    entered = ("entered", f"serverHost 'h' = {d}.serverHost; serverPort {{}} < {d}.serverPort")
    none = "is not = any CycleProvider.serverHost with serverPort < its serverPort"
    reasons_by_owner = {
        subscriber: [(e.kind, format_reasons(e.because)) for e in store.notifications.read(subscriber)]
        for subscriber in ("ana", "bob", "cy")
    }
    assert reasons_by_owner == {
        "ana": [
            ("entered", "serverPort 7 < serverInformation.cpu"),
            ("left", "serverPort 9 is not < serverInformation.cpu"),
            ("entered", "serverPort 8 < serverInformation.cpu"),
            ("left", "serverPort is missing"),
            ("entered", "serverPort 8 < serverInformation.cpu"),
            ("left", "serverInformation.cpu is missing"),
        ],
        "bob": [
            (entered[0], entered[1].format(7)),
            ("left", f"serverHost 'h' {none}"),
            (entered[0], entered[1].format(8)),
            ("left", f"serverHost 'h' {none}"),
            (entered[0], entered[1].format(8)),
            ("left", f"serverHost 'x' {none}"),
        ],
        "cy": [
            ("entered", "cpu 8 <= memory"),
            ("left", "cpu 8 is not <= memory"),
            ("entered", "cpu 9 <= memory"),
            ("left", "memory is missing"),
        ],
    }


def test_reason_of_added_and_changed_rules(provider: Provider, store: Store) -> None:
    provider.register(DOC, body("host.rdf"), RDF_XML)
    one = f"search CycleProvider c register c where c = <{HOST}>"
    provider.set_rules({"large": LARGE, "one": one}, "ana")
    either = "search CycleProvider c register c where c.serverPort = 5 or c.serverInformation.cpu < 500"
    provider.set_rules({"large": either}, "ana")
    assert read_reasons(store) == [
        ("entered", "serverInformation.memory 92 > 64"),
        ("entered", f"it '{HOST}' = <{HOST}>"),
        ("left", "serverPort 5874 is not = 5; serverInformation.cpu 600 is not < 500"),
    ]


GRAPH = b"""@prefix : <http://example.org/graph#> . @prefix md: <https://tidings.dev/metadata#> .
    @prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
    @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . :Node a rdfs:Class .
    :size a rdf:Property ; rdfs:domain :Node ; rdfs:range xsd:integer .
    :near a rdf:Property ; rdfs:domain :Node ; rdfs:range :Node ; md:several true ; md:reference md:strong ."""


def test_reason_in_dense_graph_is_found_in_time(store: Store) -> None:
    """20 nodes that refer to each other have 20 to the power of 8 paths of this length."""
    provider, count, steps = Provider(store), 20, 8
    provider.load_schema(GRAPH, "text/turtle")
    near = ", ".join(f"<#n{i}>" for i in range(count))

    def register(size: int) -> None:
        sizes = {i: size if i == 7 else 1 for i in range(count)}
        nodes = (f"<#n{i}> a :Node ; :size {sizes[i]} ; :near {near} ." for i in range(count))
        text = f"@prefix : <http://example.org/graph#> . {' '.join(nodes)}"
        provider.register(DOC, text.encode(), "text/turtle")

    path = "near?." * steps
    provider.add_rules({"r": f"search Node n register n where n.{path}size > 5"}, "ana")
    for size in (9, 10, 2):
        register(size)
    shown = "near." * steps
    assert read_reasons(store)[::count] == [
        ("entered", f"{shown}size 9 > 5"),
        ("changed", "near.size 10 was 9"),
        ("left", f"{shown}size 1 is not > 5"),
    ]

"""Instants in publications and subscriptions: exact in every engine, also between microseconds."""

from __future__ import annotations

import json

import pytest

from tidings.atoms import Atoms
from tidings.errors import SubscriptionError
from tidings.events import json_decoder
from tidings.events.predicate_compiler import parse_and_check
from tidings.events.reference_matcher import matches
from tidings.graphs import reference_matcher
from tidings.graphs.atoms import AtomReader
from tidings.graphs.model import XSD, literal
from tidings.graphs.patterns import pattern_parser
from tidings.graphs.rdf import rdf_decoder
from tidings.graphs.syndication.item_graph import date_term, instant
from tidings.graphs.taxonomy import merged
from tidings.kinds import LANGUAGES
from tidings.matching.compiler.compilation import compile_many
from tidings.matching.compiler.language import Context
from tidings.matching.index.index import Index
from tidings.metadata.rules import rule_parser
from tidings.metadata.schema.model import parse_literal
from tidings.model import Subscription
from tidings.values import Instant, Kind, parse_instant

NOON = "2004-05-31T12:00:00Z"
SAME_AS_NOON = ["2004-05-31t12:00:00z", "2004-05-31 12:00:00.000000000000Z", "2004-05-31T14:00:00+02:00"]
AFTER_NOON = ["2004-05-31T12:00:00.0000001Z", "2004-05-31T12:00:00.000000000000001Z"]


@pytest.mark.parametrize(
    ("text", "micros", "between"),
    [
        ("1970-01-01T00:00:00.123456Z", 123_456, False),
        ("1970-01-01t00:00:00.1234560000z", 123_456, False),
        ("1970-01-01T00:00:00.1234561Z", 123_456, True),
        ("1972-06-30T23:59:60Z", 78_796_800_000_000 - 1, True),
        ("1972-07-01T01:59:60.5+02:00", 78_796_800_000_000 - 1, True),
    ],
)
def test_parse_instant_any_rfc_3339_text_is_exact(text: str, micros: int, between: bool) -> None:
    assert parse_instant(text) == Instant(micros, between)


@pytest.mark.parametrize(
    "text",
    ["2004-05-31T12:00:60Z", "2004-06-29T23:59:60Z", "2004-06-30T23:59:60+02:00", "2004-05-31T12:00:61Z"],
)
def test_parse_instant_leap_second_within_month_is_rejected(text: str) -> None:
    assert parse_instant(text) is None


def test_parse_instant_leap_second_is_before_midnight() -> None:
    texts = ["2016-12-31T23:59:59.999999Z", "2016-12-31T23:59:60Z", "2017-01-01T00:00:00Z"]
    instants = [parse_instant(text) for text in texts]
    assert instants == sorted(instants) and len(set(instants)) == 3  # type: ignore[type-var]
    assert parse_instant("9999-12-31T23:59:60Z") is not None


def engine_results(text: str, value: str) -> set[bool]:
    """Whether the specification and the index match an event with a value."""
    event = json_decoder.decode(json.dumps({"at": value}).encode())
    index = Index.create()
    index.add(compile_many([Subscription("s", "ana", "predicates", text)]))
    return {matches(parse_and_check(text), event), bool(list(index.match(Atoms.of([event])).pairs()))}


@pytest.mark.parametrize(
    ("test", "same", "after"),
    [
        ("=", True, False),
        ("!=", False, True),
        (">", False, True),
        (">=", True, True),
        ("<", False, False),
        ("<=", True, False),
    ],
)
def test_events_digits_beyond_microseconds_are_compared(test: str, same: bool, after: bool) -> None:
    for literal_text in (NOON, f"'{NOON}'"):
        assert [engine_results(f"at {test} {literal_text}", each) for each in SAME_AS_NOON] == [{same}] * 3
        assert [engine_results(f"at {test} {literal_text}", each) for each in AFTER_NOON] == [{after}] * 2


@pytest.mark.parametrize(
    "text", ["at > 2016-12-31T23:59:59.999999Z", "at < 2017-01-01", "not at = 2017-01-01"]
)
def test_events_leap_second_is_before_midnight(text: str) -> None:
    assert engine_results(text, "2016-12-31T23:59:60Z") == {True}
    assert engine_results(text, "2017-01-01T00:59:60+01:00") == {True}


@pytest.mark.parametrize(
    "text",
    [
        "at = 2004-05-31T12:00:00.0000001Z",
        "at > '2004-05-31T12:00:00.0000001Z'",
        "at in ('2004-05-31', '2016-12-31T23:59:60Z')",
        "at between 2004-05-31 and 2016-12-31T23:59:60Z",
    ],
)
def test_subscriptions_between_microseconds_are_rejected_alone_and_in_bulk(text: str) -> None:
    with pytest.raises(SubscriptionError, match="compared to the microsecond") as problem:
        LANGUAGES["predicates"].compile(Context(text))
    assert problem.value.place is not None and problem.value.accepted
    texts = [text.replace("2004-05-31T12", f"2004-05-31T{hour}") for hour in range(10, 24)]
    subscriptions = [Subscription(f"s{row}", "ana", "predicates", each) for row, each in enumerate(texts)]
    assert len(compile_many(subscriptions).rejects) == len(texts)


def test_subscriptions_in_bulk_too_fine_instant_among_strings_is_rejected() -> None:
    """The first text of the shape has no instant: that does not make the later literals strings."""
    strings = [f"at = '2004-99-{day}'" for day in range(10, 30)]
    texts = [*strings, "at = '2004-05-31T12:00:00.0000001Z'"]
    subscriptions = [Subscription(f"s{row}", "ana", "predicates", text) for row, text in enumerate(texts)]
    assert [reject.id for reject in compile_many(subscriptions).rejects] == ["s20"]


def test_subscriptions_lower_case_t_and_z_are_accepted() -> None:
    assert engine_results("at = 2004-05-31t12:00:00z", NOON) == {True}
    assert rule_parser.parse_rule("search C c register c where c.at > 2004-05-31t12:00:00z").where is not None


@pytest.mark.parametrize("time", [*AFTER_NOON, *SAME_AS_NOON[::2], "2016-12-31T23:59:60Z"])
def test_cloud_events_accepted_time_is_compared_as_instant(time: str) -> None:
    body = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t", "time": time}
    event = json_decoder.decode(json.dumps(body).encode())
    [path] = [path for path, values in event.items() if time in values]
    assert matches(parse_and_check(f'"{path}" >= {NOON}'), event)


@pytest.mark.parametrize(
    ("text", "expected_matches"),
    [
        ("SELECT ?x WHERE (?x, <urn:at>, ?d) AND ?d = 2004-05-31T12:00:00Z", (True, False, False)),
        ("SELECT ?x WHERE (?x, <urn:at>, ?d) AND ?d > 2004-05-31T12:00:00Z", (False, True, True)),
        ("SELECT ?x WHERE (?x, <urn:at>, ?d) AND ?d <= 2004-05-31t12:00:00z", (True, False, False)),
    ],
)
def test_graphs_digits_beyond_microseconds_are_compared(
    text: str, expected_matches: tuple[bool, ...]
) -> None:
    index = Index.create()
    index.add(compile_many([Subscription("s", "ana", "gql", text)]))
    for value, expected in zip((NOON, AFTER_NOON[0], "2016-12-31T23:59:60Z"), expected_matches, strict=True):
        body = f'<urn:a> <urn:at> "{value}"^^<{XSD}dateTime> .'.encode()
        graph = rdf_decoder.decode(body, "text/turtle")
        assert (
            bool(reference_matcher.Explainer(graph, merged()).explain(pattern_parser.parse(text))) is expected
        )
        match = index.match(AtomReader(index.graph_paths, merged()).atoms([graph]))
        assert bool(list(match.pairs())) is expected


def test_graph_subscriptions_between_microseconds_are_rejected() -> None:
    constants = ("2004-05-31T12:00:00.0000001Z", f'"2016-12-31T23:59:60Z"^^<{XSD}dateTime>')
    for constant in constants:
        with pytest.raises(SubscriptionError, match="compared to the microsecond"):
            pattern_parser.parse(f"SELECT ?x WHERE (?x, <urn:at>, ?d) AND ?d = {constant}")


def test_metadata_instants_between_microseconds_are_not_parsed() -> None:
    assert parse_literal(literal(AFTER_NOON[0], XSD + "dateTime"), Kind.INSTANT) is None
    assert parse_literal(literal("2004-05-31t12:00:00.0000000z", XSD + "dateTime"), Kind.INSTANT) is not None


@pytest.mark.parametrize("text", [*AFTER_NOON, "2016-12-31T23:59:60Z"])
def test_feed_dates_are_exact(text: str) -> None:
    term = date_term(f" {text} ")
    assert (term.text, term.datatype) == (text, XSD + "dateTime")
    assert instant(text) is not None


def test_feed_dates_lower_case_t_and_z_are_accepted() -> None:
    assert date_term("2004-05-31t14:00:00+02:00").text == "2004-05-31T12:00:00Z"

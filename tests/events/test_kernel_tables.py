"""The batch decoder with a schema accepts and rejects the same events as the specification, with the same reasons."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.atoms import events_of
from tests.support.oracles.json_decoders import BETWEEN, with_types
from tests.support.strategies.schemas import instances, schemas
from tidings.errors import DecodeProblem, PublicationError
from tidings.events.json_batch_decoder import DecodedLines, decode_many
from tidings.events.json_decoder import decode, publication_id
from tidings.events.kernel_tables import Conformity
from tidings.events.schema.domains import Domain, DomainKind
from tidings.events.schema.event_schema import Attribute, EventSchema, EventType, Member

SIZES = Domain("size", DomainKind.ENUMERATED, {"S": (), "M": (), "é": ()})
PERCENT = Domain("percent", DomainKind.NUMERIC, minimum=0, maximum=100.5)
HUGE = Domain("huge", DomainKind.NUMERIC, minimum=2**53 + 1)
SCHEMA = EventSchema.of(
    [SIZES, PERCENT, HUGE],
    [
        Attribute("price", "numeric"),
        Attribute("title", "string"),
        Attribute("sold", "boolean"),
        Attribute("at", "instant"),
        Attribute("size", "size"),
        Attribute("share", "percent"),
        Attribute("huge", "huge"),
        Attribute("seller", "string"),
        Attribute("seller.city", "string"),
    ],
    [
        EventType("lot", (Member("price", mandatory=True), Member("title"), Member("size", multiple=True))),
        EventType("sale", (Member("sold", mandatory=True), Member("at"), Member("share"), Member("huge"))),
        EventType("note", (Member("title", multiple=True), Member("seller"), Member("seller.city"))),
        EventType("any", (Member("price"),), open=True),
    ],
)


def decode_bodies(
    bodies: Sequence[bytes], schema: EventSchema, wanted: Sequence[str], id_field: str | None
) -> DecodedLines:
    buffer = np.frombuffer(BETWEEN + b"".join(body + BETWEEN for body in bodies), np.uint8)
    sizes = np.array([len(body) for body in bodies], np.int64)
    ends = np.cumsum(sizes + len(BETWEEN))
    conformity = Conformity(schema, wanted, id_field)
    return decode_many(buffer, ends - sizes, ends, conformity.paths, id_field, conformity)


def decode_by_specification(
    body: bytes, schema: EventSchema, id_field: str | None
) -> tuple[Any, str | None, Any]:
    """Return the event, the id and the problem. An event that only violates a rule of the schema has an id."""
    try:
        decode(body)
        name = None if id_field is None else publication_id(body, id_field)
    except DecodeProblem as problem:
        return {}, None, problem_facts(problem)
    try:
        return decode(body, schema, id_field), name, None
    except PublicationError as problem:
        return {}, name, problem_facts(problem)


def problem_facts(problem: PublicationError) -> tuple[object, ...]:
    return type(problem), str(problem), problem.facts()


def decode_and_compare(
    bodies: Sequence[bytes],
    schema: EventSchema = SCHEMA,
    wanted: Sequence[str] = ("price", "title", "other"),
    id_field: str | None = "id",
) -> DecodedLines:
    got = decode_bodies(bodies, schema, wanted, id_field)
    rejects = {i: problem_facts(problem) for i, problem in got.rejects}
    for i, (body, event, name) in enumerate(
        zip(bodies, events_of(got.atoms), got.ids.to_pylist(), strict=True)
    ):
        expected, wanted_name, problem = decode_by_specification(body, schema, id_field)
        assert rejects.get(i) == problem, body
        assert got.ok[i] == (problem is None), body
        assert name == wanted_name, body
        for path in wanted:
            assert with_types({path: event.get(path, ())}) == with_types({path: expected.get(path, ())}), body
    return got


def write_body(event: dict[str, list[Any]], nested: bool, ascii_only: bool) -> bytes:
    """Write values by path as a document: a path with dots as nested objects, or as one key."""
    document: dict[str, Any] = {}
    for path, values in event.items():
        *above, last = path.split(".") if nested else [path]
        parent = document
        for key in above:
            inner = parent.setdefault(key, {})
            if not isinstance(inner, dict):  # there is a value at a prefix of this path
                inner = {}
                parent[key] = [parent[key], inner]
            parent = inner
        parent[last] = values[0] if len(values) == 1 and last not in parent else values
    return json.dumps(document, ensure_ascii=ascii_only).encode()


odd_values = st.sampled_from(
    [
        None,
        True,
        0,
        1,
        -1,
        5.0,
        1e300,
        2**53 + 2,
        2**63,
        "",
        "a0",
        "x",
        "é",
        "2026-01-31",
        [],
        [1, 1],
        {"b": 1},
    ]
)


@st.composite
def nearly_instances(draw: st.DrawFn, schema: EventSchema) -> dict[str, list[Any]]:
    """An event of the schema, possibly with attributes removed, added or exchanged."""
    event = draw(instances(schema, unnamed=True))
    some = st.sampled_from([*schema.attributes, "event_type", "id", "name", "stranger", "something else"])
    for path in draw(st.lists(some, max_size=2)):
        if draw(st.booleans()):
            event.pop(path, None)
        else:
            event[path] = draw(st.lists(odd_values, min_size=1, max_size=2))
    return event


@st.composite
def cases(draw: st.DrawFn) -> tuple[EventSchema, list[bytes], list[str], str | None]:
    schema = draw(schemas().filter(lambda made: bool(made.event_types)))
    events = draw(st.lists(nearly_instances(schema), min_size=1, max_size=4))
    bodies = [write_body(event, draw(st.booleans()), draw(st.booleans())) for event in events]
    wanted = draw(st.lists(st.sampled_from([*schema.attributes, "event_type", "id", "stranger"]), max_size=3))
    return schema, bodies, wanted, draw(st.sampled_from(["id", "name", None]))


@given(cases())
def test_conformity_generated_events_agree_with_specification(
    case: tuple[EventSchema, list[bytes], list[str], str | None],
) -> None:
    decode_and_compare(case[1], case[0], case[2], case[3])


values = st.sampled_from(
    [
        "1",
        "-3",
        "100.5",
        "100.6",
        "1e3",
        "true",
        "null",
        '"S"',
        r'"\u0053"',
        '"é"',
        '"2026-01-31T12:00Z"',
        "[]",
        "{}",
    ]
)
keys = ["price", "title", "sold", "at", "size", "share", "huge", "seller", "id", "other"]


@given(
    st.lists(st.sampled_from(["lot", "sale", "note", "any", "none"]), max_size=3),
    st.dictionaries(st.sampled_from(keys), st.lists(values, min_size=1, max_size=2), max_size=5),
)
@example(["note"], {"seller": ['"x"', '{"city":"Oslo"}']})
@example(["note"], {"seller": ['{"city":"Oslo","street":"x"}']})
def test_conformity_all_rules_of_schema_agree_with_specification(
    types: list[str], texts_by_key: dict[str, list[str]]
) -> None:
    members = [f'"{key}":[{",".join(texts)}]' for key, texts in texts_by_key.items()]
    bodies = [
        "{" + ",".join([f'"event_type":{event_type}', *members]) + "}"
        for event_type in (json.dumps(types), json.dumps(types[0] if types else None), "7")
    ]
    decode_and_compare([body.encode() for body in bodies])


ACCEPTED = [
    '{"event_type":"lot","price":1,"id":"x"}',
    '{"event_type":"lot","price":-1.5e3,"title":"an oak table","size":["S","M"]}',
    '{"event_type":["lot","sale"],"price":1,"sold":false,"at":"2026-01-31T12:00:00Z","share":100.5}',
    '{"event_type":["sale","lot","sale"],"price":1,"sold":true,"share":0,"name":7}',
    r'{"event_type":"note","seller":"\u00e9","title":["a","b"]}',
    '{"event_type":"note","seller":{"city":"Oslo"},"title":[]}',
    '{"event_type":["any","note"],"other":{"deep":[1,2]},"size":7}',
    '{"event_type":"any","title":null}',
]


@pytest.mark.parametrize("text", ACCEPTED)
def test_conformity_kernel_accepts_plain_valid_events(text: str) -> None:
    assert decode_and_compare([text.encode()], wanted=["price"], id_field="name").declined == 0


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ('{"price":1}', "R1"),
        ('{"event_type":"chair","price":1}', "R1"),
        ('{"event_type":["lot",7],"price":1}', "R1"),
        ('{"event_type":"lot"}', "R2"),
        ('{"event_type":["lot","sale"],"price":1}', "R2"),
        ('{"event_type":"lot","price":"1"}', "R2"),
        ('{"event_type":"lot","price":1,"size":["S","L"]}', "R2"),
        ('{"event_type":"lot","price":1,"title":["a","b"]}', "R2"),
        ('{"event_type":"sale","sold":true,"share":100.6}', "R2"),
        ('{"event_type":"sale","sold":true,"at":"yesterday"}', "R2"),
        ('{"event_type":"lot","price":1,"sold":true}', "R3"),
        ('{"event_type":"note","seller":{"street":"x"}}', "R3"),
    ],
)
def test_conformity_kernel_declines_invalid_events(text: str, rule: str) -> None:
    [(_, problem)] = decode_and_compare([ACCEPTED[0].encode(), text.encode(), ACCEPTED[1].encode()]).rejects
    assert problem.facts()["rule"] == rule


@pytest.mark.parametrize(
    "text",
    [
        '{"event_type":"lot","price":[1,1.0]}',
        '{"event_type":"sale","sold":true,"huge":9007199254740993}',
        r'{"event_type":"lot","price":1,"size":"\u0053"}',
        json.dumps({"event_type": ["lot"] * 20, "price": 1}),
        '{"specversion":"1.0","id":"1","source":"s","type":"lot","data":{"price":1}}',
    ],
)
def test_conformity_declined_valid_events_are_accepted_by_specification(text: str) -> None:
    got = decode_and_compare([text.encode()])
    assert (got.declined, got.rejects) == (1, [])

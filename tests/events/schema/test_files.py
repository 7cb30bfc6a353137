"""Schemas as YAML: valid files, positions of errors, round trips."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.strategies.schemas import schemas
from tidings.errors import SchemaError
from tidings.events.schema.domains import Domain, DomainKind
from tidings.events.schema.event_schema import EventSchema, Member
from tidings.events.schema.files import dump, load, load_parts, load_text, parts_of_text


def test_load_text_reads_domains() -> None:
    schema = load_text("""
        domains:
          note: string
          amount: {kind: numeric, minimum: 0, maximum: 99.5}
          size: {values: [S, M, no, 1]}
          period: {kind: enumerated, values: [XVI, XVII, XVIII], ordered: true}
          repair: {values: [new, mended, worn, broken], order: [[broken, worn, new], [broken, mended, new]]}
          category:
            concepts:
              dining room: {table: [dining table], chair: }
              outdoor: [chair, {bench: [pew]}]
    """)
    assert schema.domains == {
        "note": Domain("note", DomainKind.STRING),
        "amount": Domain("amount", DomainKind.NUMERIC, minimum=0, maximum=99.5),
        "size": Domain("size", DomainKind.ENUMERATED, {"S": (), "M": (), "no": (), "1": ()}),
        "period": Domain(
            "period", DomainKind.ENUMERATED, {"XVI": ("XVII",), "XVII": ("XVIII",), "XVIII": ()}
        ),
        "repair": Domain(
            "repair",
            DomainKind.ENUMERATED,
            {"broken": ("worn", "mended"), "worn": ("new",), "mended": ("new",), "new": ()},
        ),
        "category": Domain(
            "category",
            DomainKind.HIERARCHICAL,
            {
                "dining room": (),
                "outdoor": (),
                "table": ("dining room",),
                "dining table": ("table",),
                "chair": ("dining room", "outdoor"),
                "bench": ("outdoor",),
                "pew": ("bench",),
            },
        ),
    }


def test_load_text_reads_event_types() -> None:
    schema = load_text("""
        attributes: {seller.city: string, price: numeric, tag: string, when: instant}
        event_types:
          sale: {attributes: {seller.city: mandatory, price: , tag: multiple, when: mandatory multiple}}
          news: {open: true}
          nothing:
    """)
    assert schema.event_types["sale"].members == (
        Member("seller.city", True, False),
        Member("price", False, False),
        Member("tag", False, True),
        Member("when", True, True),
    )
    assert schema.event_types["news"].open and not schema.event_types["nothing"].members


MESSAGES = {
    "attribtes: {a: string}": (
        "a schema has no 'attribtes' (column 1); accepted: domains, attributes, event_types\n"
        "  attribtes: {a: string}\n"
        "  ^^^^^^^^^   did you mean 'attributes'?"
    ),
    "domains:\n  d: numric": (
        "the kind of a domain cannot be 'numric' (line 2, column 6); "
        "accepted: numeric, string, boolean, instant, enumerated, hierarchical\n"
        "    d: numric\n"
        "       ^^^^^^   did you mean 'numeric'?"
    ),
    "domains: {d: {value: [a]}}": (
        "domain d has no 'value' (column 15); "
        "accepted: kind, minimum, maximum, values, ordered, order, concepts\n"
        "  domains: {d: {value: [a]}}\n"
        "                ^^^^^   did you mean 'values'?"
    ),
    "domains: {d: {values: [a, b, a]}}": (
        "the value 'a' is listed twice (column 30)\n  domains: {d: {values: [a, b, a]}}\n" + " " * 31 + "^"
    ),
    "domains: {d: {values: [a, b], order: [[a, c]]}}": (
        "a value of the order cannot be 'c' (column 43); accepted: a, b\n"
        "  domains: {d: {values: [a, b], order: [[a, c]]}}\n" + " " * 44 + "^"
    ),
    "domains:\n  d:\n    concepts: {a: [b], b: [a]}": (
        "domain d has a cycle: a < b < a (line 3, column 5); accepted: an order without cycles\n"
        "      concepts: {a: [b], b: [a]}\n"
        "      ^^^^^^^^^^^^^^^^^^^^^^^^^^"
    ),
    "domains: {d: {kind: string, values: [a]}}": (
        "domain d is string and has no values (column 37); accepted: kind\n"
        "  domains: {d: {kind: string, values: [a]}}\n" + " " * 38 + "^^^"
    ),
    "domains: {d: {kind: numeric, minimum: many}}": (
        "'many' is not a number (column 39); accepted: a number such as 0 or 99.5\n"
        "  domains: {d: {kind: numeric, minimum: many}}\n" + " " * 40 + "^^^^"
    ),
    "domains: {d: }": (
        "domain d is empty (column 11); accepted: a kind, values or concepts\n"
        "  domains: {d: }\n"
        "            ^   a domain cannot be removed: schemas are only extended"
    ),
    "attributes: {a: strin}": (
        "attribute a has an unknown domain 'strin' (column 17); accepted: numeric, string, boolean, instant\n"
        "  attributes: {a: strin}\n" + " " * 18 + "^^^^^   did you mean 'string'?"
    ),
    "attributes: {a: string, a: string}": (
        "attributes has 'a' twice (column 25)\n  attributes: {a: string, a: string}\n" + " " * 26 + "^"
    ),
    "attributes: [a]": (
        "attributes is not a mapping (column 13); accepted: lines of the form name: value\n"
        "  attributes: [a]\n"
        "              ^^^"
    ),
    "attributes: {a: string}\nevent_types: {x: {attributes: {b: optional}}}": (
        "event type x has an unknown attribute 'b' (line 2, column 32); accepted: a\n"
        "  event_types: {x: {attributes: {b: optional}}}\n" + " " * 33 + "^"
    ),
    "attributes: {a: string}\nevent_types: {x: {attributes: {a: mandatry}}}": (
        "a cannot be 'mandatry' (line 2, column 35); accepted: mandatory, optional, unique, multiple\n"
        "  event_types: {x: {attributes: {a: mandatry}}}\n"
        + " " * 36
        + "^^^^^^^^   did you mean 'mandatory'?"
    ),
    "attributes: {a: string}\nevent_types: {x: {attributes: {a: mandatory optional}}}": (
        "a cannot be mandatory and optional (line 2, column 35); "
        "accepted: mandatory or optional, and unique or multiple\n"
        "  event_types: {x: {attributes: {a: mandatory optional}}}\n" + " " * 36 + "^" * 18
    ),
    "event_types: {x: {open: maybe}}": (
        "open cannot be 'maybe' (column 25); accepted: true, false\n"
        "  event_types: {x: {open: maybe}}\n" + " " * 26 + "^^^^^"
    ),
    "attributes: {a: &x string}": (
        "invalid YAML: anchors are not supported (column 17)\n  attributes: {a: &x string}\n" + " " * 18 + "^"
    ),
    "attributes: {a: string": (
        "invalid YAML: expected ',' or '}', but got '<stream end>' (column 23)\n"
        "  attributes: {a: string\n" + " " * 24 + "^"
    ),
    "- a": "a schema is not a mapping (column 1); accepted: lines of the form name: value\n  - a\n  ^^^",
    "a\0b": "a character that YAML does not allow: U+0000 (character 2)",
}


@pytest.mark.parametrize("text", MESSAGES)
def test_load_text_error_has_place(text: str) -> None:
    with pytest.raises(SchemaError) as caught:
        load_text(text)
    assert str(caught.value) == MESSAGES[text]


def test_load_text_deep_nesting_is_rejected() -> None:
    with pytest.raises(SchemaError, match="nested too deeply"):
        load_text("[" * 100_000)


def test_load_error_names_file(tmp_path: Path) -> None:
    path = tmp_path / "furniture.yaml"
    with pytest.raises(SchemaError, match=r"cannot read .*furniture\.yaml: No such file"):
        load(path)
    path.write_text("attributes: {a: strin}")
    with pytest.raises(
        SchemaError, match=r"furniture\.yaml: attribute a has an unknown domain 'strin' \(column 17\)"
    ):
        load(path)
    path.write_bytes(b"attributes: {\xff: string}")
    with pytest.raises(SchemaError, match=r"furniture\.yaml is not UTF-8 \(byte 13\)"):
        load_parts(path)


def test_parts_of_text_accepts_undeclared_attributes() -> None:
    parts = parts_of_text("event_types: {furniture: {attributes: {weight: optional}}}")
    assert parts.event_types["furniture"].members == (Member("weight"),)


def test_load_text_empty_file_is_empty_schema() -> None:
    assert load_text("").is_empty and load_text("# nothing yet\n").is_empty and dump(EventSchema()) == ""


def test_dump_writes_readable_yaml() -> None:
    text = """\
domains:
  category:
    concepts:
      dining room:
        table: [dining table]
        chair:
      outdoor: [chair, bench]
  period:
    values: [XVI, XVII]
    ordered: true
  amount:
    kind: numeric
    minimum: 0
attributes:
  price: amount
  tag: string
event_types:
  sale:
    attributes:
      price: mandatory
      tag: optional multiple
  news:
    open: true
"""
    assert dump(load_text(text)) == text


def test_dump_deep_hierarchy_round_trips() -> None:
    values = [f"c{number}" for number in range(300)]
    below = dict(zip(values, [(), *((value,) for value in values)], strict=False))
    schema = EventSchema.of([Domain("deep", DomainKind.HIERARCHICAL, below)])
    assert load_text(dump(schema)) == schema


@given(schemas())
def test_load_text_of_dump_is_same_schema(schema: EventSchema) -> None:
    assert load_text(dump(schema)) == schema


ALPHABET = st.sampled_from([*"domains:[]{}\n -&*!|>'\"#%@,?", "attributes", "values", "concepts", "x"])


@given(st.text() | st.lists(ALPHABET).map("".join))
@example("? [a]\n: b")
@example("%YAML 9.9\n---\n")
@example("!!python/object:os.system {}")
@example("a: !!binary x")
@example("domains: {d: {concepts: [[[]]]}}")
@example("a: b\n---\nc: d")
def test_load_text_any_text_is_schema_or_error(text: str) -> None:
    try:
        load_text(text)
    except SchemaError:
        return

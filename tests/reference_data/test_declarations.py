"""Declarations of reference tables: accepted and rejected ones, and the nodes that paths select."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.strategies.documents import NAMES, documents
from tidings.documents.model import Node, show_node
from tidings.documents.reference_matcher import matches
from tidings.documents.xpath.xpath_parser import parse
from tidings.errors import InputError
from tidings.reference_data.declarations import (
    Reference,
    declare,
    load,
    load_text,
    parse_linear_path,
    selects,
)


def test_declare_gives_reference() -> None:
    reference = declare("sectors", "/data/sectors.csv", "symbol", "/stock/symbol", ["sector", "sector"])
    assert reference == Reference("sectors", "/data/sectors.csv", "symbol", "/stock/symbol", ("sector",))
    assert reference.is_of_documents
    assert declare("x", "a.parquet", "k", "seller.city").file == str(Path("a.parquet").absolute())
    assert not declare("x", "a.parquet", "k", "seller.city").is_of_documents
    assert declare("x", "spark:shop.sectors", "k", "symbol").spark_table == "shop.sectors"
    assert declare("x", "s3://bucket/a.jsonl", "k", "symbol").file == "s3://bucket/a.jsonl"
    assert declare("x", "a.csv", "k", 'declare namespace p = "urn:p"; //p:a/@id').is_of_documents


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("a b", "a.csv", "k", "symbol"), "invalid name of a reference table"),
        (("", "a.csv", "k", "symbol"), "invalid name of a reference table"),
        (("a", "a.xlsx", "k", "symbol"), "unsupported table format"),
        (("a", "spark:", "k", "symbol"), "invalid name of a Spark table"),
        (("a", "a.csv", "", "symbol"), "invalid column name"),
        (("a", "a.csv", "k", ""), "invalid path in publications"),
        (("a", "a.csv", "k", "stock/symbol"), "start a path in documents with /"),
        (("a", "a.csv", "k", "/stock[symbol]"), "not a simple path"),
        (("a", "a.csv", "k", '/stock/symbol = "x"'), "not a simple path"),
        (("a", "a.csv", "k", "/a and /b"), "not a simple path"),
        (("a", "a.csv", "k", "/stock/"), "column 8"),
        (("a", "a.csv", "k", "/stock", ["the sector"]), "rename the column"),
        (("a", "a.csv", "k", "/stock", ["p:sector"]), "rename the column"),
        (("a", "a.csv", "k", "/stock", ["1st"]), "rename the column"),
        (("a", "a.csv", "k", "/stock", ["*"]), "rename the column"),
        (("a", "a.csv", "k", "/stock", ["a\u00a0b"]), "rename the column"),
    ],
)
def test_declare_invalid_argument_is_rejected(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(InputError) as problem:
        declare(*arguments)  # type: ignore[arg-type]
    assert message in problem.value.message()


@pytest.mark.parametrize("field", ["sector", "the-sector", "größe", "_x", "address.city", "名前"])
def test_declare_field_that_is_element_name_is_accepted(field: str) -> None:
    assert declare("a", "a.csv", "k", "/stock", [field]).fields == (field,)


@pytest.mark.parametrize(
    ("path", "selected", "others"),
    [
        ("/stock/symbol", ["/stock/symbol"], ["/stock", "/stock/symbol/text()", "/stock/a/symbol", "/a/stock/symbol"]),
        ("//symbol", ["/symbol", "/stock/symbol", "/a/b/symbol"], ["/symbol/a", "/a/@symbol"]),
        ("//@id", ["/a/@id", "/a/b/@id"], ["/a/id", "/a/@{urn:x}id"]),
        ("/*/text()", ["/a/text()"], ["/a/b/text()", "/a"]),
        ("//a//b", ["/a/b", "/x/a/y/a/b"], ["/b/a", "/a/b/c"]),
        ('declare namespace p = "http://x/y"; /p:a', ["/{http://x/y}a"], ["/a", "/{http://x}a"]),
    ],
)  # fmt: skip
def test_selects_matches_linear_path(path: str, selected: list[str], others: list[str]) -> None:
    steps = parse_linear_path(path)
    assert [each for each in selected if not selects(steps, each)] == []
    assert [each for each in others if selects(steps, each)] == []


def paths_and_nodes(node: Node, parent_path: str = "") -> list[tuple[str, Node]]:
    path = f"{parent_path}/{show_node(node.kind, node.name)}"
    return [(path, node), *(pair for child in node.children for pair in paths_and_nodes(child, path))]


@given(
    documents(), st.lists(st.tuples(st.booleans(), st.sampled_from([*NAMES, "*"])), min_size=1, max_size=4)
)
def test_selects_agrees_with_subscription(document: Node, steps: list[tuple[bool, str]]) -> None:
    """A path selects some node if and only if the same path as a subscription matches."""
    path = "".join(("//" if deep else "/") + name.replace("{urn:n}", "p:") for deep, name in steps)
    text = f'declare namespace p = "urn:n"; {path}'
    selected = any(selects(parse_linear_path(text), tag_path) for tag_path, _ in paths_and_nodes(document))
    assert selected == matches(parse(text), document)


DECLARED = """
shops:
  file: spark:shop.shops
  key: id
  on: shop
sectors:
  file: sectors.csv
  key: symbol
  on: /stock/symbol
  fields: [sector, country]
"""


def test_load_file_gives_references(tmp_path: Path) -> None:
    (tmp_path / "tables.yaml").write_text(DECLARED)
    assert load(tmp_path / "tables.yaml") == (
        Reference("sectors", str(tmp_path / "sectors.csv"), "symbol", "/stock/symbol", ("sector", "country")),
        Reference("shops", "spark:shop.shops", "id", "shop"),
    )
    assert load_text("") == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: {file: a.csv, key: k}", "a has no on (column 1)"),
        ("a: {file: a.csv, key: k, on: /x, field: [y]}", "did you mean 'fields'?"),
        ("a: {file: a.xls, key: k, on: /x}", "a: unsupported table format"),
        ("a: {file: a.csv, key: k, on: /x, fields: y}", "fields is not a list"),
        ("- a", "is not a mapping"),
        ("a: {file: a.csv, key: k, on: /x}\na: {file: a.csv, key: k, on: /x}", "'a' twice"),
    ],
)
def test_load_invalid_file_is_rejected(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "tables.yaml").write_text(text)
    with pytest.raises(InputError) as problem:
        load(tmp_path / "tables.yaml")
    assert message in problem.value.message()
    assert "tables.yaml" in problem.value.message()


def test_load_missing_file_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no file"):
        load(tmp_path / "tables.yaml")

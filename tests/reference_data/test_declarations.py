"""Declarations of reference tables: what is taken, what is refused, and where a path leads."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.strategies.documents import NAMES, documents
from tidings.documents.explanation import matches
from tidings.documents.model import Node, show_node
from tidings.documents.xpath.xpath_parser import parse
from tidings.errors import InputError
from tidings.reference_data.declarations import Reference, declare, leads_to, linear_path, load, load_text


def test_a_declaration() -> None:
    made = declare("sectors", "/data/sectors.csv", "symbol", "/stock/symbol", ["sector", "sector"])
    assert made == Reference("sectors", "/data/sectors.csv", "symbol", "/stock/symbol", ("sector",))
    assert made.is_of_documents
    assert declare("x", "a.parquet", "k", "seller.city").file == str(Path("a.parquet").absolute())
    assert not declare("x", "a.parquet", "k", "seller.city").is_of_documents
    assert declare("x", "spark:shop.sectors", "k", "symbol").spark_table == "shop.sectors"
    assert declare("x", "s3://bucket/a.jsonl", "k", "symbol").file == "s3://bucket/a.jsonl"
    assert declare("x", "a.csv", "k", 'declare namespace p = "urn:p"; //p:a/@id').is_of_documents


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("a b", "a.csv", "k", "symbol"), "not a name of a reference table"),
        (("", "a.csv", "k", "symbol"), "not a name of a reference table"),
        (("a", "a.xlsx", "k", "symbol"), "not a kind of table that can be read"),
        (("a", "spark:", "k", "symbol"), "a Spark table without a name"),
        (("a", "a.csv", "", "symbol"), "not a name of a column"),
        (("a", "a.csv", "k", ""), "not a path in publications"),
        (("a", "a.csv", "k", "stock/symbol"), "paths in documents begin with /"),
        (("a", "a.csv", "k", "/stock[symbol]"), "a path that asks for more than a place"),
        (("a", "a.csv", "k", '/stock/symbol = "x"'), "a path that asks for more than a place"),
        (("a", "a.csv", "k", "/a and /b"), "a path that asks for more than a place"),
        (("a", "a.csv", "k", "/stock/"), "column 8"),
        (("a", "a.csv", "k", "/stock", ["the sector"]), "rename the column"),
        (("a", "a.csv", "k", "/stock", ["p:sector"]), "rename the column"),
        (("a", "a.csv", "k", "/stock", ["1st"]), "rename the column"),
        (("a", "a.csv", "k", "/stock", ["*"]), "rename the column"),
        (("a", "a.csv", "k", "/stock", ["a\u00a0b"]), "rename the column"),
    ],
)
def test_what_is_refused(given: tuple[object, ...], said: str) -> None:
    with pytest.raises(InputError) as refusal:
        declare(*given)  # type: ignore[arg-type]
    assert said in refusal.value.message()


@pytest.mark.parametrize("field", ["sector", "the-sector", "größe", "_x", "address.city", "名前"])
def test_fields_that_can_be_elements(field: str) -> None:
    assert declare("a", "a.csv", "k", "/stock", [field]).fields == (field,)


@pytest.mark.parametrize(
    ("path", "leads", "does_not"),
    [
        ("/stock/symbol", ["/stock/symbol"], ["/stock", "/stock/symbol/text()", "/stock/a/symbol", "/a/stock/symbol"]),
        ("//symbol", ["/symbol", "/stock/symbol", "/a/b/symbol"], ["/symbol/a", "/a/@symbol"]),
        ("//@id", ["/a/@id", "/a/b/@id"], ["/a/id", "/a/@{urn:x}id"]),
        ("/*/text()", ["/a/text()"], ["/a/b/text()", "/a"]),
        ("//a//b", ["/a/b", "/x/a/y/a/b"], ["/b/a", "/a/b/c"]),
        ('declare namespace p = "http://x/y"; /p:a', ["/{http://x/y}a"], ["/a", "/{http://x}a"]),
    ],
)  # fmt: skip
def test_where_a_path_leads(path: str, leads: list[str], does_not: list[str]) -> None:
    steps = linear_path(path)
    assert [each for each in leads if not leads_to(steps, each)] == []
    assert [each for each in does_not if leads_to(steps, each)] == []


def all_nodes(node: Node, around: str = "") -> list[tuple[str, Node]]:
    path = f"{around}/{show_node(node.kind, node.name)}"
    return [(path, node), *(pair for child in node.children for pair in all_nodes(child, path))]


@given(
    documents(), st.lists(st.tuples(st.booleans(), st.sampled_from([*NAMES, "*"])), min_size=1, max_size=4)
)
def test_a_path_leads_where_subscriptions_find_something(
    document: Node, steps: list[tuple[bool, str]]
) -> None:
    """The same path as a subscription holds just when it leads to some node."""
    path = "".join(("//" if deep else "/") + name.replace("{urn:n}", "p:") for deep, name in steps)
    text = f'declare namespace p = "urn:n"; {path}'
    found = any(leads_to(linear_path(text), tag_path) for tag_path, _ in all_nodes(document))
    assert found == matches(parse(text), document)


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


def test_declarations_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "tables.yaml").write_text(DECLARED)
    assert load(tmp_path / "tables.yaml") == (
        Reference("sectors", str(tmp_path / "sectors.csv"), "symbol", "/stock/symbol", ("sector", "country")),
        Reference("shops", "spark:shop.shops", "id", "shop"),
    )
    assert load_text("") == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: {file: a.csv, key: k}", "a has no on (column 1)"),
        ("a: {file: a.csv, key: k, on: /x, field: [y]}", "did you mean 'fields'?"),
        ("a: {file: a.xls, key: k, on: /x}", "a: not a kind of table that can be read"),
        ("a: {file: a.csv, key: k, on: /x, fields: y}", "fields is not a list"),
        ("- a", "is not a mapping"),
        ("a: {file: a.csv, key: k, on: /x}\na: {file: a.csv, key: k, on: /x}", "'a' twice"),
    ],
)
def test_files_that_are_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "tables.yaml").write_text(text)
    with pytest.raises(InputError) as refusal:
        load(tmp_path / "tables.yaml")
    assert said in refusal.value.message()
    assert "tables.yaml" in refusal.value.message()


def test_a_file_of_declarations_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no file"):
        load(tmp_path / "tables.yaml")

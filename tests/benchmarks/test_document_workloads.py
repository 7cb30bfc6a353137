"""The document workloads have the stated shapes, numbers of predicates, and shares of matches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from lxml import etree

from benchmarks.definition import matches
from benchmarks.workloads import anthology
from benchmarks.workloads.documents import Documents, DocumentWorkload, Texts
from benchmarks.workloads.leaves import Leaf
from benchmarks.workloads.stock_documents import EASE, stock_documents
from benchmarks.workloads.xpaths import xpaths
from tidings.documents.model import Axis, LinearStep, NodeKind, show_steps
from tidings.documents.xpath.xpath_parser import parse
from tidings.documents.xpath.xpath_tree import And, Expression, PathTest, ValueOperator


def evaluate_by_lxml(workload: DocumentWorkload) -> np.ndarray:
    """Return which subscription (row) matches which document (column), by lxml."""
    trees = [etree.fromstring(body).getroottree() for body in workload.events.bodies()]
    xpaths = [etree.XPath(text.replace(" AND ", " and ")) for text in workload.subscriptions]
    return np.array([[bool(each(tree)) for tree in trees] for each in xpaths])


def predicates(expression: Expression, above: tuple[LinearStep, ...] = ()) -> Iterator[tuple[str, PathTest]]:
    """Yield the linear path predicates of a text without `or` and `not()`."""
    if isinstance(expression, And):
        for part in expression.parts:
            yield from predicates(part, above)
        return
    assert isinstance(expression, PathTest)
    for step in expression.path.steps:
        above = (*above, LinearStep(step.axis, step.kind, step.name))
        for part in step.predicates:
            yield from predicates(part, above)
    if expression.operator:
        yield show_steps(above), expression


class TestStock:
    def test_stock_texts_and_documents_agree_with_columns(self) -> None:
        documents, columns = stock_documents(200, 50, 100.0, symbols=4)
        counts = matches(columns.subscriptions, columns.events)
        assert counts.sum() > 0
        assert evaluate_by_lxml(documents).sum(axis=0).tolist() == counts.tolist()

    def test_stock_document_has_seven_elements_of_figure(self) -> None:
        for body in stock_documents(1, 30).documents.events.bodies():
            quote = etree.fromstring(body)
            names = [element.tag for element in quote]
            assert (quote.tag, names) == (
                "stock",
                ["symbol", "price", "open", "change", "low", "high", "volume"],
            )
            value = {element.tag: float(element.text) for element in quote[1:]}
            assert value["change"] == pytest.approx(value["price"] - value["open"])

    def test_stock_text_is_one_equality_and_four_inequalities(self) -> None:
        texts = stock_documents(20, 1).documents.subscriptions
        for text in texts:
            tests = list(predicates(parse(text)))
            assert [(path, str(each.operator.value)) for path, each in tests if each.operator] == [
                ("/stock/symbol/text()", "="),
                ("/stock/price/text()", ">"),
                ("/stock/open/text()", "<"),
                ("/stock/high/text()", ">"),
                ("/stock/volume/text()", ">"),
            ]
        assert (texts.predicates, texts.linear_paths) == (100, 5)

    @pytest.mark.parametrize("expected", EASE)
    def test_stock_mean_of_matches_is_as_requested(self, expected: float) -> None:
        """200 subscriptions per symbol, as a million subscriptions have with 5,000 symbols."""
        columns = stock_documents(4_000, 2_000, expected, symbols=20).columns
        mean = matches(columns.subscriptions, columns.events).mean()
        assert mean == pytest.approx(expected, rel=0.1, abs=0.03)


class TestAnthology:
    @pytest.fixture(scope="class")
    def workload(self, archive: Path) -> DocumentWorkload:
        return anthology.anthology(2_000, archive)

    def test_anthology_each_paper_is_one_document(self, workload: DocumentWorkload) -> None:
        papers = [etree.fromstring(body) for body in workload.events.bodies()]
        assert len(papers) == 60 and {paper.tag for paper in papers} == {"paper"}
        assert not any(body.endswith((b"\n", b" ")) for body in workload.events.bodies())

    def test_anthology_texts_parse_here_and_with_lxml(self, workload: DocumentWorkload) -> None:
        for text in workload.subscriptions:
            parse(text)
            etree.XPath(text)

    def test_anthology_predicates_have_stated_counts_and_operators(self, workload: DocumentWorkload) -> None:
        tests = [list(predicates(parse(text))) for text in workload.subscriptions]
        counts = [len(each) for each in tests]
        assert (min(counts), max(counts)) == (2, 10)
        assert np.mean(counts) == pytest.approx(7, abs=0.1)
        operators = Counter(each.operator for own in tests for _, each in own)
        assert operators[ValueOperator.EQUAL] / sum(counts) == pytest.approx(0.8, abs=0.03)
        assert all(
            operators[operator]
            for operator in (ValueOperator.LESS, ValueOperator.GREATER, ValueOperator.UNEQUAL)
        )
        assert min(sum(each.operator is ValueOperator.EQUAL for _, each in own) for own in tests) == 2

    def test_anthology_counts_predicates_and_linear_paths(self, workload: DocumentWorkload) -> None:
        paths = [path for text in workload.subscriptions for path, _ in predicates(parse(text))]
        assert workload.subscriptions.predicates == len(paths)
        assert workload.subscriptions.linear_paths == len(set(paths))

    def test_anthology_one_in_ten_steps_is_wildcard_or_descendant(self, workload: DocumentWorkload) -> None:
        steps = [step for text in workload.subscriptions for step in _own_steps(parse(text))]
        wildcards = [step.name == "*" for step in steps if step.kind is not NodeKind.TEXT]
        descendants = [step.axis is Axis.DESCENDANT for step in steps]
        assert (np.mean(wildcards), np.mean(descendants)) == (
            pytest.approx(0.1, abs=0.02),
            pytest.approx(0.1, abs=0.02),
        )

    def test_anthology_one_in_twenty_texts_matches_its_paper(self, workload: DocumentWorkload) -> None:
        few = DocumentWorkload("", workload.subscriptions.first(400), workload.events)
        assert 0.05 <= evaluate_by_lxml(few).any(axis=1).mean() <= 0.2, "short ones also match by chance"

    def test_anthology_some_texts_fail_by_their_branches_alone(self, workload: DocumentWorkload) -> None:
        """Every linear path with its value is in the paper, and yet the text does not match."""
        trees = [etree.fromstring(body).getroottree() for body in workload.events.bodies()]
        alone = 0
        for text in workload.subscriptions.first(300):
            parts = [_alone(path, each) for path, each in predicates(parse(text))]
            alone += any(not tree.xpath(text) and all(map(tree.xpath, parts)) for tree in trees)
        assert alone > 5

    def test_anthology_same_seed_gives_same_texts(self, workload: DocumentWorkload, archive: Path) -> None:
        again, other = anthology.anthology(2_000, archive), anthology.anthology(2_000, archive, seed=8)
        assert list(again.subscriptions) == list(workload.subscriptions) != list(other.subscriptions)
        assert again.events.bodies() == workload.events.bodies()

    def test_leaves_skip_long_values_and_values_with_both_quotes(self) -> None:
        paper = b"""<paper id="1"><title>'a' and "b"</title><pages>1-6</pages><abstract>%s</abstract>
            <author><first>D</first></author></paper>""" % (b"x" * 101)
        assert anthology.leaves(paper) == [
            Leaf(0, ("paper", "@id"), "1"),
            Leaf(2, ("paper", "pages"), "1-6", plain=True),
            Leaf(4, ("paper", "author", "first"), "D", plain=True),
        ]


def _own_steps(expression: Expression) -> Iterator[LinearStep]:
    """Yield every step of a text once."""
    parts = expression.parts if isinstance(expression, And) else ()
    steps = expression.path.steps if isinstance(expression, PathTest) else ()
    for part in (*parts, *(each for step in steps for each in step.predicates)):
        yield from _own_steps(part)
    for step in steps:
        yield LinearStep(step.axis, step.kind, step.name)


def _alone(path: str, predicate: PathTest) -> str:
    literal = predicate.literal
    rendered = (
        f"{literal:g}"
        if isinstance(literal, float)
        else f"'{literal}'"
        if '"' in str(literal)
        else f'"{literal}"'
    )
    assert predicate.operator
    return f"boolean({path} {predicate.operator.value} {rendered})"


class TestForms:
    def test_documents_are_split_into_blocks(self) -> None:
        documents = Documents.of([b"<a/>", b"<bcd/>", b"<e/>", b"<f/>"])
        assert documents.first(2).bodies() == [b"<a/>", b"<bcd/>"]
        blocks = [block.bodies() for block in documents.blocks(8)]
        assert blocks == [[b"<a/>", b"<bcd/>"], [b"<e/>", b"<f/>"]]
        assert [body for block in blocks for body in block] == documents.bodies()

    def test_texts_are_split_into_parts(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("benchmarks.workloads.xpaths.CHUNK", 10)
        leaves = [Leaf(at, ("a", f"b{at}"), str(at)) for at in range(12)]
        texts = xpaths(25, [leaves] * 3, seed=1)
        assert [len(part) for part in texts.parts(10)] == [10, 10, 5]
        assert [text for part in texts.parts(10) for text in part.to_pylist()] == list(texts)
        first = texts.first(12)
        assert list(first) == list(texts)[:12] and len(first) == 12
        assert isinstance(first, Texts) and first.predicates == texts.starts[12]

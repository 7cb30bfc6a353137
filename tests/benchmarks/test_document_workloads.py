"""The workloads of documents are what they claim: well-formed, sound, as many predicates and matches as they say."""

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


def found(workload: DocumentWorkload) -> np.ndarray:
    """Which subscription (row) holds for which document (column), by lxml."""
    trees = [etree.fromstring(body).getroottree() for body in workload.events.bodies()]
    asked = [etree.XPath(text.replace(" AND ", " and ")) for text in workload.subscriptions]
    return np.array([[bool(each(tree)) for tree in trees] for each in asked])


def predicates(expression: Expression, above: tuple[LinearStep, ...] = ()) -> Iterator[tuple[str, PathTest]]:
    """The linear path predicates of a text without `or` and `not()`."""
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
    def test_texts_and_documents_say_what_columns_say(self) -> None:
        documents, columns = stock_documents(200, 50, 100.0, symbols=4)
        counts = matches(columns.subscriptions, columns.events)
        assert counts.sum() > 0
        assert found(documents).sum(axis=0).tolist() == counts.tolist()

    def test_a_document_has_the_seven_elements_of_the_figure(self) -> None:
        for body in stock_documents(1, 30).documents.events.bodies():
            quote = etree.fromstring(body)
            names = [element.tag for element in quote]
            assert (quote.tag, names) == (
                "stock",
                ["symbol", "price", "open", "change", "low", "high", "volume"],
            )
            value = {element.tag: float(element.text) for element in quote[1:]}
            assert value["change"] == pytest.approx(value["price"] - value["open"])

    def test_a_text_is_an_equality_and_four_inequalities(self) -> None:
        texts = stock_documents(20, 1).documents.subscriptions
        for text in texts:
            asked = list(predicates(parse(text)))
            assert [(path, str(each.operator.value)) for path, each in asked if each.operator] == [
                ("/stock/symbol/text()", "="),
                ("/stock/price/text()", ">"),
                ("/stock/open/text()", "<"),
                ("/stock/high/text()", ">"),
                ("/stock/volume/text()", ">"),
            ]
        assert (texts.predicates, texts.linear_paths) == (100, 5)

    @pytest.mark.parametrize("wanted", EASE)
    def test_as_many_match_as_wanted(self, wanted: float) -> None:
        """200 subscriptions a symbol, as a million have with 5,000 symbols."""
        columns = stock_documents(4_000, 2_000, wanted, symbols=20).columns
        mean = matches(columns.subscriptions, columns.events).mean()
        assert mean == pytest.approx(wanted, rel=0.1, abs=0.03)


class TestAnthology:
    @pytest.fixture(scope="class")
    def workload(self, archive: Path) -> DocumentWorkload:
        return anthology.anthology(2_000, archive)

    def test_each_paper_is_a_document(self, workload: DocumentWorkload) -> None:
        papers = [etree.fromstring(body) for body in workload.events.bodies()]
        assert len(papers) == 60 and {paper.tag for paper in papers} == {"paper"}
        assert not any(body.endswith((b"\n", b" ")) for body in workload.events.bodies())

    def test_texts_are_read_here_and_by_lxml(self, workload: DocumentWorkload) -> None:
        for text in workload.subscriptions:
            parse(text)
            etree.XPath(text)

    def test_predicates_are_as_many_and_of_the_sorts_they_should_be(self, workload: DocumentWorkload) -> None:
        asked = [list(predicates(parse(text))) for text in workload.subscriptions]
        counts = [len(each) for each in asked]
        assert (min(counts), max(counts)) == (2, 10)
        assert np.mean(counts) == pytest.approx(7, abs=0.1)
        sorts = Counter(each.operator for mine in asked for _, each in mine)
        assert sorts[ValueOperator.EQUAL] / sum(counts) == pytest.approx(0.8, abs=0.03)
        assert all(sorts[sort] for sort in (ValueOperator.LESS, ValueOperator.GREATER, ValueOperator.UNEQUAL))
        assert min(sum(each.operator is ValueOperator.EQUAL for _, each in mine) for mine in asked) == 2

    def test_linear_paths_are_counted(self, workload: DocumentWorkload) -> None:
        asked = [path for text in workload.subscriptions for path, _ in predicates(parse(text))]
        assert workload.subscriptions.predicates == len(asked)
        assert workload.subscriptions.linear_paths == len(set(asked))

    def test_steps_are_wild_one_time_in_ten(self, workload: DocumentWorkload) -> None:
        steps = [step for text in workload.subscriptions for step in _own_steps(parse(text))]
        named = [step.name == "*" for step in steps if step.kind is not NodeKind.TEXT]
        below = [step.axis is Axis.DESCENDANT for step in steps]
        assert (np.mean(named), np.mean(below)) == (
            pytest.approx(0.1, abs=0.02),
            pytest.approx(0.1, abs=0.02),
        )

    def test_one_in_twenty_matches_the_paper_it_is_from(self, workload: DocumentWorkload) -> None:
        few = DocumentWorkload("", workload.subscriptions.first(400), workload.events)
        assert 0.05 <= found(few).any(axis=1).mean() <= 0.2, "and short ones match by chance"

    def test_some_fail_by_their_branches_alone(self, workload: DocumentWorkload) -> None:
        """Every linear path with its value is in the paper, and still it does not match."""
        trees = [etree.fromstring(body).getroottree() for body in workload.events.bodies()]
        alone = 0
        for text in workload.subscriptions.first(300):
            parts = [_alone(path, each) for path, each in predicates(parse(text))]
            alone += any(not tree.xpath(text) and all(map(tree.xpath, parts)) for tree in trees)
        assert alone > 5

    def test_the_same_seed_gives_the_same_texts(self, workload: DocumentWorkload, archive: Path) -> None:
        again, other = anthology.anthology(2_000, archive), anthology.anthology(2_000, archive, seed=8)
        assert list(again.subscriptions) == list(workload.subscriptions) != list(other.subscriptions)
        assert again.events.bodies() == workload.events.bodies()

    def test_values_with_both_quotes_and_long_ones_are_left_out(self) -> None:
        paper = b"""<paper id="1"><title>'a' and "b"</title><pages>1-6</pages><abstract>%s</abstract>
            <author><first>D</first></author></paper>""" % (b"x" * 101)
        assert anthology.leaves(paper) == [
            Leaf(0, ("paper", "@id"), "1"),
            Leaf(2, ("paper", "pages"), "1-6", plain=True),
            Leaf(4, ("paper", "author", "first"), "D", plain=True),
        ]


def _own_steps(expression: Expression) -> Iterator[LinearStep]:
    """Every step of a text once."""
    parts = expression.parts if isinstance(expression, And) else ()
    steps = expression.path.steps if isinstance(expression, PathTest) else ()
    for part in (*parts, *(each for step in steps for each in step.predicates)):
        yield from _own_steps(part)
    for step in steps:
        yield LinearStep(step.axis, step.kind, step.name)


def _alone(path: str, predicate: PathTest) -> str:
    literal = predicate.literal
    shown = (
        f"{literal:g}"
        if isinstance(literal, float)
        else f"'{literal}'"
        if '"' in str(literal)
        else f'"{literal}"'
    )
    assert predicate.operator
    return f"boolean({path} {predicate.operator.value} {shown})"


class TestForms:
    def test_documents_come_in_blocks(self) -> None:
        documents = Documents.of([b"<a/>", b"<bcd/>", b"<e/>", b"<f/>"])
        assert documents.first(2).bodies() == [b"<a/>", b"<bcd/>"]
        blocks = [block.bodies() for block in documents.blocks(8)]
        assert blocks == [[b"<a/>", b"<bcd/>"], [b"<e/>", b"<f/>"]]
        assert [body for block in blocks for body in block] == documents.bodies()

    def test_texts_come_in_parts(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("benchmarks.workloads.xpaths.CHUNK", 10)
        leaves = [Leaf(at, ("a", f"b{at}"), str(at)) for at in range(12)]
        texts = xpaths(25, [leaves] * 3, seed=1)
        assert [len(part) for part in texts.parts(10)] == [10, 10, 5]
        assert [text for part in texts.parts(10) for text in part.to_pylist()] == list(texts)
        first = texts.first(12)
        assert list(first) == list(texts)[:12] and len(first) == 12
        assert isinstance(first, Texts) and first.predicates == texts.starts[12]

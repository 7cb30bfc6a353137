"""Documents in the index: it finds the same matches as the specification."""

from __future__ import annotations

from collections.abc import Sequence
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.strategies.documents import documents, element, expressions
from tests.support.strategies.effort import share
from tidings.atoms import Atoms
from tidings.documents import twigs
from tidings.documents.model import Node
from tidings.documents.reference_matcher import matches
from tidings.documents.twigs import encode_twig, read_twig
from tidings.documents.xml_batch_decoder import atoms_of
from tidings.documents.xpath.xpath_tree import Expression, show
from tidings.documents.xpath_compiler import compile_xpath
from tidings.errors import SubscriptionError
from tidings.matching.compiler.compilation import compile_many
from tidings.matching.compiler.language import Context
from tidings.matching.compiler.plan import TwigWriter
from tidings.matching.index.builder import rare_columns
from tidings.matching.index.builder.segment_builder import build_segment
from tidings.matching.index.index import Index
from tidings.matching.kernels.shapes import twig_arrays as kernel
from tidings.model import Subscription

NODES = (
    *("DESCENDANT", "KIND_SHIFT", "KIND_MASK", "NEGATED", "LEADS_ON", "REQUIRED", "INNER"),
    *("TESTS_SHIFT", "FIRSTS_SHIFT", "COUNT_MASK", "PARENT_SHIFT"),
)
TESTS = ("OPERATOR_MASK", "TEST_NEGATED", "IS_NUMBER", "STRING_SHIFT")


def test_twig_word_constants_equal_those_of_compiler() -> None:
    assert all(getattr(kernel, name) == getattr(twigs, name) for name in (*NODES, *TESTS))
    operators = [operator.name for operator in twigs.OPERATORS]
    assert all(getattr(kernel, name) == number for number, name in enumerate(operators))


def index_xpaths(texts: Sequence[str]) -> Index:
    """Create an index with XPaths, whose ids are their positions."""
    index = Index.create()
    compiled = compile_many(Subscription(str(i), "ana", "xpath", text) for i, text in enumerate(texts))
    assert not compiled.rejects, compiled.rejects
    index.add(compiled)
    return index


def matched_pairs(index: Index, nodes: Sequence[Node]) -> set[tuple[int, int]]:
    pairs = [(document, int(id)) for document, id in index.match(atoms_of(nodes)).pairs()]
    assert len(pairs) == len(set(pairs)), "a subscription is matched once by a document"
    return set(pairs)


def can_compile(expression: Expression) -> bool:
    """Return whether it can be a subscription: it must not always or never hold, or have alternatives in contains()."""
    try:
        compile_xpath(Context(show(expression)))
    except SubscriptionError:
        return False
    return True


many_documents = st.lists(documents(), min_size=1, max_size=12)
many_expressions = st.lists(expressions().filter(can_compile), min_size=1, max_size=16)


@share(2)
@given(many_documents, many_expressions)
def test_index_match_agrees_with_specification(nodes: list[Node], queries: list[Expression]) -> None:
    expected = {
        (d, s) for d, node in enumerate(nodes) for s, each in enumerate(queries) if matches(each, node)
    }
    assert matched_pairs(index_xpaths([show(each) for each in queries]), nodes) == expected


@pytest.mark.parametrize("condition", ['contains(., "5")', '. = "5y"', 'starts-with(text(), "5")', "c"])
@pytest.mark.parametrize("function", ["contains", "starts-with"])
def test_index_match_inner_conditions_do_not_apply_to_first_node(function: str, condition: str) -> None:
    """Regression: the value of `a` was compared with `c`, so a document with mixed content did not match."""
    text = f'{function}(//a[{condition}]/c, "y")'
    matching = element("a", element("c", text="y"), text="5")
    other = element("a", element("c", text="x5"), text="y5")
    assert matched_pairs(index_xpaths([text]), [matching, other]) == {(0, 0)}


def padded(document: Node, elements: int) -> Node:
    """Prepend elements to a document, so that the relevant part starts far from the first node."""
    front = (element("b", text="xy"[n % 2]) if n % 10 == 0 else element("d") for n in range(elements))
    return element("a", *front, document)


@share(2)
@given(st.lists(documents(), min_size=1, max_size=3), many_expressions, st.data())
def test_index_match_large_documents_agree_with_specification(
    small: list[Node], queries: list[Expression], data: st.DataObject
) -> None:
    """Sets of nodes have one word or several words, or are replaced by another representation."""
    sizes = st.sampled_from((0, 50, 100, 64 * kernel.MOST_WORDS))
    nodes = [padded(document, data.draw(sizes)) for document in small]
    expected = {
        (d, s) for d, node in enumerate(nodes) for s, each in enumerate(queries) if matches(each, node)
    }
    assert matched_pairs(index_xpaths([show(each) for each in queries]), nodes) == expected


@share(2)
@given(many_documents, many_expressions)
def test_index_match_with_few_columns_agrees_with_specification(
    nodes: list[Node], queries: list[Expression]
) -> None:
    """Simulates thousands of linear paths, of which only some are columns."""
    expected = {
        (d, s) for d, node in enumerate(nodes) for s, each in enumerate(queries) if matches(each, node)
    }
    with patch.object(rare_columns, "FEW_PATTERNS", 0), patch.object(rare_columns, "COMMON", 0.3):
        assert matched_pairs(index_xpaths([show(each) for each in queries]), nodes) == expected


@share(2)
@given(many_documents, many_expressions, many_expressions, st.data())
def test_index_after_removal_and_compaction_agrees_with_specification(
    nodes: list[Node], first: list[Expression], more: list[Expression], data: st.DataObject
) -> None:
    texts = [show(each) for each in (*first, *more)]
    index = index_xpaths(texts[: len(first)])
    index.add(
        compile_many(
            Subscription(str(i), "ana", "xpath", text) for i, text in enumerate(texts) if i >= len(first)
        )
    )
    removed = data.draw(st.sets(st.integers(0, len(texts) - 1), max_size=len(texts) - 1))
    index.remove(map(str, removed))
    expected = {
        (d, s)
        for d, node in enumerate(nodes)
        for s, each in enumerate((*first, *more))
        if s not in removed and matches(each, node)
    }
    assert matched_pairs(index, nodes) == expected
    index.compact()
    assert index.segments <= 1 and matched_pairs(index, nodes) == expected


@share(2)
@given(expressions().filter(can_compile))
def test_read_twig_of_encode_twig_is_same_twig(expression: Expression) -> None:
    writer = TwigWriter()
    twigs = compile_xpath(Context(show(expression))).twigs
    numbers = [writer.add(encode_twig(twig, writer), False) for twig in twigs]
    assert tuple(read_twig(writer.finish(), number) for number in numbers) == twigs


QUOTE = '//stock[symbol = "{}" and price > {}]'


def test_index_bulk_compilation_of_one_shape_equals_single_compilation() -> None:
    texts = [QUOTE.format(f"S{n % 7}", n) for n in range(100)] + [f"/stock/price < -{n}" for n in range(50)]
    nodes = [
        element("stock", element("symbol", text=f"S{n}"), element("price", text=str(25 * n - 30)))
        for n in range(8)
    ]
    alone = {(d, s) for s, text in enumerate(texts) for d, _ in matched_pairs(index_xpaths([text]), nodes)}
    assert matched_pairs(index_xpaths(texts), nodes) == alone and len(alone) > 50


def test_build_segment_twig_key_is_rarer_value() -> None:
    """The author is rare in one half of the clauses, the title in the other."""
    pairs = [(f"a{n % 7}", f"t{n % 89}") if n % 2 else (f"a{n % 89}", f"t{n % 7}") for n in range(4000)]
    texts = [f'/paper[author = "{author}" and title = "{title}"]' for author, title in pairs]
    compiled = compile_many(Subscription(str(i), "ana", "xpath", text) for i, text in enumerate(texts))
    built = build_segment(compiled)
    assert [path.key is not None and path.second is not None for path in built.access_paths] == [True, True]
    for path in built.access_paths:
        assert (built.clauses.share[path.key] <= built.clauses.share[path.second]).all()
    published = pairs[:30]
    nodes = [
        element(
            "paper",
            element("author", text=author),
            element("author", text="a1"),
            element("title", text=title),
        )
        for author, title in published
    ]
    expected = {
        (d, s) for d, (a, t) in enumerate(published) for s, (author, title) in enumerate(pairs)
        if author in (a, "a1") and title == t
    }  # fmt: skip
    assert matched_pairs(index_xpaths(texts), nodes) == expected


def test_index_match_keeps_events_and_documents_separate() -> None:
    index = Index.create()
    subscriptions = [
        Subscription("e1", "ana", "predicates", "not exists price"),
        Subscription("e2", "ana", "predicates", "\"/a/b\" = 'x'"),
        Subscription("d1", "ana", "xpath", "not(/a/c)"),
        Subscription("d2", "ana", "xpath", "/a/b = 'x'"),
    ]
    index.add(compile_many(subscriptions))
    document = element("a", element("b", text="x"))
    assert sorted(id for _, id in index.match(atoms_of([document])).pairs()) == ["d1", "d2"]
    assert sorted(id for _, id in index.match([{"/a/b": ["x"]}]).pairs()) == ["e1", "e2"]


def test_path_match_compares_each_pair_of_paths_once() -> None:
    """New linear paths are compared with known tag paths, and new tag paths with known linear paths."""
    index = index_xpaths(["/a//b = 'x'", "//c"])
    index.match(atoms_of([element("a", element("b", text="x"))]))
    compared = index.path_match.compared
    index.match(atoms_of([element("a", element("b", text="y"))]))
    assert index.path_match.compared == compared, "no new path"
    index.match(atoms_of([element("a", element("c"))]))
    assert index.path_match.compared == compared + 1, "one new tag path"
    known = index.path_match.tag_paths
    index.add(compile_many([Subscription("n", "ana", "xpath", "/a/c")]))
    assert index.path_match.compared == compared + 1 + known, (
        "one new linear path is compared with the known tag paths"
    )
    assert {id for _, id in index.match(atoms_of([element("a", element("c"))])).pairs()} == {"1", "n"}


def test_path_match_forgets_unused_linear_paths() -> None:
    index = index_xpaths(["/a/b", "//c", "/a//d"])
    index.match(atoms_of([element("a", element("b"))]))
    assert index.path_match.linear_paths == 3
    index.remove(["1", "2"])
    index.compact()
    assert index.path_match.linear_paths == 1
    assert index.path_match.matching("/a/b") == {"/a/b"}


@pytest.mark.parametrize("text", ["not(/a[not(.)])", "/a[not(.)]"])
def test_compile_xpath_that_never_or_always_holds_is_rejected(text: str) -> None:
    with pytest.raises(SubscriptionError, match=r"never match|every document"):
        compile_xpath(Context(text))


def test_index_match_does_not_change_batch() -> None:
    atoms: Atoms = atoms_of([element("a", element("b", text="x"))] * 3)
    index = index_xpaths(["/a[b = 'x' and not(c)]"])
    assert len(index.match(atoms)) == len(index.match(atoms)) == 3

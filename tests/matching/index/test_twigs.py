"""Documents in the index: what it finds is what the definition finds."""

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
from tidings.documents.explanation import matches
from tidings.documents.model import Node
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


def test_twig_word_constants_equal_those_of_the_compiler() -> None:
    assert all(getattr(kernel, name) == getattr(twigs, name) for name in (*NODES, *TESTS))
    operators = [operator.name for operator in twigs.OPERATORS]
    assert all(getattr(kernel, name) == number for number, name in enumerate(operators))


def indexed(texts: Sequence[str]) -> Index:
    """An index with XPaths, each called by its place."""
    index = Index.create()
    compiled = compile_many(Subscription(str(i), "ana", "xpath", text) for i, text in enumerate(texts))
    assert not compiled.rejects, compiled.rejects
    index.add(compiled)
    return index


def found(index: Index, given: Sequence[Node]) -> set[tuple[int, int]]:
    pairs = [(document, int(id)) for document, id in index.match(atoms_of(given)).pairs()]
    assert len(pairs) == len(set(pairs)), "a subscription is matched once by a document"
    return set(pairs)


def is_taken(expression: Expression) -> bool:
    """Whether it can be a subscription: not what never or always holds, no alternatives in contains()."""
    try:
        compile_xpath(Context(show(expression)))
    except SubscriptionError:
        return False
    return True


many_documents = st.lists(documents(), min_size=1, max_size=12)
many_expressions = st.lists(expressions().filter(is_taken), min_size=1, max_size=16)


@share(2)
@given(many_documents, many_expressions)
def test_index_finds_what_the_definition_finds(given: list[Node], asked: list[Expression]) -> None:
    expected = {(d, s) for d, node in enumerate(given) for s, each in enumerate(asked) if matches(each, node)}
    assert found(indexed([show(each) for each in asked]), given) == expected


@pytest.mark.parametrize("asked", ['contains(., "5")', '. = "5y"', 'starts-with(text(), "5")', "c"])
@pytest.mark.parametrize("function", ["contains", "starts-with"])
def test_twig_conditions_on_the_way_do_not_apply_to_the_first_node(function: str, asked: str) -> None:
    """The own value of `a` was looked for in `c`: a document with mixed content was not found."""
    text = f'{function}(//a[{asked}]/c, "y")'
    there = element("a", element("c", text="y"), text="5")
    elsewhere = element("a", element("c", text="x5"), text="y5")
    assert found(indexed([text]), [there, elsewhere]) == {(0, 0)}


def padded(document: Node, elements: int) -> Node:
    """A document with so many elements in front: the interesting part begins far from the first node."""
    front = (element("b", text="xy"[n % 2]) if n % 10 == 0 else element("d") for n in range(elements))
    return element("a", *front, document)


@share(2)
@given(st.lists(documents(), min_size=1, max_size=3), many_expressions, st.data())
def test_index_of_large_documents_agrees_with_the_specification(
    small: list[Node], asked: list[Expression], data: st.DataObject
) -> None:
    """Sets of nodes have one word, several words, or are no sets any more."""
    sizes = st.sampled_from((0, 50, 100, 64 * kernel.MOST_WORDS))
    given = [padded(document, data.draw(sizes)) for document in small]
    expected = {(d, s) for d, node in enumerate(given) for s, each in enumerate(asked) if matches(each, node)}
    assert found(indexed([show(each) for each in asked]), given) == expected


@share(2)
@given(many_documents, many_expressions)
def test_hidden_paths_change_nothing(given: list[Node], asked: list[Expression]) -> None:
    """As if there were thousands of linear paths, of which only some are columns."""
    expected = {(d, s) for d, node in enumerate(given) for s, each in enumerate(asked) if matches(each, node)}
    with patch.object(rare_columns, "FEW_PATTERNS", 0), patch.object(rare_columns, "COMMON", 0.3):
        assert found(indexed([show(each) for each in asked]), given) == expected


@share(2)
@given(many_documents, many_expressions, many_expressions, st.data())
def test_additions_removals_and_merges(
    given: list[Node], first: list[Expression], more: list[Expression], data: st.DataObject
) -> None:
    texts = [show(each) for each in (*first, *more)]
    index = indexed(texts[: len(first)])
    index.add(
        compile_many(
            Subscription(str(i), "ana", "xpath", text) for i, text in enumerate(texts) if i >= len(first)
        )
    )
    gone = data.draw(st.sets(st.integers(0, len(texts) - 1), max_size=len(texts) - 1))
    index.remove(map(str, gone))
    expected = {
        (d, s)
        for d, node in enumerate(given)
        for s, each in enumerate((*first, *more))
        if s not in gone and matches(each, node)
    }
    assert found(index, given) == expected
    index.compact()
    assert index.segments <= 1 and found(index, given) == expected


@share(2)
@given(expressions().filter(is_taken))
def test_twigs_can_be_read_back(expression: Expression) -> None:
    writer = TwigWriter()
    twigs = compile_xpath(Context(show(expression))).twigs
    numbers = [writer.add(encode_twig(twig, writer), False) for twig in twigs]
    assert tuple(read_twig(writer.finish(), number) for number in numbers) == twigs


QUOTE = '//stock[symbol = "{}" and price > {}]'


def test_bulk_compilation_of_one_skeleton_equals_single_compilation() -> None:
    texts = [QUOTE.format(f"S{n % 7}", n) for n in range(100)] + [f"/stock/price < -{n}" for n in range(50)]
    given = [
        element("stock", element("symbol", text=f"S{n}"), element("price", text=str(25 * n - 30)))
        for n in range(8)
    ]
    alone = {(d, s) for s, text in enumerate(texts) for d, _ in found(indexed([text]), given)}
    assert found(indexed(texts), given) == alone and len(alone) > 50


def test_twig_is_reached_through_its_rarer_value() -> None:
    """Whichever it is: in one half of the clauses the author is rare, in the other the title."""
    pairs = [(f"a{n % 7}", f"t{n % 89}") if n % 2 else (f"a{n % 89}", f"t{n % 7}") for n in range(4000)]
    texts = [f'/paper[author = "{author}" and title = "{title}"]' for author, title in pairs]
    compiled = compile_many(Subscription(str(i), "ana", "xpath", text) for i, text in enumerate(texts))
    built = build_segment(compiled)
    assert [path.key is not None and path.second is not None for path in built.access_paths] == [True, True]
    for path in built.access_paths:
        assert (built.clauses.share[path.key] <= built.clauses.share[path.second]).all()
    asked = pairs[:30]
    given = [
        element(
            "paper",
            element("author", text=author),
            element("author", text="a1"),
            element("title", text=title),
        )
        for author, title in asked
    ]
    expected = {
        (d, s) for d, (a, t) in enumerate(asked) for s, (author, title) in enumerate(pairs)
        if author in (a, "a1") and title == t
    }  # fmt: skip
    assert found(indexed(texts), given) == expected


def test_index_keeps_events_and_documents_apart() -> None:
    index = Index.create()
    wanted = [
        Subscription("e1", "ana", "predicates", "not exists price"),
        Subscription("e2", "ana", "predicates", "\"/a/b\" = 'x'"),
        Subscription("d1", "ana", "xpath", "not(/a/c)"),
        Subscription("d2", "ana", "xpath", "/a/b = 'x'"),
    ]
    index.add(compile_many(wanted))
    document = element("a", element("b", text="x"))
    assert sorted(id for _, id in index.match(atoms_of([document])).pairs()) == ["d1", "d2"]
    assert sorted(id for _, id in index.match([{"/a/b": ["x"]}]).pairs()) == ["e1", "e2"]


def test_path_match_compares_each_pair_of_paths_once() -> None:
    """Both ways: new linear paths meet known tag paths, new tag paths meet known linear paths."""
    index = indexed(["/a//b = 'x'", "//c"])
    index.match(atoms_of([element("a", element("b", text="x"))]))
    met = index.path_match.compared
    index.match(atoms_of([element("a", element("b", text="y"))]))
    assert index.path_match.compared == met, "nothing new came"
    index.match(atoms_of([element("a", element("c"))]))
    assert index.path_match.compared == met + 1, "one new tag path"
    known = index.path_match.tag_paths
    index.add(compile_many([Subscription("n", "ana", "xpath", "/a/c")]))
    assert index.path_match.compared == met + 1 + known, (
        "one new linear path met the tag paths that are known"
    )
    assert {id for _, id in index.match(atoms_of([element("a", element("c"))])).pairs()} == {"1", "n"}


def test_path_match_forgets_unused_linear_paths() -> None:
    index = indexed(["/a/b", "//c", "/a//d"])
    index.match(atoms_of([element("a", element("b"))]))
    assert index.path_match.linear_paths == 3
    index.remove(["1", "2"])
    index.compact()
    assert index.path_match.linear_paths == 1
    assert index.path_match.matching("/a/b") == {"/a/b"}


@pytest.mark.parametrize("text", ["not(/a[not(.)])", "/a[not(.)]"])
def test_xpath_that_never_or_always_holds_is_refused(text: str) -> None:
    with pytest.raises(SubscriptionError, match=r"never match|every document"):
        compile_xpath(Context(text))


def test_a_batch_is_not_changed_by_matching() -> None:
    atoms: Atoms = atoms_of([element("a", element("b", text="x"))] * 3)
    index = indexed(["/a[b = 'x' and not(c)]"])
    assert len(index.match(atoms)) == len(index.match(atoms)) == 3

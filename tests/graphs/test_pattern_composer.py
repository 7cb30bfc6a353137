"""Graph patterns compiled in bulk give the same plans as each pattern alone, in any notation."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.strategies.graphs import EX, Writer, graphs, patterns, sparql, typed_graphs
from tidings.errors import SubscriptionError
from tidings.graphs.model import XSD, Term, iri, literal
from tidings.graphs.pattern_compiler import plan_of
from tidings.graphs.pattern_composer import Composer
from tidings.graphs.pattern_language import COMPOSED_FROM, GqlLanguage
from tidings.graphs.pattern_layout import MOST_VARIABLES
from tidings.graphs.pattern_numbers import PatternNumbers
from tidings.graphs.pattern_words import encode_pattern
from tidings.graphs.patterns.pattern_parser import DEFAULT, parse
from tidings.graphs.patterns.pattern_tree import (
    Constraint,
    ConstraintKind,
    Pattern,
    PatternEdge,
    Variable,
    show,
)
from tidings.matching.compiler.blocks import unpack, unpack_irregular
from tidings.matching.compiler.compilation import compile_many
from tidings.matching.compiler.language import DEFAULT_LIMIT
from tidings.matching.compiler.plan import IrregularClauses, Test, TwigWriter
from tidings.model import Subscription

Outcome = str | tuple[frozenset[Test], list[int], bool]
PREFIX = f"PREFIX ex: <{EX}> "
ENOUGH = [f"{PREFIX}SELECT * WHERE (?x, ex:more{n}, ?y)" for n in range(COMPOSED_FROM)]


def clause_outcomes(irregular: IrregularClauses, writer: TwigWriter) -> list[Outcome]:
    """Return the tests, the words of the pattern and the exactness of each clause."""
    twigs = writer.finish()
    outcomes: list[Outcome] = []
    for clause, twig in zip(unpack_irregular(irregular), irregular.twigs, strict=True):
        assert len(set(clause)) == len(clause)
        words = twigs.words[twigs.starts[twig] : twigs.starts[twig + 1]].tolist()
        outcomes.append((frozenset(clause), words, bool(twigs.exact[twig])))
    return outcomes


def compile_alone(pattern: Pattern, writer: TwigWriter) -> Outcome:
    """Compile one pattern alone, after its strings have received numbers."""
    known = len(writer.strings)
    plan, words = plan_of(pattern), encode_pattern(pattern, writer.string)
    assert len(writer.strings) == known
    return frozenset(plan.clauses[0]), words, plan.exact[0]


def number_patterns(batch: Sequence[Pattern]) -> tuple[list[Outcome], TwigWriter]:
    writer = TwigWriter()
    numbers = PatternNumbers(writer)
    assert all(numbers.add(row, pattern) for row, pattern in enumerate(batch))
    irregular = numbers.finish(writer.all_strings())
    assert irregular.rows.tolist() == list(range(len(batch)))
    return clause_outcomes(irregular, writer), writer


def assert_compiled_as_alone(texts: Sequence[str]) -> None:
    """Check that bulk compilation gives the tests, words and problems of each text."""
    writer = TwigWriter()
    result = GqlLanguage().compile_rows([*texts, *ENOUGH], None, DEFAULT_LIMIT, writer)
    assert not result.blocks
    outcomes = dict(
        zip(result.irregular.rows.tolist(), clause_outcomes(result.irregular, writer), strict=True)
    )
    for row, text in enumerate(texts):
        try:
            pattern = parse(text)
        except SubscriptionError as problem:
            assert result.problems[row].message() == problem.message() and row not in outcomes
        else:
            assert outcomes[row] == compile_alone(pattern, writer) and row not in result.problems


def is_composed(text: str) -> bool:
    return Composer(PatternNumbers(TwigWriter())).add(0, text)


@given(st.data())
def test_pattern_numbers_equal_single_compilation(data: st.DataObject) -> None:
    graph, of_classes = data.draw(typed_graphs), data.draw(st.booleans())
    batch = data.draw(st.lists(patterns(graph, of_classes), min_size=1, max_size=8))
    outcomes, writer = number_patterns(batch)
    assert outcomes == [compile_alone(pattern, writer) for pattern in batch]


NODES = [*(Variable(name) for name in "abcdefgh"), *(iri(EX + name) for name in "abc")]
PROPERTIES = [*(iri(EX + name) for name in "pqr"), Variable("a"), Variable("p")]


@given(st.integers(0, 2**32), st.integers(1, 40))
def test_pattern_numbers_join_edges_in_same_order(seed: int, size: int) -> None:
    """Many edges between few nodes, some of them repeated."""
    chance = Random(seed)
    several = [
        tuple(
            PatternEdge(chance.choice(NODES), chance.choice(PROPERTIES), chance.choice(NODES))
            for _ in range(chance.randint(1, size))
        )
        for _ in range(3)
    ]
    batch = [Pattern((), (*edges, edges[0])) for edges in several]
    outcomes, writer = number_patterns(batch)
    assert outcomes == [compile_alone(pattern, writer) for pattern in batch]


OPERANDS = [
    literal("5", XSD + "integer"), literal("5.0", XSD + "decimal"), literal("1e400", XSD + "double"),
    literal("NaN", XSD + "double"), literal(str(2**53 + 1), XSD + "integer"), literal("1", XSD + "boolean"),
    literal("2004-05-01", XSD + "date"), literal("ä"), literal("a", language="de"), literal("x", "urn:t"),
    iri(EX + "a"),
]  # fmt: skip


@given(
    st.lists(
        st.builds(
            lambda name, asked, operands: Constraint(
                name, asked, tuple(operands) if asked is ConstraintKind.IN else operands[:1]
            ),
            st.sampled_from(["x", "y", "p"]),
            st.sampled_from(ConstraintKind),
            st.lists(st.sampled_from(OPERANDS), min_size=1, max_size=3, unique=True).map(tuple),
        ),
        max_size=6,
    )
)
def test_pattern_numbers_constraints_of_all_kinds_equal_single_compilation(
    constraints: list[Constraint],
) -> None:
    edges = (
        PatternEdge(Variable("x"), iri(EX + "p"), Variable("y")),
        PatternEdge(Variable("x"), Variable("p"), iri(EX + "a")),
        PatternEdge(iri(EX + "a"), iri(EX + "p"), Variable("y")),
    )
    batch = [Pattern((), edges, tuple(constraints)), Pattern((), edges[:1], tuple(constraints[:1]))]
    batch = [
        each for each in batch if all(c.variable != "p" or len(each.edges) > 1 for c in each.constraints)
    ]
    outcomes, writer = number_patterns(batch)
    assert outcomes == [compile_alone(pattern, writer) for pattern in batch]


@given(graphs, st.data(), st.integers(0, 2**32))
def test_composer_generated_texts_equal_single_compilation(
    graph: object, data: st.DataObject, seed: int
) -> None:
    batch = data.draw(st.lists(patterns(graph), min_size=1, max_size=4))
    texts = [Writer(seed).write(pattern) for pattern in batch] + [show(pattern) for pattern in batch]
    assert all(map(is_composed, texts))
    assert_compiled_as_alone([*texts, *(sparql(pattern) for pattern in batch if not _of_classes(pattern))])


def _of_classes(pattern: Pattern) -> bool:
    return any(constraint.kind.value.endswith("class") for constraint in pattern.constraints)


WORDS = (
    *("(", "(", ")", ")", ",", ", ", " ", "\n", "\t", "\xa0", "#", " # ", "AND", " and ", " AND ", "AND("),
    *("?x", "?y", "$x", "?", "_:b", "ex:a", "ex:p", "dc:title", ":a", "no:a", "a", "ex:a\\(b", "<urn:a>"),
    *(
        "<urn:a,b>",
        "<urn:(a)>",
        "<urn:#a>",
        "<a>",
        "<",
        ">",
        '"oak"',
        '"o\\"k"',
        '"a, b"',
        "'oak'",
        '"',
        '""',
    ),
    *(
        '"oak"@en',
        '"5"^^xsd:integer',
        '"""oak"""',
        "5",
        "-2.5",
        "1e3",
        "true",
        "2004-05-31",
        "5th",
        "ä",
        "\x00",
    ),
    *("=", "<=", "!=", " contains ", " in (5, 6, 7)", " is ", "{", "}", "[", ".", ";", "OR"),
    *("(?x, ex:p, ?y)", "(?x,ex:p,?y)", "(ex:a, ?p, 5)", "?x = ex:a", "?y > 5", "(?x, a, ex:a)", "SELECT"),
)
HEADS = (
    *("SELECT * WHERE ", "SELECT ?x WHERE", "select $x, ?y where ", "SELECT * ", "SELECT * WHERE # ", ""),
    *(
        "BASE <urn:a> SELECT * WHERE ",
        "PREFIX ex: <urn:b> SELECT * WHERE",
        "SELECT * WHERE { ",
        "SELECT ?q WHERE ",
    ),
)


@given(st.sampled_from(HEADS), st.lists(st.sampled_from(WORDS), max_size=10).map("".join), st.booleans())
@example("SELECT * WHERE # ", "(?x, ex:p, ?y)\n(?x, ex:p, ?y)", True)
@example("SELECT * WHERE ", "(?x, ex:p, ?y) # ) AND ?x = 5", True)
@example("SELECT * WHERE ", '(?x, ex:p, "(?x, ex:p, ?y) AND ")', True)
@example("SELECT * WHERE ", '(?x, ex:p, ") AND ?x = 5") AND ?x is ex:a', True)
@example("SELECT * WHERE ", "(?x, ex:p, ?y) AND ?y in (ex:a, ex:b, ex:c)", True)
@example("SELECT * WHERE ", "(?x, ex:p, ?y) AND ?y = 5 AND (?x, ex:q, ?z)", True)
@example("SELECT * WHERE ", "(?x, ex:p, ?y),, (?x, ex:q, ?z)", True)
@example("SELECT * WHERE ", "(?x, ex:p, ?y) AND", True)
@example("SELECT * WHERE ", "(?x, ex:p, ?y) AND ?z = 5", True)
@example("SELECT * WHERE ", '("oak", ex:p, ?y)', True)
@example("SELECT * WHERE ", "(?x, _:b, ?y)", True)
@example("BASE <urn:a> SELECT * WHERE ", "(?x, <p>, <#y>)", True)
def test_compile_rows_any_words_equal_single_compilation(head: str, words: str, declared: bool) -> None:
    text = (PREFIX if declared and "PREFIX" not in head else "") + head + words
    assert_compiled_as_alone([text, f"{text} (?x, ex:p, ?y)", f"{text} (?x, ex:q, ?y) AND ?y > 5"])


@pytest.mark.parametrize(
    "body",
    [
        "(?x, ex:p, ?y)",
        "(?x,a,ex:A)(?x , <urn:p,q> , <urn:(a)#b>)",
        '(?x, dc:title, "oak, or (oak)"@en), (?x, ex:q, 2004-05-31)\n AND (_:b, ?x, $y)',
        '(ex:a, ex:p, ?y) AND ?y in (ex:a, ex:b, ex:c) and ?y contains "o\\"k" # so be it',
        '(ex:a, ex:p, ?y) AND ?y contains "(?x, ex:p, ?y)"',
    ],
)
def test_composer_supported_text_is_composed(body: str) -> None:
    text = f"{PREFIX}SELECT * WHERE {body}"
    assert is_composed(text)
    assert_compiled_as_alone([text])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "(?x, ex:p, ?y)",
        "SELECT * WHERE",
        "SELECT * WHERE { ?x dc:title ?y }",
        "SELECT * WHERE { ?x dc:title ?y FILTER(?y > 5) }",
        "SELECT * WHERE # as told\n (?x, dc:title, ?y)",
        "SELECT * WHERE (?x, dc:title, ?y) # ended",
        r"SELECT * WHERE (?x, dc:ti\-tle, ?y)",
        r'SELECT * WHERE (?x, dc:title, "o\"k")',
        "SELECT * WHERE (?x, dc:title, 'oak')",
        "SELECT * WHERE (?x, dc:title, ?y) AND ?y = 5 AND (?y, dc:title, ?z)",
        "SELECT ?z WHERE (?x, dc:title, ?y)",
        "SELECT ?x WHERE (?x, dc:title, ?y) AND ?z > 5",
        "SELECT ?x WHERE (?x, dct:title, ?y)",
        "SELECT ?x WHERE (?x, dc:title, '\ud800')",
        'SELECT ?x WHERE (?x, dc:title, "\ud800")',
    ],
)
def test_composer_other_text_is_left_to_parser(text: str) -> None:
    assert not is_composed(text)
    assert_compiled_as_alone([text])


def test_composer_text_beyond_limit_is_left_to_parser() -> None:
    edge, many = "(?x, dc:title, ?y)", range(DEFAULT.edges // 2)
    texts = [
        "SELECT * WHERE " + " ".join([edge] * (DEFAULT.edges + 1)),
        "SELECT * WHERE " + " ".join(f"(?a{n}, ?b{n}, ?c{n})" for n in many),
        f"SELECT * WHERE {edge}" + " AND ?y > 5" * (DEFAULT.constraints + 1),
        f'SELECT * WHERE (?x, dc:title, "{"o" * DEFAULT.length}")',
    ]
    assert not any(map(is_composed, texts))
    assert_compiled_as_alone(texts)
    assert_compiled_as_alone(["SELECT * WHERE " + " ".join([edge] * DEFAULT.edges)])


def test_pattern_numbers_too_many_variables_are_left_to_blocks() -> None:
    edges = [
        PatternEdge(Variable(f"a{n}"), iri(EX + "p"), Variable(f"a{n + 1}")) for n in range(MOST_VARIABLES)
    ]
    assert PatternNumbers(TwigWriter()).add(0, Pattern((), tuple(edges[1:])))
    assert not PatternNumbers(TwigWriter()).add(0, Pattern((), tuple(edges)))


def test_compile_many_few_texts_equal_many_texts() -> None:
    texts = [*ENOUGH[:3], f"{PREFIX}SELECT * WHERE (?x, ex:p, ?y) AND ?y > 5", "SELECT"]
    assert len(texts) < COMPOSED_FROM
    few, many = (
        compile_many(Subscription(str(n), "ana", "gql", text) for n, text in enumerate(batch))
        for batch in (texts, [*texts, *ENOUGH])
    )
    assert [each.id for each in few.rejects] == [each.id for each in many.rejects] == ["4"]
    assert [set(plan.clauses) for plan in unpack(few)] == [set(plan.clauses) for plan in unpack(many)][:4]


def test_composer_cached_heads_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidings.graphs.pattern_composer._MOST_HEADS", 2)
    assert_compiled_as_alone(
        [f"PREFIX e: <urn:{n % 5}:> SELECT * WHERE (?x, e:p, e:o{n})" for n in range(20)]
    )


def test_pattern_numbers_similar_terms_differ() -> None:
    """The integer 5, the string "5" and the IRI 5 are different terms."""
    terms: list[Term] = [literal("5"), literal("5", XSD + "integer"), iri("5")]
    outcomes, _ = number_patterns(
        [Pattern((), (PatternEdge(Variable("x"), iri(EX + "p"), each),)) for each in terms]
    )
    assert len({next(iter(tests)) for tests, _, _ in outcomes if not isinstance(tests, str)}) == len(terms)

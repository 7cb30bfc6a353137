"""The parser of graph patterns: round trips, adversarial texts, limits, documented errors."""

from __future__ import annotations

import re
from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.pairs import read_pairs
from tests.support.paths import PAIRS_FOLDER, ROOT
from tests.support.strategies.any_text import check_text, check_words
from tests.support.strategies.graphs import Writer, graphs, patterns
from tidings.core.limits import limits_from
from tidings.core.source_text import Span
from tidings.errors import CheckProblem, NotSupported, SetupError, SubscriptionError, SyntaxProblem
from tidings.graphs.model import LANGUAGE_STRING, XSD, Term, TermKind, iri, literal
from tidings.graphs.patterns.pattern_errors import OUTSIDE, SUPPORTED, SUPPORTED_SPARQL
from tidings.graphs.patterns.pattern_parser import parse
from tidings.graphs.patterns.pattern_reader import Limits
from tidings.graphs.patterns.pattern_tree import (
    PREFIXES,
    Constraint,
    ConstraintKind,
    Pattern,
    PatternEdge,
    Variable,
    show,
)


def test_parse_gives_pattern() -> None:
    text = """PREFIX ex: <http://example.org/>
    SELECT ?page WHERE (?page, a, ex:Page) (?page, ?p, "oak"@en) AND ?page <= ex:Academia AND ?p in (1, 2.5)"""
    page, prefix = Variable("page"), "http://example.org/"
    assert parse(text) == Pattern(
        ("page",),
        (
            PatternEdge(page, iri("http://www.w3.org/1999/02/22-rdf-syntax-ns#type"), iri(prefix + "Page")),
            PatternEdge(page, Variable("p"), Term(TermKind.LITERAL, "oak", LANGUAGE_STRING, "en")),
        ),
        (
            Constraint("page", ConstraintKind.AT_OR_BELOW, (iri(prefix + "Academia"),)),
            Constraint(
                "p", ConstraintKind.IN, (literal("1", XSD + "integer"), literal("2.5", XSD + "decimal"))
            ),
        ),
    )


@given(graphs, st.data())
def test_parse_of_show_is_same_pattern(graph: object, data: st.DataObject) -> None:
    pattern = data.draw(patterns(graph, of_classes=True))
    assert parse(show(pattern)) == pattern


@given(graphs, st.data(), st.integers(0, 2**32))
def test_parse_equivalent_spellings_give_same_pattern(graph: object, data: st.DataObject, seed: int) -> None:
    pattern = data.draw(patterns(graph, of_classes=True))
    assert parse(Writer(seed).write(pattern)) == pattern


TEXTS = st.text(st.characters(codec="utf-8"), max_size=12)
DATATYPES = ["integer", "decimal", "double", "boolean", "date", "dateTime", "string", "gYear"]
NUMBERS = [
    "5",
    "+5",
    "5.",
    ".5",
    "5e3",
    "1.e-3",
    "true",
    "1",
    "2004-05-31",
    "2004-02-31",
    "2004-05-31T12:00:00+01:00",
]
LITERALS = st.one_of(
    st.builds(literal, TEXTS),
    st.builds(lambda text: literal(text, language="en-gb"), TEXTS),
    st.builds(
        lambda text, name: literal(text, XSD + name), st.sampled_from(NUMBERS), st.sampled_from(DATATYPES)
    ),
    st.builds(lambda text, space: literal(text, space), TEXTS, st.sampled_from([*PREFIXES.values()])),
)


@given(LITERALS, st.builds(lambda space, local: space + local, st.sampled_from([*PREFIXES.values()]), TEXTS))
def test_parse_of_show_of_any_term_is_same_pattern(value: Term, named: str) -> None:
    """Includes names that a prefix cannot abbreviate, and literals with texts outside their datatype."""
    pattern = Pattern((), (PatternEdge(iri(named), Variable("p"), value),))
    assert parse(show(pattern)) == pattern


def test_parse_uses_given_prefixes() -> None:
    """The prefixes of the installation apply, and those that the text declares take precedence."""
    table = {"ex": "http://example.org/", "dc": "urn:other:"}
    text = "SELECT ?x WHERE (?x, ex:p, ?y) (?x, dc:title, ?t)"
    pattern = parse(text, prefixes=table)
    assert [edge.property for edge in pattern.edges] == [iri("http://example.org/p"), iri("urn:other:title")]
    assert show(pattern, table) == text and parse(show(pattern)) == pattern
    assert parse(f"PREFIX dc: <urn:mine:> {text}", prefixes=table).edges[1].property == iri("urn:mine:title")


WORDS = [
    *(
        "SELECT",
        "?x",
        "?y",
        "*",
        "WHERE",
        "(",
        ")",
        "{",
        "}",
        ",",
        ";",
        ".",
        "AND",
        "a",
        "dc:title",
        "<urn:x>",
    ),
    *(
        "PREFIX",
        "ex:",
        "BASE",
        "FILTER",
        "&&",
        "||",
        "!",
        "=",
        "!=",
        "<",
        "<=",
        ">",
        "in",
        "contains",
        "starts",
    ),
    *(
        "with",
        "is",
        "not",
        '"oak"',
        "'",
        '"',
        "@en",
        "^^",
        "xsd:date",
        "5",
        "-2.5",
        "1e3",
        "2004-05-01",
        "true",
    ),
    *("_:b", "[", "]", "CONTAINS", "STRSTARTS", "STR", "OPTIONAL", "UNION", "LIMIT", "#", "/", "+", "-", "^"),
    *("?", "|", "\n", "ex:p", "DISTINCT", "\\", "日本", ":"),
]
BEGINNINGS = ["", "SELECT ?x WHERE (?x, dc:title, ?y)", "SELECT * WHERE { ?x dc:title ?y", "SELECT"]


@given(st.sampled_from(BEGINNINGS), st.lists(st.sampled_from(WORDS), max_size=14), st.sampled_from(["", " "]))
def test_parse_any_words_is_pattern_or_error_with_place(beginning: str, words: list[str], space: str) -> None:
    check_words(parse, space.join([beginning, *words]))


@given(graphs, st.data(), st.integers(0, 2**32))
def test_parse_text_with_changed_word_is_pattern_or_error_with_place(
    graph: object, data: st.DataObject, seed: int
) -> None:
    """Nearly valid texts reach more of the parser than random words."""
    words = Writer(seed).write(data.draw(patterns(graph, of_classes=True))).split(" ")
    at = data.draw(st.integers(0, len(words) - 1))
    words[at : at + data.draw(st.integers(0, 1))] = [data.draw(st.sampled_from(["", *WORDS]))]
    check_words(parse, " ".join(words))


@given(st.text(max_size=30))
def test_parse_any_text_is_pattern_or_error(text: str) -> None:
    check_text(parse, text)


def test_parse_spans_cover_parts_of_text() -> None:
    text = "SELECT ?x  WHERE (?x , dc:title, ?t)  AND  5 < ?t AND ?t in (1, 2) (?x, a, ?c)"
    pattern = parse(text)
    assert [_text_at(text, edge.span) for edge in pattern.edges] == ["(?x , dc:title, ?t)", "(?x, a, ?c)"]
    assert [_text_at(text, constraint.span) for constraint in pattern.constraints] == [
        "5 < ?t",
        "?t in (1, 2)",
    ]
    assert _text_at(text, pattern.edges[0].object.span) == "?t"  # type: ignore[union-attr]


def _text_at(text: str, span: Span) -> str:
    return text[span.start : span.end]


def test_parse_error_facts_are_complete() -> None:
    with pytest.raises(SyntaxProblem) as problem:
        parse("SELECT ?x WHERE (?x, a, ?y) OR ?y = 5")
    assert problem.value.facts() == {
        "error": "NotSupported",
        "what": "'OR' is not supported in subscriptions",
        "place": {"line": 1, "column": 29, "length": 2},
        "accepted": SUPPORTED,
        "hint": "make a subscription for each side",
    }


DEFAULTS = asdict(Limits())
FOUR = " ".join("(?x, dc:title, ?y)" for _ in range(4))
LIMITED = [
    ("edges", f"SELECT * WHERE {FOUR}", r"too many edges \(column 73\); accepted: at most 3"),
    ("constraints", "SELECT * WHERE (?x, a, ?y)" + " AND ?x > 5" * 4, r"too many constraints \(column 65\)"),
    ("variables", "SELECT * WHERE (?a, ?b, ?c) (?a, ?b, ?d)", r"too many variables \(column 29\)"),
    ("values", "SELECT * WHERE (?x, a, ?y) AND ?y in (1, 2, 3, 4)", r"too many values \(column 38\)"),
    ("length", "SELECT * WHERE (?x, a, ?y)", r"too long; received 26 characters; accepted: at most 3"),
]


@pytest.mark.parametrize(("limit", "text", "message"), LIMITED, ids=[each[0] for each in LIMITED])
def test_parse_beyond_configured_limit_is_rejected(limit: str, text: str, message: str) -> None:
    assert parse(text, Limits(**{limit: max(4, len(text) * (limit == "length"))}))
    with pytest.raises(SyntaxProblem, match=message):
        parse(text, Limits(**{limit: 3}))


def test_limits_from_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDINGS_GQL_LIMITS", "edges=3 values=1_000")
    assert limits_from("TIDINGS_GQL_LIMITS", Limits) == Limits(edges=3, values=1000)
    monkeypatch.setenv("TIDINGS_GQL_LIMITS", "edges=1001")
    with pytest.raises(SetupError, match=r"not a limit \(TIDINGS_GQL_LIMITS, edges\); received 1001"):
        limits_from("TIDINGS_GQL_LIMITS", Limits)


def test_parse_nested_brackets_beyond_limit_are_rejected() -> None:
    for opening, closing in (("[ dc:title ", "]"), ("FILTER" + "(", ")")):
        inner = "FILTER" in opening
        text = "SELECT * WHERE { ?x dc:title "
        text += (
            "?y FILTER" + "(" * 500 + "?y > 5" + ")" * 500 if inner else opening * 500 + "?y" + closing * 500
        )
        with pytest.raises(SyntaxProblem, match="too many brackets inside each other"):
            parse(text + " }")


def test_parse_lone_surrogate_is_rejected() -> None:
    with pytest.raises(SyntaxProblem, match=r"half a character \(column 19\); received U\+D800"):
        parse("SELECT * WHERE (?x\ud800, a, ?y)")


def test_parse_empty_text_is_rejected() -> None:
    for text in ("", " \n\t", "# nothing but a remark"):
        with pytest.raises(
            SyntaxProblem, match=r"the text is empty \((line 1, )?column 1\); accepted: a text such"
        ):
            parse(text)


PAGE = (ROOT / "docs" / "gql.md").read_text(encoding="utf-8")
ROWS = re.findall(
    r"^\| `(.*?)` \| (.*?) \|(?: (.*?) \|)?$", PAGE.partition("## Rejected subscriptions")[2], re.MULTILINE
)
REJECTED = [row for row in ROWS if row[0] not in DEFAULTS]


def expand_docs_text(text: str) -> str:
    """Replace `...` in a text of the docs by an edge, in the notation of the text around it."""
    text = text.replace("\\|", "|")
    return text.replace("{ ... ", "{ ?x dc:title ?t . ").replace("WHERE ... ", "WHERE (?x, dc:title, ?t) ")


@pytest.mark.parametrize(("text", "message", "hint"), REJECTED, ids=str)
def test_docs_rejected_texts_have_documented_message(text: str, message: str, hint: str) -> None:
    with pytest.raises(SubscriptionError) as problem:
        parse(expand_docs_text(text))
    message = message.replace("\\|", "|")
    what = f"{message} not supported in subscriptions" if hint else message
    assert (problem.value.what, problem.value.hint if hint else "") == (what, hint)


@pytest.mark.parametrize("limit", DEFAULTS)
def test_limits_are_documented_with_defaults(limit: str) -> None:
    assert f"| `{limit}` | {DEFAULTS[limit]:,} |" in PAGE


@pytest.mark.parametrize("prefix", PREFIXES)
def test_prefixes_are_documented(prefix: str) -> None:
    assert f"| `{prefix}:` | `{PREFIXES[prefix]}` |" in PAGE


def test_docs_contain_every_error_of_pairs() -> None:
    pairs = read_pairs(PAIRS_FOLDER / "gql.txt")
    raised = {_without_names(problem) for pair in pairs if (problem := _find_problem(pair.given))}
    documented = {
        _without_names(problem)
        for text, _, _ in REJECTED
        if (problem := _find_problem(expand_docs_text(text)))
    }
    assert raised - documented == set()
    assert {word for word in OUTSIDE if f"`{word}" not in PAGE and f" {word}" not in PAGE} == set()
    assert SUPPORTED_SPARQL in PAGE


def _find_problem(text: str) -> SubscriptionError | None:
    try:
        parse(text)
    except SubscriptionError as problem:
        return problem if isinstance(problem, NotSupported | CheckProblem) else None
    return None


def _without_names(problem: SubscriptionError) -> str:
    return re.sub(r"(function|prefix|variable|aggregate) \S+", r"\1", problem.what)

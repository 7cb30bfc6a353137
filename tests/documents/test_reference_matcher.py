"""Matching of XPaths and its reasons, compared with two other engines and the example of the paper.

The engines are lxml (libxml2) and Saxon with XPath 1.0 compatibility. elementpath is not used: its XPath 1.0 reads
`<a> -5 </a>` as unequal to -5, and raises an error where 'x' is compared with a number. Both engines evaluate from the
document node. HYPOTHESIS_PROFILE=fuzz, or ORACLE_EXAMPLES=n with `--timeout 0`, runs more examples.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree
from saxonche import PySaxonProcessor, PyXPathProcessor

from tests.support.strategies.xpaths import DECLARATIONS, PREFIXES, Writer, documents, expressions
from tidings.documents.model import Node, place_of
from tidings.documents.reference_matcher import SHOWN, Explainer, explain, matches
from tidings.documents.xml_decoder import decode
from tidings.documents.xpath.xpath_parser import parse
from tidings.documents.xpath.xpath_tree import Expression, show
from tidings.model import Reason

EXAMPLES = int(os.environ.get("ORACLE_EXAMPLES", 4 * settings.default.max_examples))


@dataclass(slots=True)
class Engines:
    """Two independent XPath engines and the document on which they evaluate."""

    saxon: PySaxonProcessor
    saxon_xpath: PyXPathProcessor
    lxml_document: etree._ElementTree | None = None

    def read(self, document: str) -> None:
        self.lxml_document = etree.fromstring(document.encode()).getroottree()
        self.saxon_xpath.set_context(xdm_item=self.saxon.parse_xml(xml_text=document))

    def evaluate(self, xpath: str) -> tuple[bool, bool]:
        """Return the results of lxml and of Saxon."""
        lxml_xpath = etree.XPath(f"boolean({xpath})", namespaces=PREFIXES)
        return lxml_xpath(self.lxml_document), self.saxon_xpath.effective_boolean_value(xpath)


@pytest.fixture(scope="module")
def engines() -> Iterator[Engines]:
    with PySaxonProcessor(license=False) as saxon:
        xpath = saxon.new_xpath_processor()
        xpath.set_backwards_compatible(True)
        for prefix, uri in PREFIXES.items():
            xpath.declare_namespace(prefix, uri)
        yield Engines(saxon, xpath)


def test_matches_generated_expressions_agree_with_other_engines(engines: Engines) -> None:
    """Evaluate every expression on every document of an example; some match and some do not."""
    results: Counter[bool] = Counter()

    @settings(max_examples=EXAMPLES)
    @given(
        st.lists(documents(), min_size=3, max_size=3),
        st.lists(expressions(), min_size=4, max_size=4),
        st.integers(0, 2**32),
    )
    def agree(bodies: list[str], trees: list[Expression], seed: int) -> None:
        texts = [Writer(seed + place).write(tree) for place, tree in enumerate(trees)]
        for body in bodies:
            engines.read(body)
            node = decode(body.encode())
            for text, tree in zip(texts, trees, strict=True):
                expected = matches(parse(DECLARATIONS + text), node)
                results[expected] += 1
                assert (expected, expected) == engines.evaluate(text), f"{text} on {body}"
                assert bool(explain(tree, node)) == expected

    agree()
    assert min(results[True], results[False]) > results.total() / 10


DISAGREEMENTS = [
    # document, XPath, result of Tidings, of lxml, of Saxon
    # XPath 1.0 numbers have no exponent; both engines accept one. 5e is a number only for libxml2.
    ("<a>1e3</a>", "/a = 1000", False, True, True),
    ("<a>5e</a>", "/a = 5", False, True, False),
    # A plus sign and INF belong to the doubles of XPath 2.0, which Saxon also accepts in its compatible mode.
    ("<a>+5</a>", "/a = 5", False, False, True),
    ("<a>INF</a>", "/a > 5", False, False, True),
    # Saxon 12 ignores the space here, and only here: '5. 5' and '-. 5' are no numbers for it.
    ("<a>. 5</a>", "/a = 0.05", False, False, True),
    # libxml2 adds up digits and misses the nearest double: 99999999999999999999 is nearest to 10 ** 20.
    ("<a>99999999999999999999</a>", "/a = 100000000000000000000", True, False, True),
    # Text nodes have at least one character (section 5.7); for libxml2 an empty CDATA section is a text node, and
    # Tidings reads documents with libxml2.
    ("<a><![CDATA[]]></a>", "/a/text()", True, True, False),
]


@pytest.mark.parametrize(("body", "xpath", "expected", "by_lxml", "by_saxon"), DISAGREEMENTS)
def test_matches_known_disagreements_of_other_engines(
    engines: Engines, body: str, xpath: str, expected: bool, by_lxml: bool, by_saxon: bool
) -> None:
    """Cases in which the engines disagree, each with its reason; generated examples contain none of them."""
    engines.read(body)
    assert engines.evaluate(xpath) == (by_lxml, by_saxon)
    assert matches(parse(xpath), decode(body.encode())) == expected


def matches_text(xpath: str, body: str) -> bool:
    return matches(parse(xpath), decode(body.encode()))


CASES = [
    # A top-level path starts at the document, with or without a slash; a path with a slash in a predicate, too.
    (
        "<a><b/></a>",
        ["a/b", "/a/b", "//b", ".//b", "/*", "/a[b and /a/b and //a]"],
        ["b", "/b", "/a[/b]", "/a/a"],
    ),
    # The value of an element is all its text; its text nodes are the pieces between other nodes.
    ("<a>1<b>2</b>3</a>", ["/a = '123'", "/a/text() = '3'", "/a = 123"], ["/a = '13'", "/a/text() = '13'"]),
    ("<a>1<!--c-->2<?p?>3</a>", ["/a = '123'", "/a/text() = '2'"], ["/a/text() = '12'"]),
    ("<a>1<![CDATA[<2>]]>3</a>", ["/a/text() = '1<2>3'"], ["/a/text() = '1'"]),
    # A comparison holds if some node satisfies it. not() requires that no node does, so it holds without nodes.
    ("<a><b>1</b><b>2</b></a>", ["//b = 1", "//b != 1", "not(//b = 3)"], ["not(//b = 1)", "not(//b != 1)"]),
    ("<a/>", ["not(//b = 1)", "not(//b != 1)"], ["//b = 1", "//b != 1"]),
    # A comparison with a number is numeric: a string that is no number is unequal to all numbers and has no order.
    ("<a>5.0</a>", ["/a = 5", "/a != '5'", "/a < '5.5'", "5 <= /a"], ["/a = '5'", "/a != 5", "/a > 5"]),
    ("<a>abc</a>", ["/a != 5", "not(/a = 5)"], ["/a = 5", "/a < 5", "/a >= 5"]),
    # contains() and starts-with() use the first node in document order, in whatever order the path reaches nodes:
    # //b/c reaches 'first' last.
    (
        "<a><b><b><c>first</c></b><c>then</c></b></a>",
        ["contains(//b/c, 'first')", "//c[contains(., 'then')]", "starts-with(//c, 'fir')"],
        [
            "contains(//b/c, 'then')",
            "starts-with(//c, 'th')",
            "contains(//d, 'x')",
            "//c[starts-with(., 'irs')]",
        ],
    ),
    # Only @ selects attributes; // includes those of the context element itself.
    (
        "<a x='1'><b y='2'/></a>",
        ["/a//@x", "/a//@y", "//@*[. = 2]", "/a/@x = 1"],
        ["/a/@y", "/a/x", "/@x", "//*[@z]"],
    ),
    # Names without a prefix are in no namespace, whatever the default namespace of the document.
    (
        "<a xmlns='urn:d' xmlns:p='urn:p' p:x='1' x='2'><p:b xmlns=''><c/></p:b></a>",
        [
            f"{DECLARATIONS}{path}"
            for path in ("/d:a/p:b/c", "/d:*/*/c", "/*/@p:x = 1", "/*/@x = 2", "//@p:*")
        ],
        [
            f"{DECLARATIONS}{path}"
            for path in ("/a", "//b", "/p:a", "//d:c", "//p:c", "/*[@p:x = 2]", "//@d:x")
        ],
    ),
    ("<a xml:lang='en'/>", ["/a/@xml:lang = 'en'"], ["/a/@lang"]),
]


@pytest.mark.parametrize(("body", "matching", "other"), CASES, ids=[case[0] for case in CASES])
def test_matches_hand_written_cases(body: str, matching: list[str], other: list[str]) -> None:
    assert [xpath for xpath in matching if not matches_text(xpath, body)] == []
    assert [xpath for xpath in other if matches_text(xpath, body)] == []


# --- The paper's example: figures 3.2, 3.5 and 3.6 ---------------------------------------------------------------

SUBSCRIPTION = '/a//b[.//c/d/text()="v1" and p//q/text()="v2"]/x[@y="v3"]//z/text()="v4"'
"""Figure 3.2. The paper writes [//c ...] and [/p ...] for paths from b; in XPath those start at the document."""

MESSAGE = (
    '<a><b><c><d>v1</d></c><p><p2><q>v2</q></p2></p><x y="v3"><z>v4</z><z>v5</z></x></b>'
    '<b><b><x y="v4"/></b></b></a>'
)


def node_numbers(body: str) -> dict[str, int]:
    """Return the number of each node by its place, counted as in figure 3.5."""

    def below(node: Node) -> list[Node]:
        return [node, *(each for child in node.children for each in below(child))]

    return {place_of(node): number for number, node in enumerate(below(decode(body.encode())), 1)}


def test_place_of_nodes_of_paper_have_numbers_of_figure_3_6() -> None:
    """Figure 3.6 has these as the last number of each id path."""
    numbers = node_numbers(MESSAGE)
    assert numbers["/a[1]/b[1]/c[1]/d[1]/text()[1]"] == 5
    assert numbers["/a[1]/b[1]/p[1]/p2[1]/q[1]/text()[1]"] == 9
    assert numbers["/a[1]/b[1]/x[1]/@y"] == 11
    assert numbers["/a[1]/b[1]/x[1]/z[1]/text()[1]"] == 13
    assert numbers["/a[1]/b[1]/x[1]/z[2]/text()[1]"] == 15
    assert numbers["/a[1]/b[2]/b[1]/x[1]/@y"] == 19


def test_explain_match_of_paper_has_all_branches() -> None:
    """Figure 3.14: the branches meet in the nodes 2 (b) and 10 (x)."""
    assert matches_text(SUBSCRIPTION, MESSAGE)
    reasons = explain(parse(SUBSCRIPTION), decode(MESSAGE.encode()))
    assert [(reason.predicate, reason.value, node_numbers(MESSAGE)[reason.at]) for reason in reasons] == [
        ('.//c/d/text() = "v1"', "v1", 5),
        ('p//q/text() = "v2"', "v2", 9),
        ('@y = "v3"', "v3", 11),
        ('/a//b/x//z/text() = "v4"', "v4", 13),
    ]


@pytest.mark.parametrize(
    "path", ["/a//b[x/@y = 'v4']", "/a//b[b/x/@y = 'v4']", "/a//b//x/@y = 'v4'", "/a/b/b/x/@y"]
)
def test_matches_branching_point_in_nested_elements(path: str) -> None:
    """Figure 3.11, tag path 315: in /a/b/b/x/@y, b may be the outer one (node 16) or the inner one (node 17)."""
    assert matches_text(path, MESSAGE)


def test_matches_branches_without_common_node_do_not_match() -> None:
    """Each branch is in the document (figure 3.12, the second tuple), but no b has them all."""
    separate = '/a//b[.//c/d/text()="v1"]/x[@y="v4"]'
    assert matches_text('/a//b//c/d/text()="v1" and /a//b/x/@y="v4"', MESSAGE)
    assert not matches_text(separate, MESSAGE)
    assert not matches_text(
        SUBSCRIPTION, MESSAGE.replace('y="v3"', 'y="v4"').replace('<x y="v4"/>', '<x y="v3"/>')
    )


# --- Reasons -----------------------------------------------------------------------------------------------------

QUOTE = (
    '<quotes><stock id="7"><symbol>IBM</symbol></stock>'
    "<stock><symbol>YHOO</symbol><price>70.2</price></stock></quotes>"
)

EXPLAINED = [
    (
        '//stock[symbol = "YHOO" and price > 50]',
        [('symbol = "YHOO"', "YHOO", "stock[2]/symbol[1]"), ("price > 50", "70.2", "stock[2]/price[1]")],
    ),
    # The first alternative that holds.
    ("//stock[@id = 8 or @id = 7 or symbol]", [("@id = 7", "7", "stock[1]/@id")]),
    # A path alone has the place it leads to, and no value; a path that ends in predicates has their reasons.
    ("//stock[@id]/symbol", [("@id", None, "stock[1]/@id"), ("//stock/symbol", None, "stock[1]/symbol[1]")]),
    # not() has no value; its place is the context node.
    (
        "not(//bond) and //stock[not(price > 50)]/symbol = 'IBM'",
        [
            ("not(//bond)", None, "/"),
            ("not(price > 50)", None, "stock[1]"),
            ('//stock/symbol = "IBM"', "IBM", "stock[1]/symbol[1]"),
        ],
    ),
    ("contains(//symbol, 'B')", [('contains(//symbol, "B")', "IBM", "stock[1]/symbol[1]")]),
    ("//price[. < 100]", [(". < 100", "70.2", "stock[2]/price[1]")]),
    # The outermost of the nested elements that the path may pass through.
    ("//*[stock]//price", [("stock", None, "stock[1]"), ("//*//price", None, "stock[2]/price[1]")]),
    ("//stock[price = 1]", []),
]


@pytest.mark.parametrize(("xpath", "reasons"), EXPLAINED, ids=[case[0] for case in EXPLAINED])
def test_explain_match_has_predicates_values_and_places(
    xpath: str, reasons: list[tuple[str, str | None, str]]
) -> None:
    explained = explain(parse(xpath), decode(QUOTE.encode()))
    shown = [(each.predicate, each.value, each.at.removeprefix("/quotes[1]/")) for each in explained]
    assert shown == reasons


def test_explain_reasons_are_on_one_path() -> None:
    """In nested elements, a reason names an element on the path; after //, the outermost one."""
    nested = decode(b"<a x='1'><a x='2'><b/></a></a>")
    assert explain(parse("//a[@x > 0]/b"), nested)[0] == Reason("@x > 0", "2", "/a[1]/a[1]/@x")
    assert explain(parse("//a[@x > 0]//b"), nested)[0] == Reason("@x > 0", "1", "/a[1]/@x")


def test_explain_reason_has_namespaces() -> None:
    tree = parse(f"{DECLARATIONS}//d:a[@p:x = 1]")
    node = decode(b"<a xmlns='urn:d' xmlns:p='urn:p' p:x='1'/>")
    assert explain(tree, node) == (Reason("@{urn:p}x = 1", "1", "/{urn:d}a[1]/@{urn:p}x"),)


def test_explain_too_expensive_returns_subscription_itself() -> None:
    """Each `not` visits all descendants of every node: 150 nested nodes are visited some million times."""
    nested = "//a[not(.//a[not(.//a[not(.//x)])])]"
    document = decode(b"<a>" * 150 + b"</a>" * 150)
    [reason] = Explainer(document, most=10_000).explain(parse(nested))
    assert reason.value is None and reason.at == "/" and reason.predicate.startswith("//a[not(")
    assert Explainer(document).explain(parse("/a/a")) == (Reason("/a/a", None, "/a[1]/a[1]"),)


def test_explain_long_value_is_truncated() -> None:
    (reason,) = explain(parse("contains(/a, 'x')"), decode(b"<a>" + b"x" * 1000 + b"</a>"))
    assert reason.value == "x" * (SHOWN - 1) + "…"


@given(documents(), expressions())
def test_explain_generated_reasons_have_place_and_value_of_node(body: str, tree: Expression) -> None:
    """The place of a reason is a node of the document, and its value is the value of that node."""
    node = decode(body.encode())
    nodes = {place_of(each): each for each in _all_nodes(node)}
    for reason in explain(tree, node):
        assert reason.at == "/" or reason.at in nodes
        assert reason.value is None or nodes[reason.at].value == reason.value


def _all_nodes(node: Node) -> list[Node]:
    return [node, *(each for child in node.children for each in _all_nodes(child))]


@given(documents(), expressions())
def test_show_of_tree_matches_same_documents(body: str, tree: Expression) -> None:
    node = decode(body.encode())
    assert matches(parse(show(tree)), node) == matches(tree, node)

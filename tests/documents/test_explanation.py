"""What a match of a document is: against two engines of others, the paper's example, and what is said of a match.

The engines are lxml (libxml2) and Saxon with XPath 1.0 compatibility. elementpath is none of them: its XPath 1.0 reads
`<a> -5 </a>` as unequal to -5, and raises an error where 'x' is compared with a number. Both engines are asked from the
document. HYPOTHESIS_PROFILE=fuzz, or ORACLE_EXAMPLES=n with `--timeout 0`, asks them more.
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
from tidings.documents.explanation import SHOWN, Explainer, explain, matches
from tidings.documents.model import Node, place_of
from tidings.documents.xml_decoder import decode
from tidings.documents.xpath.xpath_parser import parse
from tidings.documents.xpath.xpath_tree import Expression, show
from tidings.model import Reason

EXAMPLES = int(os.environ.get("ORACLE_EXAMPLES", 4 * settings.default.max_examples))


@dataclass(slots=True)
class Engines:
    """The engines of others, and the document they are asked about."""

    saxon: PySaxonProcessor
    saxon_xpath: PyXPathProcessor
    lxml_document: etree._ElementTree | None = None

    def read(self, document: str) -> None:
        self.lxml_document = etree.fromstring(document.encode()).getroottree()
        self.saxon_xpath.set_context(xdm_item=self.saxon.parse_xml(xml_text=document))

    def say(self, xpath: str) -> tuple[bool, bool]:
        """What lxml says and what Saxon says."""
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


def test_others_agree(engines: Engines) -> None:
    """Every expression is asked of every document of an example; some match and some do not."""
    told: Counter[bool] = Counter()

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
                ours = matches(parse(DECLARATIONS + text), node)
                told[ours] += 1
                assert (ours, ours) == engines.say(text), f"{text} on {body}"
                assert bool(explain(tree, node)) == ours

    agree()
    assert min(told[True], told[False]) > told.total() / 10


DISAGREEMENTS = [
    # document, XPath, what we say, what lxml says, what Saxon says
    # An exponent is not in XPath 1.0's numbers; both engines read it. 5e is a number to libxml2 only.
    ("<a>1e3</a>", "/a = 1000", False, True, True),
    ("<a>5e</a>", "/a = 5", False, True, False),
    # A plus sign and INF are of XPath 2.0's doubles, which Saxon reads in its compatible mode, too.
    ("<a>+5</a>", "/a = 5", False, False, True),
    ("<a>INF</a>", "/a > 5", False, False, True),
    # Saxon 12 overlooks the space in this one, and only there: '5. 5' and '-. 5' are no numbers to it.
    ("<a>. 5</a>", "/a = 0.05", False, False, True),
    # libxml2 adds digits up, and is not at the nearest double: 99999999999999999999 is nearest to 10 ** 20.
    ("<a>99999999999999999999</a>", "/a = 100000000000000000000", True, False, True),
    # XPath's text nodes have at least a character (section 5.7); for libxml2, an empty CDATA section is one, and
    # its documents are those that are published.
    ("<a><![CDATA[]]></a>", "/a/text()", True, True, False),
]


@pytest.mark.parametrize(("body", "xpath", "ours", "by_lxml", "by_saxon"), DISAGREEMENTS)
def test_others_disagree(
    engines: Engines, body: str, xpath: str, ours: bool, by_lxml: bool, by_saxon: bool
) -> None:
    """Where the engines are not of one mind, each case with its reason; the generated cases have none of these."""
    engines.read(body)
    assert engines.say(xpath) == (by_lxml, by_saxon)
    assert matches(parse(xpath), decode(body.encode())) == ours


def holds(xpath: str, body: str) -> bool:
    return matches(parse(xpath), decode(body.encode()))


CASES = [
    # A path from the top begins at the document, with or without a slash; in a predicate a slash does so, too.
    (
        "<a><b/></a>",
        ["a/b", "/a/b", "//b", ".//b", "/*", "/a[b and /a/b and //a]"],
        ["b", "/b", "/a[/b]", "/a/a"],
    ),
    # An element's value is all text in it; its text nodes are pieces, parted by what stands between.
    ("<a>1<b>2</b>3</a>", ["/a = '123'", "/a/text() = '3'", "/a = 123"], ["/a = '13'", "/a/text() = '13'"]),
    ("<a>1<!--c-->2<?p?>3</a>", ["/a = '123'", "/a/text() = '2'"], ["/a/text() = '12'"]),
    ("<a>1<![CDATA[<2>]]>3</a>", ["/a/text() = '1<2>3'"], ["/a/text() = '1'"]),
    # Some node satisfies a comparison, another may not; not() asks that none does, and so holds where there is none.
    ("<a><b>1</b><b>2</b></a>", ["//b = 1", "//b != 1", "not(//b = 3)"], ["not(//b = 1)", "not(//b != 1)"]),
    ("<a/>", ["not(//b = 1)", "not(//b != 1)"], ["//b = 1", "//b != 1"]),
    # With a number, numbers are compared: a string that is none is unequal to all, and has no order.
    ("<a>5.0</a>", ["/a = 5", "/a != '5'", "/a < '5.5'", "5 <= /a"], ["/a = '5'", "/a != 5", "/a > 5"]),
    ("<a>abc</a>", ["/a != 5", "not(/a = 5)"], ["/a = 5", "/a < 5", "/a >= 5"]),
    # contains() and starts-with() ask the first node of the document's order, whatever way the path came to it:
    # //b/c comes to 'first' last.
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
    # Attributes are reached by @ only; those of an element itself are among those below it.
    (
        "<a x='1'><b y='2'/></a>",
        ["/a//@x", "/a//@y", "//@*[. = 2]", "/a/@x = 1"],
        ["/a/@y", "/a/x", "/@x", "//*[@z]"],
    ),
    # Names without a prefix are in no namespace, whatever the document's default is.
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


@pytest.mark.parametrize(("body", "held", "missed"), CASES, ids=[case[0] for case in CASES])
def test_cases(body: str, held: list[str], missed: list[str]) -> None:
    assert [xpath for xpath in held if not holds(xpath, body)] == []
    assert [xpath for xpath in missed if holds(xpath, body)] == []


# --- The paper's example: figures 3.2, 3.5 and 3.6 ---------------------------------------------------------------

SUBSCRIPTION = '/a//b[.//c/d/text()="v1" and p//q/text()="v2"]/x[@y="v3"]//z/text()="v4"'
"""Figure 3.2. The paper writes [//c ...] and [/p ...] for what begins at b; in XPath those begin at the document."""

MESSAGE = (
    '<a><b><c><d>v1</d></c><p><p2><q>v2</q></p2></p><x y="v3"><z>v4</z><z>v5</z></x></b>'
    '<b><b><x y="v4"/></b></b></a>'
)


def numbered(body: str) -> dict[str, int]:
    """Each node's place and its number, counted as in figure 3.5."""

    def below(node: Node) -> list[Node]:
        return [node, *(each for child in node.children for each in below(child))]

    return {place_of(node): number for number, node in enumerate(below(decode(body.encode())), 1)}


def test_the_papers_nodes() -> None:
    """Figure 3.6: the last number of each id path."""
    number = numbered(MESSAGE)
    assert number["/a[1]/b[1]/c[1]/d[1]/text()[1]"] == 5
    assert number["/a[1]/b[1]/p[1]/p2[1]/q[1]/text()[1]"] == 9
    assert number["/a[1]/b[1]/x[1]/@y"] == 11
    assert number["/a[1]/b[1]/x[1]/z[1]/text()[1]"] == 13
    assert number["/a[1]/b[1]/x[1]/z[2]/text()[1]"] == 15
    assert number["/a[1]/b[2]/b[1]/x[1]/@y"] == 19


def test_the_papers_match() -> None:
    """Figure 3.14: the branches meet in the nodes 2 (b) and 10 (x)."""
    assert holds(SUBSCRIPTION, MESSAGE)
    reasons = explain(parse(SUBSCRIPTION), decode(MESSAGE.encode()))
    assert [(reason.predicate, reason.value, numbered(MESSAGE)[reason.at]) for reason in reasons] == [
        ('.//c/d/text() = "v1"', "v1", 5),
        ('p//q/text() = "v2"', "v2", 9),
        ('@y = "v3"', "v3", 11),
        ('/a//b/x//z/text() = "v4"', "v4", 13),
    ]


@pytest.mark.parametrize(
    "path", ["/a//b[x/@y = 'v4']", "/a//b[b/x/@y = 'v4']", "/a//b//x/@y = 'v4'", "/a/b/b/x/@y"]
)
def test_a_branching_point_in_nested_elements(path: str) -> None:
    """Figure 3.11, tag path 315: in /a/b/b/x/@y, b may be the outer one (node 16) or the inner one (node 17)."""
    assert holds(path, MESSAGE)


def test_branches_that_do_not_meet() -> None:
    """Each branch is in the document (figure 3.12, the second tuple), but no b has them all."""
    apart = '/a//b[.//c/d/text()="v1"]/x[@y="v4"]'
    assert holds('/a//b//c/d/text()="v1" and /a//b/x/@y="v4"', MESSAGE)
    assert not holds(apart, MESSAGE)
    assert not holds(SUBSCRIPTION, MESSAGE.replace('y="v3"', 'y="v4"').replace('<x y="v4"/>', '<x y="v3"/>'))


# --- Why ---------------------------------------------------------------------------------------------------------

QUOTE = (
    '<quotes><stock id="7"><symbol>IBM</symbol></stock>'
    "<stock><symbol>YHOO</symbol><price>70.2</price></stock></quotes>"
)

EXPLAINED = [
    (
        '//stock[symbol = "YHOO" and price > 50]',
        [('symbol = "YHOO"', "YHOO", "stock[2]/symbol[1]"), ("price > 50", "70.2", "stock[2]/price[1]")],
    ),
    # Of alternatives, the first that holds.
    ("//stock[@id = 8 or @id = 7 or symbol]", [("@id = 7", "7", "stock[1]/@id")]),
    # A path alone is told where it leads, without a value; one with predicates at its end is told by them.
    ("//stock[@id]/symbol", [("@id", None, "stock[1]/@id"), ("//stock/symbol", None, "stock[1]/symbol[1]")]),
    # not() has no value; its place is where it was asked.
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
    # Of nested elements that a path may go through, the outermost.
    ("//*[stock]//price", [("stock", None, "stock[1]"), ("//*//price", None, "stock[2]/price[1]")]),
    ("//stock[price = 1]", []),
]


@pytest.mark.parametrize(("xpath", "reasons"), EXPLAINED, ids=[case[0] for case in EXPLAINED])
def test_explain(xpath: str, reasons: list[tuple[str, str | None, str]]) -> None:
    found = explain(parse(xpath), decode(QUOTE.encode()))
    told = [(each.predicate, each.value, each.at.removeprefix("/quotes[1]/")) for each in found]
    assert told == reasons


def test_reasons_are_of_nodes_on_one_way() -> None:
    """Where elements nest, the one that is told is one through which the path goes; behind //, the outermost."""
    nested = decode(b"<a x='1'><a x='2'><b/></a></a>")
    assert explain(parse("//a[@x > 0]/b"), nested)[0] == Reason("@x > 0", "2", "/a[1]/a[1]/@x")
    assert explain(parse("//a[@x > 0]//b"), nested)[0] == Reason("@x > 0", "1", "/a[1]/@x")


def test_reasons_name_namespaces() -> None:
    tree = parse(f"{DECLARATIONS}//d:a[@p:x = 1]")
    node = decode(b"<a xmlns='urn:d' xmlns:p='urn:p' p:x='1'/>")
    assert explain(tree, node) == (Reason("@{urn:p}x = 1", "1", "/{urn:d}a[1]/@{urn:p}x"),)


def test_an_explanation_that_takes_too_long_is_the_subscription_itself() -> None:
    """Each `not` asks everything below every node: 150 nodes inside each other are looked at some million times."""
    nested = "//a[not(.//a[not(.//a[not(.//x)])])]"
    document = decode(b"<a>" * 150 + b"</a>" * 150)
    [reason] = Explainer(document, most=10_000).explain(parse(nested))
    assert reason.value is None and reason.at == "/" and reason.predicate.startswith("//a[not(")
    assert Explainer(document).explain(parse("/a/a")) == (Reason("/a/a", None, "/a[1]/a[1]"),)


def test_long_values_are_cut_in_reasons() -> None:
    (reason,) = explain(parse("contains(/a, 'x')"), decode(b"<a>" + b"x" * 1000 + b"</a>"))
    assert reason.value == "x" * (SHOWN - 1) + "…"


@given(documents(), expressions())
def test_each_reason_holds_where_it_is_said_to(body: str, tree: Expression) -> None:
    """A comparison that was a reason holds of the node at its place: its path leads there, its value is that."""
    node = decode(body.encode())
    known = {place_of(each): each for each in _all(node)}
    for reason in explain(tree, node):
        assert reason.at == "/" or reason.at in known
        assert reason.value is None or known[reason.at].value == reason.value


def _all(node: Node) -> list[Node]:
    return [node, *(each for child in node.children for each in _all(child))]


@given(documents(), expressions())
def test_shown_trees_mean_the_same(body: str, tree: Expression) -> None:
    node = decode(body.encode())
    assert matches(parse(show(tree)), node) == matches(tree, node)

"""XML parsing in one module: no document types, no external files, no second byte order mark."""

from __future__ import annotations

import ast
import codecs
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.parsers import expat
from xmlrpc.client import Fault

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.documents.test_xml_batch_decoder import decode_and_compare, decode_bodies
from tidings.api.xml_rpc import service_methods
from tidings.console.pages import highlight_publication
from tidings.documents.xml_decoder import decode
from tidings.errors import DecodeProblem, InputError
from tidings.graphs.model import RDF
from tidings.graphs.rdf.rdf_decoder import decode as decode_graph
from tidings.graphs.rdf.statements import statements
from tidings.graphs.syndication.feed_parser import items_of
from tidings.model import Publication
from tidings.objects.readers.xmi_reader import draft_xmi
from tidings.parsers import xml_parser
from tidings.parsers.xml_bytes import convert_to_utf8
from tidings.parsers.xml_parser import DeclarationGuard, make_parser, parse, parse_tree, serialise

MARK = codecs.BOM_UTF8


def _bulk(body: bytes) -> None:
    for _, problem in decode_bodies([body]).rejects:
        raise problem


def _console(body: bytes) -> None:
    """The console shows malformed XML unchanged; its pretty printer adds line ends to the rest."""
    if "\n" not in highlight_publication(Publication("p", "application/xml", body)):
        raise InputError("not parsed")


ENTRY_POINTS: dict[str, Callable[[bytes], object]] = {
    "documents": decode,
    "documents in bulk": _bulk,
    "RDF/XML": lambda body: decode_graph(body, "application/rdf+xml", "http://example.org/"),
    "metadata": lambda body: (
        decode_graph(body, "application/rdf+xml", "http://example.org/")
        if statements(body, "application/rdf+xml", "http://example.org/") is None
        else None
    ),
    "feeds": lambda body: items_of(body, "application/rss+xml"),
    "XML-RPC": lambda body: service_methods.parse_call(body, "text/xml"),
    "XMI": draft_xmi,
    "console": _console,
}
GRAPH = f'<r:RDF xmlns:r="{RDF}" xmlns:e="urn:e:"><e:a e:b="{{0}}"/></r:RDF>'
PLAIN = {
    "documents": "<a b='{0}'><c>{0}</c></a>",
    "documents in bulk": "<a b='{0}'><c>{0}</c></a>",
    "RDF/XML": GRAPH,
    "metadata": GRAPH,
    "feeds": '<rss version="2.0"><channel><item><title x="{0}">{0}</title></item></channel></rss>',
    "XML-RPC": "<methodCall x='{0}'><methodName>{0}a</methodName></methodCall>",
    "XMI": '<xmi:XMI xmlns:xmi="http://www.omg.org/XMI" x="{0}"><uml:Model xmlns:uml="http://www.omg.org/UML"/></xmi:XMI>',
    "console": "<a b='{0}'><c>{0}</c></a>",
}
HEADS = {
    "an entity": '<!DOCTYPE a [<!ENTITY x "ha">]>',
    "a file": '<!DOCTYPE a SYSTEM "file://{path}">',
    "a parameter entity": '<!DOCTYPE a [<!ENTITY % p SYSTEM "file://{path}"> %p;]>',
    "an external entity": '<!DOCTYPE a [<!ENTITY x SYSTEM "file://{path}">]>',
    "behind an instruction": '<?p <a> ?><!-- <a> --> <!DOCTYPE a SYSTEM "{path}">',
}
MARKED: dict[str, Callable[[str], bytes]] = {
    "no mark": str.encode,
    "a mark": lambda text: MARK + text.encode(),
    "two marks": lambda text: 2 * MARK + text.encode(),
    "three marks": lambda text: 3 * MARK + text.encode(),
    "a mark behind a blank": lambda text: b" " + MARK + text.encode(),
    "UTF-16 with two marks": lambda text: codecs.BOM_UTF16_LE + ("\ufeff" + text).encode("utf-16-le"),
    "UTF-16BE with two marks": lambda text: codecs.BOM_UTF16_BE + ("\ufeff" + text).encode("utf-16-be"),
    "UTF-16 without a mark": lambda text: text.encode("utf-16-le"),
    "UTF-32": lambda text: text.encode("utf-32"),
    "UTF-32 without a mark": lambda text: text.encode("utf-32-be"),
    "EBCDIC": lambda text: text.encode("cp037"),
    "a mark of UTF-16 in UTF-8": lambda text: codecs.BOM_UTF16_LE + text.encode(),
    "UTF-7": lambda text: b'<?xml version="1.0" encoding="UTF-7"?>' + text.encode("utf-7"),
    "Latin-1 with a mark": lambda text: MARK + b'<?xml version="1.0" encoding="latin1"?>' + text.encode(),
}


@pytest.fixture
def pipe(tmp_path: Path) -> Iterator[Path]:
    """A named pipe without a writer: opening it blocks for ever."""
    path = tmp_path / "x.dtd"
    os.mkfifo(path)
    yield path


@pytest.mark.parametrize("entry_point", ENTRY_POINTS)
@pytest.mark.parametrize("mark", MARKED)
def test_entry_points_document_type_after_any_prefix_is_rejected(
    mark: str, entry_point: str, pipe: Path
) -> None:
    for head in HEADS.values():
        for value in ("&x;", "x"):
            text = head.replace("{path}", str(pipe)) + PLAIN[entry_point].format(value)
            with pytest.raises((DecodeProblem, InputError, Fault)):
                ENTRY_POINTS[entry_point](MARKED[mark](text))


@pytest.mark.parametrize("entry_point", ENTRY_POINTS)
def test_entry_points_one_byte_order_mark_is_accepted_and_two_are_not(entry_point: str) -> None:
    text = PLAIN[entry_point].format("x")
    for body in (text.encode(), MARK + text.encode(), codecs.BOM_UTF16_BE + text.encode("utf-16-be")):
        if (
            entry_point != "console" or b"\0" not in body
        ):  # the console shows the bytes of bodies not in UTF-8
            ENTRY_POINTS[entry_point](body)
    for body in (2 * MARK + text.encode(), MARK + b"\0" + text.encode(), text.encode() + b"\0"):
        with pytest.raises((DecodeProblem, InputError, Fault)):
            ENTRY_POINTS[entry_point](body)


@pytest.mark.parametrize("body", [2 * MARK + b"<f/>", codecs.BOM_UTF16_LE * 2 + "<f/>".encode("utf-16-le")])
def test_decode_second_byte_order_mark_is_rejected_by_name(body: bytes) -> None:
    with pytest.raises(DecodeProblem, match="a second byte order mark"):
        decode(body)


# --- Each guard is sufficient alone -------------------------------------------------------------------------------


def test_declaration_guard_rejects_document_type_before_internal_subset(pipe: Path) -> None:
    for head in HEADS.values():
        text = (head.replace("{path}", str(pipe)) + "<a>&x;</a>").encode()
        with pytest.raises(DecodeProblem, match="document type declaration"):
            parse(text, make_parser(DeclarationGuard()))


def test_parser_without_guard_loads_no_external_files(pipe: Path) -> None:
    for name in ("a file", "a parameter entity"):
        text = (HEADS[name].replace("{path}", str(pipe)) + "<a b='&x;'/>").encode()
        with pytest.raises(DecodeProblem, match="external references are not loaded"):
            parse(text, make_parser())


@pytest.mark.parametrize("disabled", ["reject_doctype", "may_have_doctype", "both"])
@pytest.mark.parametrize("head", HEADS)
def test_parse_tree_with_disabled_guards_rejects_document_type(
    head: str, disabled: str, pipe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (HEADS[head].replace("{path}", str(pipe)) + "<a>x</a>").encode()
    for name in ("reject_doctype", "may_have_doctype") if disabled == "both" else (disabled,):
        monkeypatch.setattr(xml_parser, name, lambda text: None)
    with pytest.raises(DecodeProblem):
        parse_tree(text)


def test_parse_after_rejected_document_succeeds_with_same_parser() -> None:
    parser = make_parser(DeclarationGuard())
    for _ in range(3):
        with pytest.raises(DecodeProblem):
            parse(b"<!DOCTYPE a [<!ENTITY x 'y'>]><a>&x;</a>", parser)
        parse(b"<a>x</a>", parser)
        with pytest.raises(DecodeProblem, match="Entity 'x' not defined"):
            parse(b"<a>&x;</a>", parser)


def test_serialise_is_ascii_without_declarations_comments_and_sections() -> None:
    text = convert_to_utf8(
        '<?xml version="1.0" encoding="latin1"?>\n<!-- c --><a b="é\n">é<![CDATA[<]]>\r\n</a>'.encode(
            "latin1"
        )
    )
    assert serialise(parse_tree(text, comments=False)) == b'<a b="&#233; ">&#233;&lt;\n</a>'


# --- No parser outside of this module -----------------------------------------------------------------------------

PARSERS = re.compile(
    r"\b(XMLParser|fromstring|XMLPullParser|iterparse|XML|parseString|ParserCreate|HTMLParser|make_parser|XSLT|XInclude)$"
)
MODULES = ("xml", "defusedxml", "xmltodict")


def test_xml_parser_is_only_module_that_parses_xml() -> None:
    source = Path(xml_parser.__file__).parents[1]
    files = [file for file in source.rglob("*.py") if re.search(r"etree|\bxml", file.read_text())]
    assert len(files) > 20
    found = {f"{file.relative_to(source)}: {used}" for file in files for used in find_parsers(file)}
    assert (
        found
        == {
            "parsers/xml_parser.py: etree.XMLParser",
            "parsers/xml_parser.py: etree.fromstring",
            "api/xml_rpc/xml_rpc_call.py: xml.parsers.expat",  # for its error, which Python's XML-RPC parser raises
        }
    )


def find_parsers(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Attribute) and PARSERS.search(node.attr):
            called = ast.unparse(node)
            if called.startswith("etree."):
                yield called
        named = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        named += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        yield from (name for name in named if name.partition(".")[0] in MODULES)


# --- The decoders agree with each other and with another parser on any bytes ----------------------------------------

CODECS = ("utf-8", "utf-16-le", "utf-16-be", "latin-1", "utf-32-le", "utf-32-be", "cp037", "utf-7", "cp1252")
NAMES = (  # not utf8, which is accepted here and unknown to expat
    "utf-8",
    "UTF-8",
    "utf-16",
    "UTF-16LE",
    "iso-8859-1",
    "windows-1252",
    "us-ascii",
    "utf-32",
    "x",
)
MARKS = (MARK, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
QUOTED = st.sampled_from(["'{}'", '"{}"', " '{}' ", "{}", "'{}"])
DECLARATIONS = st.one_of(
    st.just(""),
    st.builds(
        lambda version, form, name, rest, before: (
            f"{before}<?xml version='{version}' encoding={form.format(name)}{rest}?>"
        ),
        st.sampled_from(["1.0", "1.1", "encoding='utf-8'", ""]),
        QUOTED,
        st.sampled_from(NAMES),
        st.sampled_from(["", " standalone='yes'", " encoding='utf-8'"]),
        st.sampled_from(["", "", "", " ", "\ufeff", "<!-- -->"]),
    ),
    st.sampled_from(
        ["<?xml version='1.0'?>", "<?xml-stylesheet encoding='latin1'?>", "<?xml encoding='utf-8'?>"]
    ),
)
PROLOGS = st.sampled_from(
    ["", "", " ", "\n", "\ufeff", "<!-- \ufeff -->", "<?p?>", "<!DOCTYPE a>", "<!", "\0"]
)
ROOTS = st.sampled_from(
    [
        "<a>é</a>",
        "<a/>",
        "<a b='é'>\ufeff</a>",
        "<a>x</a>\ufeff",
        "<a>\0</a>",
        "<a><!DOCTYPE b></a>",
        "<a/><!DOCTYPE b>",
    ]
)


@st.composite
def encoded(draw: st.DrawFn) -> bytes:
    text = draw(DECLARATIONS) + draw(PROLOGS) + draw(ROOTS)
    marks = draw(st.lists(st.sampled_from(MARKS), max_size=2))
    codec = draw(st.sampled_from(CODECS))
    return b"".join(marks) + text.encode(codec, "xmlcharrefreplace" if codec != "utf-7" else "strict")


def expat_text(body: bytes) -> str | None:
    """Return the texts and values that expat finds, or None if it rejects the document."""
    parser, texts = expat.ParserCreate(), list[str]()
    parser.buffer_text = True
    parser.CharacterDataHandler = texts.append
    parser.StartElementHandler = lambda name, attributes: texts.append("".join(attributes.values()))

    def reject_doctype(*_: object) -> None:
        raise ValueError("a document type")

    parser.StartDoctypeDeclHandler = reject_doctype
    try:
        parser.Parse(body, True)
    except (expat.ExpatError, ValueError, LookupError):
        return None
    return "".join(texts)


@given(st.lists(encoded(), min_size=1, max_size=3))
@example([2 * MARK + b"<!DOCTYPE a [<!ENTITY x 'y'>]><a b='&x;'/>"])
@example([codecs.BOM_UTF16_LE * 2 + "<!DOCTYPE a><a/>".encode("utf-16-le")])
@example(
    [b"<?xml version='1.0' encoding='UTF-16'?><a/>", MARK + b"<?xml version='1.0' encoding='latin1'?><a/>"]
)
@example([b"<?xml version='1.0'?>" + MARK + b"<a/>", b"<a/>" + MARK, b"<a>" + MARK + b"</a>"])
def test_decoders_agree_on_any_encoding_and_with_expat(bodies: list[bytes]) -> None:
    decoded_batch = decode_and_compare(bodies)
    rejected = {place for place, _ in decoded_batch.rejects}
    for place, body in enumerate(bodies):
        if place not in rejected:
            node = decode(body)
            values = "".join(each.value for each in node.children if each.name)
            assert expat_text(body) == values + node.value, body


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the memory in use from /proc")
def test_parse_without_memory_raises_memory_error() -> None:
    """libxml2 reports "unknown error", so that a valid document would be called malformed.

    The test uses a new process, whose allocator has no free memory of earlier work.
    """
    program = (
        "import re, resource\n"
        "from pathlib import Path\n"
        "from tidings.parsers.xml_parser import make_parser, parse\n"
        "text = b'<a>' + b'<b x=\"1\">t</b>' * 200_000 + b'</a>'\n"
        "used = int(re.search(r'VmData:\\s+(\\d+)', Path('/proc/self/status').read_text())[1]) << 10\n"
        "before = resource.getrlimit(resource.RLIMIT_DATA)\n"
        "resource.setrlimit(resource.RLIMIT_DATA, (used + (8 << 20), before[1]))\n"
        "try:\n"
        "    parse(text, make_parser())\n"
        "except MemoryError:\n"
        "    resource.setrlimit(resource.RLIMIT_DATA, before)\n"
        "    print('no memory, then', len(parse(text, make_parser())))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "no memory, then 200000\n", done.stderr

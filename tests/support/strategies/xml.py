"""Generated XML documents as text, mostly well-formed, with many difficult cases.

Prefixes are declared, redeclared and undeclared in nested elements; texts consist of references, CDATA, line ends of
all kinds and text that only looks like markup.
"""

from __future__ import annotations

from hypothesis import strategies as st

URIS = ("u", "v", "http://example.org/a/b", "urn:x:y-1")
ODD_URIS = ("u&amp;v", "http://example.org/\u00e9", " u ", "a}b", "", "http://www.w3.org/XML/1998/namespace")
LOCALS = ("a", "b", "c", "item", "long-name.with_9", "é", "名前", "text", "xmlns1")
PLAIN = ("x", "y", "83.50", " ", "\n  ", "é", "日本", "\U0001f600", "twelve bytes", "eight by")
TEXTS = (
    *PLAIN,
    *("\r\n", "\r", "\t", ">", "]]", "'", '"', "--", "?>", "=", "/", "{", "}"),
    *(
        "&amp;",
        "&lt;",
        "&gt;",
        "&apos;",
        "&quot;",
        "&#65;",
        "&#x1F600;",
        "&#13;",
        "&#10;",
        "&#x20AC;",
        "&#0000233;",
    ),
    *(
        "<![CDATA[]]>",
        "<![CDATA[<&>]]>",
        "<![CDATA[a\r\nb\rc]]]]>",
        "<![CDATA[ ]]>",
        "<![CDATA[<!DOCTYPE x>]]>",
    ),
    *("<!---->", "<!-- <a> & -->", "<?p?>", "<?p a?b > <x/> ?>", "<?xml-p x?>"),
)
VALUES = (
    *PLAIN,
    *(
        "\r\n",
        "\r",
        "\t",
        ">",
        "]]>",
        "=",
        "&amp;",
        "&lt;",
        "&#10;",
        "&#13;",
        "&#x9;",
        "&apos;",
        "&quot;",
        "&#233;",
    ),
)
BAD = (
    "&",
    "&foo;",
    "&#0;",
    "&#xD800;",
    "&#x110000;",
    "<",
    "]]>",
    "\x00",
    "\x1f",
    "\ufffe",
    "&#;",
    "&#x;",
    "&amp",
)
OUTSIDE = ("", "", " ", "\n", "\r\n", "<!-- c -->", "<?p q?>", "<!-- <!DOCTYPE a> -->")
DECLARATIONS = ("", "", '<?xml version="1.0"?>', "<?xml version='1.0' encoding='UTF-8' standalone='yes' ?>")

blanks = st.sampled_from(["", "", "", " ", "\n", "\r\n\t"])
gaps = st.sampled_from([" ", " ", "\n", "\t ", "\r\n"])


def joined(parts: tuple[str, ...], most: int = 3) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(parts), max_size=most).map("".join)


@st.composite
def quoted(draw: st.DrawFn, value: str) -> str:
    quote = draw(st.sampled_from("\"'"))
    other = "'" if quote == '"' else '"'
    return quote + value.replace(quote, other) + quote


@st.composite
def declarations(draw: st.DrawFn) -> dict[str, str]:
    """New prefixes of an element; the empty one is the default namespace."""
    uris = st.sampled_from(URIS * 4 + ODD_URIS)
    return (
        draw(st.dictionaries(st.sampled_from(["", "p", "q", "long"]), uris, max_size=2)) if draw(few) else {}
    )


few = st.sampled_from([False, False, True])


@st.composite
def elements(draw: st.DrawFn, prefixes: frozenset[str], depth: int) -> str:
    declared = draw(declarations())
    known = prefixes | {prefix for prefix in declared if prefix}
    named = st.sampled_from(["", *sorted(known)])
    local = st.sampled_from(LOCALS)
    name = _qualified(draw(named), draw(local))
    attributes = draw(st.dictionaries(st.tuples(named | st.just("xml"), local), joined(VALUES), max_size=2))
    written = {f"xmlns:{prefix}" if prefix else "xmlns": uri for prefix, uri in declared.items()}
    written |= {_qualified(*of): value for of, value in attributes.items()}
    tag = "<" + name
    for each in draw(st.permutations(sorted(written))):
        tag += draw(gaps) + each + draw(blanks) + "=" + draw(blanks) + draw(quoted(written[each]))
    tag += draw(blanks)
    if draw(few):
        return tag + "/>"
    inner = [draw(joined(TEXTS))]
    for _ in range(draw(st.integers(0, 3)) if depth > 0 else 0):
        inner += [draw(elements(known, depth - 1)), draw(joined(TEXTS))]
    return f"{tag}>{''.join(inner)}</{name}{draw(blanks)}>"


def _qualified(prefix: str, local: str) -> str:
    return f"{prefix}:{local}" if prefix else local


@st.composite
def documents(draw: st.DrawFn) -> str:
    before, after = draw(joined(OUTSIDE, 2)), draw(joined(OUTSIDE, 2))
    return draw(st.sampled_from(DECLARATIONS)) + before + draw(elements(frozenset(), 2)) + after


INTERESTING = b"<>/!?-[]=\"'&;#x:{} \r\n\tapz09\x00\x80\xc3\xa9\xef\xbb\xbf\xff"
TOKENS = (
    *(
        b"<!--",
        b"-->",
        b"<![CDATA[",
        b"]]>",
        b"<?",
        b"?>",
        b"</",
        b"/>",
        b"&lt;",
        b"&#6",
        b"xmlns",
        b" xmlns:p='u'",
    ),
    *(b"<a>", b"</a>", b"<a b='c'/>", b"<!DOCTYPE a>", b"<?xml version='1.0'?>", b"xml:", b"p:", b" a='1'"),
)


@st.composite
def broken(draw: st.DrawFn) -> bytes:
    """A document with bytes removed, inserted or doubled, or with a character that XML does not allow."""
    body = bytearray(draw(documents()).encode())
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(body)))
        end = min(len(body), start + draw(st.integers(0, 4)))
        few_bytes = st.lists(st.sampled_from(INTERESTING), max_size=3).map(bytes)
        bad = st.sampled_from(BAD).map(str.encode)
        body[start:end] = draw(
            st.just(bytes(body[start:end]) * 2) | few_bytes | st.sampled_from(TOKENS) | bad
        )
    return bytes(body)

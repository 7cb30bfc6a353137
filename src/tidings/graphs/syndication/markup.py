"""HTML in feed items, and repair of feeds for a strict XML parser.

Graphs keep HTML as published; it is sanitised before it leaves in a feed or a page. The repairs cover the most frequent
mistakes of real feeds: HTML's named characters (`&nbsp;`) become characters, a stray ampersand is escaped, and blanks
before the XML declaration are dropped. Other XML that is not well-formed is refused with its place.
"""

from __future__ import annotations

import html
import re
from copy import deepcopy
from html.entities import html5

import nh3
from lxml import etree

from tidings.parsers.xml_bytes import convert_to_utf8

XHTML = "{http://www.w3.org/1999/xhtml}"

SCHEMES = frozenset({"http", "https", "mailto"})
"""Schemes that links may have; not `javascript:`, and not `data:`, which may be a page with a script."""

_DECIMAL = re.compile(r"&#([0-9]{8,});?")
MOST_OPEN = 500
"""Maximum nesting of elements in sanitised HTML."""

_TAG_NAME = re.compile(r"<(?P<end>/?)(?P<name>[A-Za-z][A-Za-z0-9]*)")
_NOT_OPEN = frozenset(
    (
        *("area", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"),
        *("p", "tr", "td", "th", "tbody", "thead", "tfoot"),
    )
)
"""Void elements, and elements that end where the next one of their kind begins."""

_TAG = re.compile(r"<[a-zA-Z/!][^<>]*>")


def sanitised(text: str) -> str:
    """Remove scripts, styles, forms, frames, event handlers and links to other schemes from HTML.

    The HTML is cut where nesting exceeds MOST_OPEN: nh3 takes quadratic time in the depth, seconds for 20,000 levels.
    """
    return nh3.clean(_shallow(text), url_schemes=set(SCHEMES), link_rel="noopener noreferrer nofollow")


def _shallow(text: str) -> str:
    """Return the text up to the tag that exceeds MOST_OPEN."""
    opened: dict[str, int] = {}
    depth = 0
    for tag in _TAG_NAME.finditer(text):
        name = tag["name"].lower()
        if name in _NOT_OPEN:
            continue
        count = opened.get(name, 0)
        if tag["end"]:
            change = -1 if count else 0
        elif depth == MOST_OPEN:
            return text[: tag.start()]
        else:
            change = 1
        opened[name], depth = count + change, depth + change
    return text


def plain_text(text: str) -> str:
    """Convert HTML to plain text, for titles. The result is not HTML, so it is not sanitised."""
    return " ".join(unescaped(_TAG.sub("", text)).split())


def unescaped(text: str) -> str:
    """Replace character references. `html.unescape` raises for more than 4,300 digits; eight exceed Unicode already."""
    return html.unescape(_DECIMAL.sub(lambda match: f"&#{match[1].lstrip('0')[:8] or '0'};", text))


def inner_html(element: etree._Element) -> str:
    """Serialise the content of an element as HTML, without the namespace of XHTML.

    Elements without a prefix are HTML, too: `<description>a <b>b</b></description>` means the b of HTML.
    """
    alone = deepcopy(element)  # without the declarations around it
    default = f"{{{element.nsmap.get(None)}}}"
    for inner in alone.iter():
        if isinstance(inner.tag, str):
            inner.tag = inner.tag.removeprefix(XHTML).removeprefix(default)
    alone.tag = "div"  # without those of its own name and attributes
    alone.attrib.clear()
    etree.cleanup_namespaces(alone)
    children = (etree.tostring(child, method="html", encoding="unicode") for child in alone)
    return html.escape(element.text or "", quote=False) + "".join(children)


_DECLARATION = re.compile(rb"<\?xml\s.*?\?>", re.DOTALL)
_CHARSET = re.compile(r";\s*charset\s*=\s*\"?([\w.-]+)", re.IGNORECASE)
_REFERENCE = re.compile(
    rb"<!\[CDATA\[.*?(?:\]\]>|\Z)|<!--.*?(?:-->|\Z)|<\?.*?(?:\?>|\Z)"
    rb"|&(?P<name>[A-Za-z][A-Za-z0-9]*|\#[0-9]+|\#x[0-9A-Fa-f]+)?(?(name);|)|&",
    re.DOTALL,
)
_XML = (b"lt", b"gt", b"amp", b"apos", b"quot")


def feed_text(body: bytes, media_type: str) -> bytes:
    """Convert a feed to UTF-8, without an XML declaration."""
    stripped = body.lstrip(b" \t\r\n")
    charset = _CHARSET.search(media_type)
    if charset and stripped.startswith(b"<") and not stripped.startswith((b"<?xml", b"<\0")):
        stripped = f'<?xml version="1.0" encoding="{charset[1]}"?>'.encode() + stripped
    text = convert_to_utf8(stripped).lstrip()
    declaration = _DECLARATION.match(text)
    return text[declaration.end() :].lstrip() if declaration else text


def with_characters(text: bytes) -> bytes:
    """Replace HTML's named characters by character references."""
    return _REFERENCE.sub(_character, text) if b"&" in text else text


def _character(match: re.Match[bytes]) -> bytes:
    name = match["name"]
    if name is None:
        return b"&amp;" if match[0] == b"&" else match[0]
    if name in _XML or name.startswith(b"#"):
        return match[0]
    characters = html5.get(name.decode() + ";")
    if characters is None:
        return b"&amp;" + name + b";"
    return "".join(f"&#{ord(character)};" for character in characters).encode()

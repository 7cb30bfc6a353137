"""HTML in the items of feeds: kept in graphs as it came, made harmless before it leaves in a feed or a page."""

from __future__ import annotations

import html
import re
from copy import deepcopy

import nh3
from lxml import etree

XHTML = "{http://www.w3.org/1999/xhtml}"

SCHEMES = frozenset({"http", "https", "mailto"})
"""What links may lead to; no `javascript:`, and no `data:`, which may be a page with a script."""

_DECIMAL = re.compile(r"&#([0-9]{8,});?")
MOST_OPEN = 500
"""How many elements may be open at a time in HTML that leaves."""

_TAG_NAME = re.compile(r"<(?P<end>/?)(?P<name>[A-Za-z][A-Za-z0-9]*)")
_NOT_OPEN = frozenset(
    (
        *("area", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"),
        *("p", "tr", "td", "th", "tbody", "thead", "tfoot"),
    )
)
"""Elements that have no content, and those that end where the next one of their kind begins."""

_TAG = re.compile(r"<[a-zA-Z/!][^<>]*>")


def sanitised(text: str) -> str:
    """The same HTML without scripts, styles, forms, frames, handlers of events and links to anything but the web.

    It ends where more elements are open than anybody reads: nh3 takes time with the square of their number, seconds for
    20,000 of them.
    """
    return nh3.clean(_shallow(text), url_schemes=set(SCHEMES), link_rel="noopener noreferrer nofollow")


def _shallow(text: str) -> str:
    """The text up to the tag that would open one element too many."""
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
    """What a reader sees of HTML, for titles: not made harmless, because it is no HTML any more."""
    return " ".join(unescaped(_TAG.sub("", text)).split())


def unescaped(text: str) -> str:
    """Text without references to characters. `html.unescape` raises for decimal ones of more than 4,300 digits; eight
    digits are beyond Unicode already.
    """
    return html.unescape(_DECIMAL.sub(lambda found: f"&#{found[1].lstrip('0')[:8] or '0'};", text))


def inner_html(element: etree._Element) -> str:
    """What stands inside an element, as HTML: elements of XHTML lose their namespace, whatever its prefix was.

    So do those without a prefix: `<description>a <b>b</b></description>` means the b of HTML.
    """
    alone = deepcopy(element)  # without what is declared around it
    default = f"{{{element.nsmap.get(None)}}}"
    for inner in alone.iter():
        if isinstance(inner.tag, str):
            inner.tag = inner.tag.removeprefix(XHTML).removeprefix(default)
    alone.tag = "div"  # nor what its own name and attributes need
    alone.attrib.clear()
    etree.cleanup_namespaces(alone)
    children = (etree.tostring(child, method="html", encoding="unicode") for child in alone)
    return html.escape(element.text or "", quote=False) + "".join(children)

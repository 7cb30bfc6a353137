"""The bytes of a feed made fit for a strict parser: what real feeds get wrong most often, and nothing more.

HTML's names of characters (`&nbsp;`) become the characters, and an ampersand that begins nothing stands for itself.
Blanks before the XML declaration are dropped. Everything else that is not well-formed is refused with its place.
"""

from __future__ import annotations

import re
from html.entities import html5

from tidings.parsers.xml_bytes import as_utf8

_DECLARATION = re.compile(rb"<\?xml\s.*?\?>", re.DOTALL)
_CHARSET = re.compile(r";\s*charset\s*=\s*\"?([\w.-]+)", re.IGNORECASE)
_REFERENCE = re.compile(
    rb"<!\[CDATA\[.*?(?:\]\]>|\Z)|<!--.*?(?:-->|\Z)|<\?.*?(?:\?>|\Z)"
    rb"|&(?P<name>[A-Za-z][A-Za-z0-9]*|\#[0-9]+|\#x[0-9A-Fa-f]+)?(?(name);|)|&",
    re.DOTALL,
)
_XML = (b"lt", b"gt", b"amp", b"apos", b"quot")


def feed_text(body: bytes, media_type: str) -> bytes:
    """The feed in UTF-8, without an XML declaration."""
    stripped = body.lstrip(b" \t\r\n")
    charset = _CHARSET.search(media_type)
    if charset and stripped.startswith(b"<") and not stripped.startswith((b"<?xml", b"<\0")):
        stripped = f'<?xml version="1.0" encoding="{charset[1]}"?>'.encode() + stripped
    text = as_utf8(stripped).lstrip()
    declaration = _DECLARATION.match(text)
    return text[declaration.end() :].lstrip() if declaration else text


def with_characters(text: bytes) -> bytes:
    """The same with characters instead of HTML's names for them."""
    return _REFERENCE.sub(_character, text) if b"&" in text else text


def _character(found: re.Match[bytes]) -> bytes:
    name = found["name"]
    if name is None:
        return b"&amp;" if found[0] == b"&" else found[0]
    if name in _XML or name.startswith(b"#"):
        return found[0]
    known = html5.get(name.decode() + ";")
    return b"&amp;" + name + b";" if known is None else "".join(f"&#{ord(each)};" for each in known).encode()

"""XML-RPC calls, which anyone on the web may send.

Python's own reader takes a call apart. It gets what libxml2 has read and written again, never the bytes that were sent:
no declarations (entities could grow without end), no more bytes and no more levels than a call needs.
"""

from __future__ import annotations

import re
from typing import Any
from xml.parsers.expat import ExpatError
from xmlrpc.client import Binary, Error, Fault, dumps, loads

from tidings.errors import DecodeProblem
from tidings.publications.feeds_bytes import feed_text
from tidings.publications.rdf_limits import Limits
from tidings.publications.rdf_xml import parsed_xml
from tidings.publications.xml_parser import serialised

MEDIA_TYPES = ("text/xml", "application/xml")
"""No others: a page in a browser can send a form or a text anywhere, but not these."""

NOT_XML_RPC, NO_METHOD, WRONG_PARAMETERS, REFUSED, NOT_ALLOWED = -32700, -32601, -32602, 1, 2
"""Numbers of faults; the negative ones are those that XML-RPC servers have agreed on."""

DEPTH = 40
_LIMITS = Limits(depth=DEPTH, namespaces=20)
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def call_in(body: bytes, media_type: str) -> tuple[str, tuple[Any, ...]]:
    """The method and the parameters of a call, or a fault that says what is wrong with it."""
    try:
        root = parsed_xml(feed_text(body, media_type), _LIMITS)
        parameters, method = loads(serialised(root), use_builtin_types=True)
    except DecodeProblem as problem:
        raise Fault(NOT_XML_RPC, str(problem).split("\n")[0]) from problem
    except (
        Error,
        ExpatError,
        ValueError,
        TypeError,
        LookupError,
        AttributeError,
        ArithmeticError,
    ) as problem:
        raise Fault(NOT_XML_RPC, "not a call of XML-RPC") from problem
    if not method:
        raise Fault(NOT_XML_RPC, "no method is named")
    return method, parameters


def answer(value: Any) -> bytes:
    """What a method has returned, as an answer."""
    return dumps((_clean(value),), methodresponse=True, encoding="utf-8").encode()


def fault(problem: Fault) -> bytes:
    """An answer that says what went wrong."""
    return dumps(Fault(problem.faultCode, _text(problem.faultString)), encoding="utf-8").encode()


def _clean(value: Any) -> Any:
    """XML-RPC has no null, no whole numbers above 31 bits, and texts only of what XML can hold."""
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, dict):
        return {_text(str(name)): _clean(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(inner) for inner in value]
    if isinstance(value, bytes):
        return Binary(value)
    if isinstance(value, int) and not -(2**31) <= value < 2**31:
        return float(value)
    return "" if value is None else value


def _text(text: str) -> str:
    return _NOT_IN_XML.sub("\ufffd", text)

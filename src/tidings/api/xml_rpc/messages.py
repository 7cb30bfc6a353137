"""XML-RPC calls, which anyone on the web may send, and their answers."""

from __future__ import annotations

import re
from typing import Any
from xmlrpc.client import Binary, Fault, dumps

from tidings.errors import DecodeProblem
from tidings.parsers.parser_pool import Lane, isolated_for
from tidings.service.xml_rpc_call import read_call

MEDIA_TYPES = ("text/xml", "application/xml")
"""No others: a page in a browser can send a form or a text anywhere, but not these."""

NOT_XML_RPC, NO_METHOD, WRONG_PARAMETERS, REFUSED, NOT_ALLOWED = -32700, -32601, -32602, 1, 2
"""Numbers of faults; the negative ones are those that XML-RPC servers have agreed on."""

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def parse_call(body: bytes, media_type: str, lane: Lane = Lane.CALLERS) -> tuple[str, tuple[Any, ...]]:
    """The method and the parameters of a call, or a fault that says what is wrong with it."""
    try:
        method, parameters = isolated_for(lane, read_call, body, media_type)
    except DecodeProblem as problem:
        raise Fault(NOT_XML_RPC, str(problem).split("\n")[0]) from problem
    if not method:
        raise Fault(NOT_XML_RPC, "no method is named")
    return method, parameters


def render_response(value: Any) -> bytes:
    """What a method has returned, as an answer."""
    return dumps((_clean(value),), methodresponse=True, encoding="utf-8").encode()


def render_fault(problem: Fault) -> bytes:
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

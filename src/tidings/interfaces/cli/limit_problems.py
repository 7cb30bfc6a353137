"""What is wrong with limits in the settings. What a limit is about knows which there are."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from tidings.errors import TidingsError
from tidings.limits import limits_from, limits_in
from tidings.operating.settings import PREFIX

KINDS = {
    "document": "tidings.publications.xml",
    "graph": "tidings.publications.rdf_limits",
    "xpath": "tidings.languages.xpath",
    "gql": "tidings.languages.gql",
    "rules": "tidings.languages.rules",
    "query": "tidings.store.metadata_queries",
    "sparql": "tidings.metadata.sparql",
    "parser": "tidings.publications.parser_pool",
    "api": "tidings.interfaces.http.v1.limits",
}
"""Where the class `Limits` of each is."""


def limit_problems(said: Any, origins: Mapping[str, str]) -> list[TidingsError]:
    """All limits that are none. `TIDINGS_..._LIMITS`, which outweighs the settings, is looked at, too."""
    values = said if isinstance(said, Mapping) else {}
    found: list[TidingsError] = []
    for name, module in KINDS.items():
        value, origin = values.get(name), origins.get(f"limits.{name}", f"limits.{name}")
        try:
            kind = import_module(module).Limits
            limits_from(f"{PREFIX}{name.upper()}_LIMITS", kind)
            if isinstance(value, str):
                limits_in(value, kind, origin)
        except TidingsError as problem:
            found.append(problem)
    return found

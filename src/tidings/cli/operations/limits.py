"""What is wrong with limits in the settings. What a limit is about knows which there are."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from tidings.core.limits import limits_from, limits_in
from tidings.errors import TidingsError
from tidings.operations.settings import VARIABLE_PREFIX

LIMIT_MODULES = {
    "document": "tidings.documents.xml_decoder",
    "graph": "tidings.graphs.rdf.limits",
    "xpath": "tidings.documents.xpath.xpath_parser",
    "gql": "tidings.graphs.gql.gql_parser",
    "rules": "tidings.metadata.rules.rule_parser",
    "query": "tidings.metadata.sql.queries.query_executor",
    "sparql": "tidings.metadata.queries.sparql",
    "parser": "tidings.parsers.parser_pool",
    "api": "tidings.api.limits",
}
"""Where the class `Limits` of each is."""


def find_limit_problems(said: Any, origins: Mapping[str, str]) -> list[TidingsError]:
    """All limits that are none. `TIDINGS_..._LIMITS`, which outweighs the settings, is looked at, too."""
    values = said if isinstance(said, Mapping) else {}
    found: list[TidingsError] = []
    for name, module in LIMIT_MODULES.items():
        value, origin = values.get(name), origins.get(f"limits.{name}", f"limits.{name}")
        try:
            kind = import_module(module).Limits
            limits_from(f"{VARIABLE_PREFIX}{name.upper()}_LIMITS", kind)
            if isinstance(value, str):
                limits_in(value, kind, origin)
        except TidingsError as problem:
            found.append(problem)
    return found

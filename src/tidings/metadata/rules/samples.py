"""Samples of rules over metadata: a guide with examples for people."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from tidings.kinds import Example, LanguageGuide
from tidings.metadata.schema.model import Schema
from tidings.values import Kind

RULES = LanguageGuide(
    "rules",
    "Rules",
    "resources: metadata",
    examples=(
        Example("search CycleProvider c register c", "all resources of a class"),
        Example(
            "search CycleProvider c register c where c.serverInformation.memory > 64",
            "by a property of a referenced resource",
        ),
        Example(
            "search CycleProvider c register c where c.serverHost contains 'uni-passau.de' and c.serverPort = 5874",
            "by several properties",
        ),
    ),
    noun="a rule over metadata",
    begins=r"\s*search\s+[^\W\d][\w:-]*\s+[^\W\d]\w*(?:\s*,|\s+(?:register|where)\b)",
    is_distinctive=True,
)


def generate_metadata_examples(schema: Schema) -> Iterator[Example]:
    """Yield rules for all resources of a class, then for those with a property."""
    for name in schema.classes:
        yield Example(f"search {name} c register c", "all resources of a class")
    conditions = {Kind.NUMBER: "> 64", Kind.STRING: "contains 'a'"}
    for property in chain.from_iterable(schema.properties.values()):
        if property.kind in conditions:
            path = f"c.{property.name}{'?' if property.several else ''}"
            text = f"search {property.of} c register c where {path} {conditions[property.kind]}"
            yield Example(text, "by a property")

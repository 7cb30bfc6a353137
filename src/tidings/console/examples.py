"""Examples of each subscription language that are valid in this home.

If the schema has none of their names, examples are generated from its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import islice

from tidings.errors import InputError, SetupError
from tidings.events.schema.event_schema import EventSchema
from tidings.kinds import Example, LanguageGuide, kinds_of_language
from tidings.language_hints import list_guides
from tidings.metadata.rules.samples import RULES, generate_metadata_examples
from tidings.metadata.schema.model import Schema
from tidings.service.subscriptions import SubscriptionCheck

MOST = 5
"""Examples shown for each language."""

Check = Callable[[str, str], SubscriptionCheck]
"""Compiles a text of a language, or raises."""


def list_languages(check: Check, events: EventSchema, metadata: Schema | None) -> tuple[LanguageGuide, ...]:
    """Return the languages with the examples that are valid now."""
    return tuple(_keep_valid(check, guide, _generate(guide, events, metadata)) for guide in list_guides())


def _generate(guide: LanguageGuide, events: EventSchema, metadata: Schema | None) -> Iterable[Example]:
    if guide is RULES:
        return generate_metadata_examples(metadata) if metadata else ()
    kind, *_ = kinds_of_language(guide.name)
    return kind.generate_examples(guide.name, events)


def _keep_valid(check: Check, guide: LanguageGuide, generated: Iterable[Example]) -> LanguageGuide:
    """Keep the valid examples; if fewer than two are, add generated ones, one for each description."""
    valid = {example.asks: example for example in guide.examples if _is_valid(check, guide.name, example)}
    for example in generated if len(valid) < 2 else ():
        if example.asks not in valid and _is_valid(check, guide.name, example):
            valid[example.asks] = example
    return replace(guide, examples=tuple(islice(valid.values(), MOST)))


def _is_valid(check: Check, language: str, example: Example) -> bool:
    """Return whether a text compiles without a warning: an example that cannot match is useless."""
    try:
        return not check(language, example.text).warnings
    except (InputError, SetupError):
        return False

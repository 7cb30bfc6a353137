"""Hints at the subscription language of a text that was written in one language and named another, or none."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache, wraps
from importlib import import_module
from typing import Concatenate, ParamSpec, TypeVar

from tidings import kinds
from tidings.core.suggest import closest
from tidings.errors import SyntaxProblem
from tidings.kinds import LanguageGuide

P = ParamSpec("P")
T = TypeVar("T")

OTHER_GUIDES = ("tidings.metadata.rules.samples:RULES",)
"""Addresses of guides to languages that are not about publications of a kind."""

LOOKED_AT = 1_000
"""Characters of a text: one that was refused for its length may have any number."""


def list_guides() -> tuple[LanguageGuide, ...]:
    """Return the guides to all languages, in the order of forms."""
    return (
        *(kinds.kinds_of_language(name)[0].guide(name) for name in kinds.LANGUAGES),
        *map(_load_guide, OTHER_GUIDES),
    )


@cache
def _load_guide(address: str) -> LanguageGuide:
    module, _, attribute = address.partition(":")
    guide: LanguageGuide = getattr(import_module(module), attribute)
    return guide


def find_guide(language: str) -> LanguageGuide | None:
    """Return the guide to a language, if it is known."""
    return next((guide for guide in list_guides() if guide.name == language), None)


def hint_to_language(text: str, language: str) -> str | None:
    """Hint at the language that a text looks like; None for a text that begins as its own language does.

    `price = 5` could be predicates or an XPath: where either was named, it is taken to be that. `BASE <urn:x>` could be
    a comparison, and is none.
    """
    alike = [guide for guide in list_guides() if _begins_alike(text, guide)]
    alike = next(([guide] for guide in alike if guide.is_distinctive), alike)
    if not alike or language in [guide.name for guide in alike]:
        return None
    return f"{alike[0].noun}? the language is {alike[0].name}: --language {alike[0].name}"


def _begins_alike(text: str, guide: LanguageGuide) -> bool:
    pattern = guide.begins
    return pattern is not None and re.compile(pattern, re.IGNORECASE).match(text, 0, LOOKED_AT) is not None


def hints_elsewhere(
    language: str,
) -> Callable[[Callable[Concatenate[str, P], T]], Callable[Concatenate[str, P], T]]:
    """Makes the problems of a language's parser hint at another language if the text looks like one of that."""

    def decorated(parse: Callable[Concatenate[str, P], T]) -> Callable[Concatenate[str, P], T]:
        @wraps(parse)
        def hinting(text: str, /, *args: P.args, **named: P.kwargs) -> T:
            try:
                return parse(text, *args, **named)
            except SyntaxProblem as problem:
                hint = hint_to_language(text, language)
                if hint is None:
                    raise
                hinted = problem.with_hint(hint)
            raise hinted  # out here, as it would keep the one before

        return hinting

    return decorated


def hint_to_name(language: str, names: Iterable[str]) -> str | None:
    """Hint at the language that an unknown name may mean."""
    name = language.lower()
    synonyms = {synonym: hint for guide in list_guides() for synonym, hint in guide.synonyms.items()}
    if name in synonyms:
        return synonyms[name]
    suggestion = closest(name, names, 0.8)  # SQL is not GQL mistyped
    return f"did you mean '{suggestion}'?" if suggestion else None

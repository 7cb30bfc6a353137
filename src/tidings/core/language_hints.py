"""What to say to somebody who has written a text in one language and named another, or none."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from tidings.core.suggest import closest
from tidings.errors import Place, SyntaxProblem

P = ParamSpec("P")
T = TypeVar("T")

_NAME = r"(?:\"[^\"]+\"|[^\W\d][\w.:-]*)"
_WORDS = r"(?:is\s+an?|contains|starts\s+with|ends\s+with|in|between)\b"
_BEGINS = {
    "gql": (
        "GQL or SPARQL",
        r"(?:\s|#[^\n]*\n)*(?:prefix\s+[\w.-]*:|base\s*<[^<>\s]*>|(?:ask|construct|describe)\s*(?:where\s*)?[{?<$]"
        r"|select\s+(?:distinct\s+|reduced\s+)?(?:[?$(]|\*\s*(?:where\b|\{)))",
    ),
    "predicates": (
        "predicates",
        rf"[\s(]*(?:not\b[\s(]*)*(?:{_NAME}(?:\s*[=<>!]|\s+{_WORDS})|exists\s+{_NAME}\s*(?:$|and\b|or\b))",
    ),
    "rules": (
        "a rule over metadata",
        r"\s*search\s+[^\W\d][\w:-]*\s+[^\W\d]\w*(?:\s*,|\s+(?:register|where)\b)",
    ),
    "xpath": (  # `tags[0]` is a list of another language
        "an XPath",
        rf"[\s(]*(?:not\s*\([\s(]*)*(?:/|\.|@|declare\s+namespace\b|{_NAME}\s*(?:[/=<>!]|\[(?!\s*(?:-?\d+|\*)?\s*\])))",
    ),
}
LOOKED_AT = 1_000
"""Characters of a text: one that was refused for its length may have any number."""

_LOOKS = {name: (what, re.compile(begins, re.IGNORECASE)) for name, (what, begins) in _BEGINS.items()}
"""How texts of each language begin. `SELECT * FROM` is none of them: it is SQL."""


def hint_to_language(text: str, language: str) -> str | None:
    """A hint at the language that a text looks like; none for a text that begins as its own language does.

    `price = 5` could be predicates or an XPath: where either was named, it is taken to be that. `BASE <urn:x>` could be
    a comparison, and is none.
    """
    looks = [name for name, (_, begins) in _LOOKS.items() if begins.match(text, 0, LOOKED_AT)]
    looks = next(([name] for name in ("gql", "rules") if name in looks), looks)
    if not looks or language in looks:
        return None
    return f"{_LOOKS[looks[0]][0]}? the language is {looks[0]}: --language {looks[0]}"


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


def hint_to_name(language: str, known: Iterable[str]) -> str | None:
    """A hint for somebody who names a language that there is not."""
    if language.lower() in ("sparql", "rdf", "graph", "graphs"):
        return "graph patterns of SPARQL are accepted: name the language gql"
    meant = closest(language.lower(), known, 0.8)  # SQL is not GQL mistyped
    return f"did you mean '{meant}'?" if meant else None


# What every language asks of a text before it reads it.


def refuse_unreadable(text: str, longest: int) -> None:
    """Refuse a text that is too long, or that has half a character in it: what no bytes stand for cannot be kept."""
    if len(text) > longest:
        received, accepted = f"{len(text):,} characters", f"at most {longest:,}"
        raise SyntaxProblem("the text is too long", received=received, accepted=accepted)
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError as problem:
        raise _half_character(text, problem.start) from None


def _half_character(text: str, start: int) -> SyntaxProblem:
    shown = text.encode(errors="replace").decode()
    place, received = Place.at(shown, start), f"U+{ord(text[start]):04X}"
    return SyntaxProblem("half a character", place=place, received=received, accepted="Unicode text")

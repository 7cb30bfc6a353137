"""event-ruler of AWS as an oracle: its patterns, written as predicates, match the same events."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.conformance.suites import or_skip
from tests.support.packages import find_tool, java_jars
from tidings.events.json_decoder import decode
from tidings.events.predicate_compiler import parse_and_check
from tidings.events.reference_matcher import matches

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("conformance")]

ARTIFACT = "software.amazon.event.ruler:event-ruler:2.1.0"
PAIRS = 20_000

STRINGS = ("oak", "oak table", "table", "Oak", "", "é", "it's", "日本", "5", "true", "a\\b")
NUMBERS = (0, 1, -1, 5, 5.5, -2.25, 1_000_000, 0.000001, 4_999_999_999, 17)
FIELDS = ("a", "b", "c.d", "c.e", "long name")
"""Dots separate levels. event-ruler has no numbers beyond five billion and six digits. It stores strings with quotes:
an empty one ends with a quote there, so no string here contains one.
"""


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _named(field: str) -> str:
    return ".".join(part if part.isidentifier() else f'"{part}"' for part in field.split("."))


def _condition(random: Random, field: str) -> tuple[list[Any], str]:
    """Return a condition on a field in both languages."""
    name = _named(field)
    match random.randrange(7):
        case 0:
            accepted = random.sample(STRINGS, random.randint(1, 3))
            return accepted, f"{name} in ({', '.join(map(_quoted, accepted))})"
        case 1:
            text = random.choice([each for each in STRINGS if each])
            return [{"prefix": text}], f"{name} starts with {_quoted(text)}"
        case 2:
            text = random.choice([each for each in STRINGS if each])
            return [{"suffix": text}], f"{name} ends with {_quoted(text)}"
        case 3:
            sign, number = random.choice(("=", "<", "<=", ">", ">=")), random.choice(NUMBERS)
            return [{"numeric": [sign, number]}], f"{name} {sign} {number:f}"
        case 4:
            low, high = sorted(random.sample(NUMBERS, 2))
            return [{"numeric": [">=", low, "<=", high]}], f"{name} between {low:f} and {high:f}"
        case 5:
            return [{"exists": True}], f"exists {name}"
        case _:
            accepted = random.sample(STRINGS, random.randint(1, 2))
            listed = ", ".join(map(_quoted, accepted))
            return [{"anything-but": accepted}], f"(exists {name} and not {name} in ({listed}))"


def _put(content: dict[str, Any], field: str, value: Any) -> None:
    *outer, last = field.split(".")
    for part in outer:
        content = content.setdefault(part, {})
    content[last] = value


def _pair(random: Random) -> tuple[dict[str, Any], str, dict[str, Any]]:
    """Return a rule, the equivalent predicates, and an event."""
    rule: dict[str, Any] = {}
    texts, event = [], {}
    for field in random.sample(FIELDS, random.randint(1, 3)):
        condition, text = _condition(random, field)
        _put(rule, field, condition)
        texts.append(text)
    for field in random.sample(FIELDS, random.randint(1, 5)):
        _put(event, field, random.choice((*STRINGS, *NUMBERS, True, False)))
    return rule, " and ".join(texts), event


@or_skip
def _answers(pairs: list[tuple[dict[str, Any], str, dict[str, Any]]]) -> list[bool]:
    lines = "".join(f"{json.dumps(rule)}\n{json.dumps(event)}\n" for rule, _, event in pairs)
    source = Path(__file__).with_name("Matches.java")
    command = [find_tool("java"), "-XX:+UseSerialGC", "-cp", f"{java_jars(ARTIFACT)}/*", str(source)]
    process = subprocess.run(command, input=lines, capture_output=True, text=True, check=True)
    return [line == "true" for line in process.stdout.split()]


def test_predicates_agree_with_event_ruler() -> None:
    random = Random(7)
    pairs = [_pair(random) for _ in range(PAIRS)]
    theirs = _answers(pairs)
    ours = [matches(parse_and_check(text), decode(json.dumps(event).encode())) for _, text, event in pairs]
    assert len(theirs) == PAIRS and 0.02 < sum(theirs) / PAIRS < 0.98
    assert not [
        (*pair, one, other) for pair, one, other in zip(pairs, ours, theirs, strict=True) if one != other
    ][:5]

"""Documents and subscriptions for the engines, and their matches by the specification."""

from __future__ import annotations

from random import Random

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.support.strategies.xpaths import documents, expressions
from tidings.documents.reference_matcher import matches
from tidings.documents.xml_decoder import decode
from tidings.documents.xpath import xpath_parser
from tidings.documents.xpath_compiler import twigs_of
from tidings.errors import SubscriptionError
from tidings.matching.compiler.language import Context


def draw_examples(strategy, count, number):
    """Draw `count` examples of a strategy, for tests that are too slow for one example at a time."""
    examples = []

    @seed(number)
    @settings(
        max_examples=count, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
    )
    @given(strategy)
    def gather(example):
        examples.append(example)

    gather()
    return examples


def draw_corpus(documents_count, texts_count, number):
    """Draw bodies by name, and texts by id that the compiler accepts."""
    bodies = dict.fromkeys(draw_examples(documents(), documents_count, number))
    texts = dict.fromkeys(
        xpath_parser.show(each) for each in draw_examples(expressions(), texts_count, number)
    )
    named = {f"d{n}": body.encode() for n, body in enumerate(bodies)}
    return named, {f"s{n}": text for n, text in enumerate(filter(can_compile, texts))}


def can_compile(text):
    try:
        twigs_of(xpath_parser.parse(text), Context(text))
    except SubscriptionError:
        return False
    return True


FIELDS = ("price", "open", "high", "volume")


def draw_quotes(documents_count, texts_count, number):
    """Draw quotes, and conjunctions of ranges for buckets, some with an equality."""
    dice = Random(number)
    bodies, texts = {}, {}
    for n in range(documents_count):
        values = "".join(f"<{field}>{dice.randrange(20)}</{field}>" for field in FIELDS)
        bodies[f"q{n}"] = f"<stock><symbol>S{dice.randrange(3)}</symbol>{values}</stock>".encode()
    for n in range(texts_count):
        predicates = [f"/stock/symbol = 'S{dice.randrange(3)}'"] if dice.random() < 0.7 else []
        for field in dice.sample(FIELDS, dice.randrange(1, len(FIELDS) + 1)):
            predicates.append(f"/stock/{field} {dice.choice(('<', '<=', '>', '>='))} {dice.randrange(20)}")
        texts[f"r{n}"] = " and ".join(predicates)
    return bodies, texts


def expected_pairs(bodies, texts):
    """Return the pairs of the specification."""
    trees = [(id, xpath_parser.parse(text)) for id, text in texts.items()]
    decoded = [(name, decode(body)) for name, body in bodies.items()]
    return {(name, id) for name, document in decoded for id, tree in trees if matches(tree, document)}

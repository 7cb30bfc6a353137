"""Documents and subscriptions for the engines, and what the definition says they match."""

from __future__ import annotations

from random import Random

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.support.strategies.xpaths import documents, expressions
from tidings.documents.explanation import matches
from tidings.documents.xml_decoder import decode
from tidings.documents.xpath import xpath_parser
from tidings.documents.xpath_compiler import twigs_of
from tidings.errors import SubscriptionError
from tidings.matching.compiler.language import Context


def gathered(strategy, count, number):
    """So many examples of a strategy: for what is too slow to be asked about one at a time."""
    found = []

    @seed(number)
    @settings(
        max_examples=count, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
    )
    @given(strategy)
    def gather(example):
        found.append(example)

    gather()
    return found


def generated(documents_count, texts_count, number):
    """Bodies by name, and texts by id, all that the compiler takes."""
    bodies = dict.fromkeys(gathered(documents(), documents_count, number))
    texts = dict.fromkeys(xpath_parser.show(each) for each in gathered(expressions(), texts_count, number))
    named = {f"d{n}": body.encode() for n, body in enumerate(bodies)}
    return named, {f"s{n}": text for n, text in enumerate(filter(is_taken, texts))}


def is_taken(text):
    try:
        twigs_of(xpath_parser.parse(text), Context(text))
    except SubscriptionError:
        return False
    return True


FIELDS = ("price", "open", "high", "volume")


def stocks(documents_count, texts_count, number):
    """Quotes and conjunctions of ranges, some with an equality: what buckets are for."""
    dice = Random(number)
    bodies, texts = {}, {}
    for n in range(documents_count):
        values = "".join(f"<{field}>{dice.randrange(20)}</{field}>" for field in FIELDS)
        bodies[f"q{n}"] = f"<stock><symbol>S{dice.randrange(3)}</symbol>{values}</stock>".encode()
    for n in range(texts_count):
        asked = [f"/stock/symbol = 'S{dice.randrange(3)}'"] if dice.random() < 0.7 else []
        for field in dice.sample(FIELDS, dice.randrange(1, len(FIELDS) + 1)):
            asked.append(f"/stock/{field} {dice.choice(('<', '<=', '>', '>='))} {dice.randrange(20)}")
        texts[f"r{n}"] = " and ".join(asked)
    return bodies, texts


def expected(bodies, texts):
    """The pairs that the definition gives."""
    asked = [(id, xpath_parser.parse(text)) for id, text in texts.items()]
    read = [(name, decode(body)) for name, body in bodies.items()]
    return {(name, id) for name, document in read for id, tree in asked if matches(tree, document)}

"""Targets: languages of subscriptions, rules, queries, models and schemas."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from fuzz import seeds
from fuzz.target import Run, Target, encoded, of_text, text_of
from tidings.documents.xpath import xpath_parser
from tidings.errors import SubscriptionError
from tidings.events import predicate_parser as predicates
from tidings.events.predicate_tree import show_tree
from tidings.events.schema.event_schema import EventSchema, SchemaParts
from tidings.events.schema.extension import extend
from tidings.events.schema.files import dump, load, load_text, parts_of_text
from tidings.graphs.patterns import pattern_parser
from tidings.graphs.rdf import rdf_decoder
from tidings.kinds import LANGUAGES
from tidings.matching.compiler.compilation import compile_many
from tidings.matching.compiler.language import Context
from tidings.metadata.queries.sparql import ResourceGraph
from tidings.metadata.rules import rule_parser
from tidings.metadata.rules.rule_files import RuleFile
from tidings.metadata.rules.validation import check_rule as check
from tidings.metadata.schema.model import Schema
from tidings.metadata.schema.schema_parser import parse_schema
from tidings.model import Subscription
from tidings.objects.model.notation import normalize_type, parse_cardinality
from tidings.objects.readers.model_loader import read_model
from tidings.objects.readers.plantuml_reader import read_plantuml
from tidings.objects.readers.xmi_reader import read_xmi
from tidings.reference_data.declarations import load_text as load_references
from tidings.reference_data.declarations import parse_linear_path
from tidings.service.subscription_lines import parse_subscription_line

SHOWN: dict[str, Callable[[str], str]] = {
    "predicates": lambda text: show_tree(predicates.parse(text)),
    "xpath": lambda text: xpath_parser.show(xpath_parser.parse(text)),
    "gql": lambda text: pattern_parser.show(pattern_parser.parse(text)),
}

SPARQL = encoded(
    (
        "PREFIX dc: <http://purl.org/dc/elements/1.1/> SELECT ?x WHERE { ?x dc:title ?t ; dc:date ?d . FILTER(?d >= 2004 && ?t != 'x'@en) }",
        "ASK { ?x a <urn:t> . { ?x <urn:p> 5.0e-3 } UNION { ?x <urn:q> ?y } OPTIONAL { ?y <urn:r> ?z } }",
        "BASE <http://example.org/x/> PREFIX : <#> CONSTRUCT { ?s :p ?o } WHERE { ?s :p ?o , 'a' }",
    )
)


@cache
def _events() -> EventSchema:
    return load(seeds.EXAMPLES / "furniture.yaml")


@cache
def metadata_schema() -> Schema:
    return parse_schema(
        rdf_decoder.decode((seeds.EXAMPLES / "metadata" / "schema.ttl").read_bytes(), "text/turtle")
    )


def subscribe(language: str) -> Run:
    """Compile a subscription, alone and in bulk, with and without a schema: both must accept or reject it. A formatted
    text must parse as the same text.
    """

    def run(data: bytes) -> None:
        text = text_of(data)
        for schema in (None, _events()) if language == "predicates" else (None,):
            rejected = _refusal(language, text, schema)
            bulk = compile_many([Subscription("s", "ana", language, text)], schema)
            assert bool(bulk.rejects) == rejected, "compiling alone and in bulk disagree"
        shown = SHOWN[language](text)
        assert SHOWN[language](shown) == shown, "a formatted text parses as another text"

    return run


def _refusal(language: str, text: str, schema: EventSchema | None) -> bool:
    try:
        LANGUAGES[language].compile(Context(text, schema))
    except SubscriptionError:
        return True
    return False


def check_rule(data: bytes) -> None:
    text = text_of(data)
    rule = rule_parser.parse_rule(text)
    assert rule_parser.format_rule(
        rule_parser.parse_rule(rule_parser.format_rule(rule))
    ) == rule_parser.format_rule(rule)
    check(rule, metadata_schema(), {}, text)


def check_query(data: bytes) -> None:
    query = rule_parser.parse_query(text_of(data))
    assert rule_parser.format_rule(
        rule_parser.parse_query(rule_parser.format_rule(query))
    ) == rule_parser.format_rule(query)


def check_rule_file(data: bytes) -> None:
    RuleFile(text_of(data)).check(metadata_schema())


def load_schema(data: bytes) -> None:
    """Load a schema, compare it with its dump, and extend another schema by it."""
    text = text_of(data)
    parts = parts_of_text(text)
    assert _meaning(parts_of_text(dump(parts))) == _meaning(parts), "a dumped schema parses as another schema"
    extend(_events(), parts)
    load_text(text)


def _meaning(parts: SchemaParts) -> object:
    """Return the content of a schema, independent of the order of its concepts."""
    domains = {
        name: (
            each.kind,
            {value: frozenset(above) for value, above in each.below.items()},
            each.minimum,
            each.maximum,
        )
        for name, each in parts.domains.items()
    }
    return domains, parts.attributes, parts.event_types


def in_file(suffix: str, read: Callable[[str], object], path: Path) -> Run:
    file = path / f"input{suffix}"

    def run(data: bytes) -> None:
        file.write_bytes(data)
        read(str(file))

    return run


def ask_sparql(data: bytes) -> None:
    _graph().ask(text_of(data))


@cache
def _graph() -> ResourceGraph:
    return ResourceGraph((), metadata_schema())


def _targets() -> Iterator[Target]:
    subscriptions = {
        "predicates": seeds.cases("support/language_pairs/predicates.txt"),
        "xpath": seeds.cases("support/language_pairs/xpath.txt"),
        "gql": (*seeds.cases("support/language_pairs/gql.txt"), *SPARQL),
    }
    for language in LANGUAGES:
        yield Target(language, subscribe(language), subscriptions.get(language, ()))
    yield Target(
        "rules",
        check_rule,
        (*seeds.cases("support/language_pairs/rules.txt"), *seeds.cases("metadata/rules/checking.txt")),
    )
    yield Target("rule-queries", check_query, seeds.cases("support/language_pairs/queries.txt"))
    yield Target("rule-file", check_rule_file, seeds.files("metadata/rules.txt"))
    yield Target("sparql", ask_sparql, SPARQL)
    yield Target(
        "subscription-line",
        parse_subscription_line,
        tuple(seeds.files("subscriptions.jsonl")[0].splitlines()),
    )
    yield Target(
        "reference-path",
        of_text(parse_linear_path),
        encoded(("/stock/symbol", "//stock/@id", "/p:a/*//b/text()")),
    )
    yield Target("reference-declarations", of_text(load_references), seeds.files("references.yaml"))
    yield Target(
        "event-schema", load_schema, (*seeds.files("furniture.yaml"), *seeds.files("curiosities.yaml"))
    )
    plantuml = (*seeds.cases("objects/readers/plantuml.txt"), *seeds.files("university/*.puml"))
    yield Target("plantuml", of_text(read_plantuml), plantuml)
    yield Target("xmi", read_xmi, (*seeds.files("university/*.xmi"), *seeds.files("*.uml")))
    yield Target("model-file", _model_file(), (*plantuml[:20], *seeds.files("university/*.xmi")))
    yield Target("cardinality", of_text(parse_cardinality), encoded(("1", "0..*", "1..n", "*", "2..5")))
    yield Target(
        "attribute-type", of_text(normalize_type), encoded(("String", "List<int>", "varchar(20)", "datetime"))
    )


def _model_file() -> Run:
    import tempfile  # noqa: PLC0415

    return in_file(".uml", read_model, Path(tempfile.mkdtemp(prefix="tidings-fuzz-")))


TARGETS = tuple(_targets())

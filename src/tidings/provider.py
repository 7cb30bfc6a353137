"""A provider: metadata documents are registered with it, and rules say who wants to know of which resources.

    provider = Provider(store)
    provider.load_schema(body, "text/turtle")
    provider.add_rules({"large": "search ServerInformation s register s where s.memory > 64"}, "ana")
    provider.register("http://example.org/doc.rdf", body, "application/rdf+xml").outcome.entered

Every call is one transaction: what it returns is durable.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tidings.errors import InputError, SetupError
from tidings.languages.rules import parse
from tidings.languages.rules_tree import Rule
from tidings.metadata import checking
from tidings.metadata.atomic import Atomic
from tidings.metadata.decomposing import decompose
from tidings.metadata.documents import Document, Reader, check_uri
from tidings.metadata.resources import Resource
from tidings.metadata.schema import Schema
from tidings.metadata.schema_reading import read_schema
from tidings.metadata.triggers import Triggers
from tidings.publications import rdf
from tidings.publications.rdf_parts import n_triples
from tidings.store import Store
from tidings.store.metadata import Registered, SchemaFile, StoredRule
from tidings.store.rule_base import NamedRule
from tidings.store.rule_filter import Pair


@dataclass(frozen=True, slots=True)
class Source:
    """A document to be registered: its URI, and what it says."""

    uri: str
    body: bytes
    media_type: str


class Provider:
    """The metadata of a store. Several processes may be providers over the same one."""

    def __init__(self, store: Store) -> None:
        self._metadata = store.metadata
        self._read: _Read | None = None

    @property
    def schema(self) -> Schema:
        return self._now().schema

    def load_schema(self, body: bytes, media_type: str, base: str | None = None) -> Schema:
        """Keep a schema. One that takes away what the schema before had is refused: something may depend on it."""
        schema = read_schema(rdf.decode(body, media_type, base))
        written = _kept(body, media_type, base)
        self._metadata.set_schema(written, lambda before: _refuse_losses(before, schema))
        return schema

    def register(self, uri: str, body: bytes, media_type: str) -> Registered:
        """Register a document, or a new version of it."""
        return self.register_many([Source(uri, body, media_type)])

    def register_many(self, sources: Iterable[Source]) -> Registered:
        """Register documents in one go: the filter runs once. If one is refused, none of them is kept."""
        now = self._now()
        documents = [now.reader.read(each.body, each.media_type, each.uri) for each in sources]
        return self._metadata.register(now.schema, documents, now.triggers)

    def remove(self, uri: str) -> Registered:
        """Remove a document with all its resources."""
        check_uri(uri)
        now = self._now()
        return self._metadata.register(now.schema, [Document(uri, ())], now.triggers)

    def add_rules(self, texts: Mapping[str, str], owner: str) -> frozenset[Pair]:
        """Keep rules by their names, all or none; what they have as results now is entered."""
        now = self._now()
        made = _taken_apart(now.schema, self._with_searched(texts, now.schema))
        rules = [NamedRule(name, owner, text, made[name]) for name, text in texts.items()]
        return self._metadata.add_rules(now.schema, rules).entered

    def remove_rules(self, names: Sequence[str]) -> tuple[str, ...]:
        """Forget rules, and say which of them there were. One that another rule searches stays."""
        for rule in self.rules():
            if rule.name in names or not any(name in rule.text for name in names):
                continue
            if needed := {each.extension for each in parse(rule.text).searched}.intersection(names):
                what = f"the rule '{min(needed)}' is searched by another"
                raise InputError(what, received=rule.name, hint="remove that one, too")
        return self._metadata.remove_rules(names).rules

    def rules(self) -> tuple[StoredRule, ...]:
        return self._metadata.rules()

    def results(self, name: str) -> tuple[Resource, ...]:
        """The resources that a rule registers now."""
        if not self._metadata.texts([name]):
            raise InputError("there is no such rule", received=name, hint="tidings provider rules")
        return self._metadata.results(name)

    def documents(self) -> tuple[tuple[str, int], ...]:
        """The URIs of all documents, with how many resources each has."""
        return self._metadata.documents()

    def _with_searched(self, texts: Mapping[str, str], schema: Schema) -> dict[str, tuple[str, Rule]]:
        """New rules and all that they search, however far, with their trees. Of the others none is read."""
        found, waiting = dict[str, tuple[str, Rule]](), dict(texts)
        while waiting:
            found |= {name: (text, parse(text)) for name, text in waiting.items()}
            searched = {each.extension for name in waiting for each in found[name][1].searched}
            waiting = self._metadata.texts(searched - found.keys() - schema.classes.keys())
        return found

    def _now(self) -> _Read:
        """What follows from the schema, read again when another was loaded."""
        file = self._metadata.schema()
        if file is None:
            hint = "tidings provider schema FILE"
            raise SetupError("there is no schema for metadata yet", hint=hint)
        if self._read is None or self._read.version != file.version:
            schema = _schema_of(file)
            self._read = _Read(file.version, schema, Reader(schema), Triggers(schema))
        return self._read


@dataclass(frozen=True, slots=True)
class _Read:
    """What follows from a version of the schema."""

    version: int
    schema: Schema
    reader: Reader
    triggers: Triggers


def _schema_of(file: SchemaFile) -> Schema:
    return read_schema(rdf.decode(file.body, file.media_type))


def _kept(body: bytes, media_type: str, base: str | None) -> SchemaFile:
    """A schema as it is kept: with a base it would need one whenever it is read, so edges are kept then."""
    if base is None:
        return SchemaFile(media_type, body)
    return SchemaFile("application/n-triples", n_triples(rdf.decode(body, media_type, base)))


def _refuse_losses(file: SchemaFile | None, schema: Schema) -> None:
    """A class that got another parent would have instances that its rules have never been asked about."""
    if file is None:
        return
    before = _schema_of(file)
    lost = [name for name, cls in before.classes.items() if schema.classes.get(name) != cls]
    lost += [name for name, own in before.properties.items() if schema.properties.get(name) != own]
    if lost:
        what, accepted = (
            "the schema takes away or changes what there was",
            "the same classes and properties, and more",
        )
        raise InputError(what, received=", ".join(lost), accepted=accepted)


def _taken_apart(schema: Schema, rules: Mapping[str, tuple[str, Rule]]) -> dict[str, tuple[Atomic, ...]]:
    """The atomic rules of rules, which may search each other."""
    types: dict[str, str] = {}
    found: dict[str, tuple[Atomic, ...]] = {}
    for name in checking.in_order({name: tree for name, (_, tree) in rules.items()}):
        text, tree = rules[name]
        checking.check_name(name, schema)
        types[name] = checking.check(tree, schema, types, text)
        found[name] = decompose(tree, schema, found)
    return found

"""Asking a store's metadata: in the language of rules, or in SPARQL. Nobody else is asked.

    queries = Queries.at_repository(store)
    queries.ask("search CycleProvider c where c.serverPort = 80 select c.serverHost").rows
    queries.sparql("SELECT ?c { ?c a <http://example.org/servers#CycleProvider> }").body

A repository's store has the results of its own rules, a provider's those of all rules: both can be searched by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Lock

from tidings.errors import InputError, SetupError
from tidings.graphs.rdf import rdf_decoder
from tidings.metadata.queries.answers import QueryAnswer, restore_answer_dates, restore_dates
from tidings.metadata.queries.sparql import JSON, N_TRIPLES, ResourceGraph, SparqlAnswer
from tidings.metadata.resources import Resource
from tidings.metadata.rules.rule_parser import parse_query, parse_rule
from tidings.metadata.rules.tree import Query, Rule
from tidings.metadata.rules.validation import check_query
from tidings.metadata.schema.model import Schema
from tidings.metadata.schema.schema_parser import parse_schema
from tidings.metadata.sql.queries.query_executor import (
    REPOSITORY_MEMBERS_SQL,
    RULE_RESULTS_SQL,
    QueryExecutor,
)
from tidings.store.store import Store

RuleTextLookup = Callable[[str], str | None]
"""The text of a rule by its name."""


class QueryEngine:
    """What may be asked of a store."""

    def __init__(
        self, store: Store, members: str, rule: RuleTextLookup, version: Callable[[], int], hint: str
    ) -> None:
        self._store, self._rule, self._version, self._hint = store, rule, version, hint
        self._queries = QueryExecutor(store.database, members)
        self._read: tuple[int, Schema] | None = None
        self._graph: tuple[tuple[int, int], ResourceGraph] | None = None
        self._making = Lock()

    @classmethod
    def at_repository(cls, store: Store) -> QueryEngine:
        kept = store.repository
        hint = (
            "tidings repository --provider URL --rules FILE brings it; --at-provider asks a provider's home"
        )
        return cls(store, REPOSITORY_MEMBERS_SQL, lambda name: kept.rules().get(name), kept.version, hint)

    @classmethod
    def at_provider(cls, store: Store) -> QueryEngine:
        kept = store.metadata

        def text(name: str) -> str | None:
            found = kept.rules_named([name])
            return found[name].text if name in found else None

        return cls(store, RULE_RESULTS_SQL, text, kept.position, "tidings provider schema FILE")

    def schema(self) -> Schema:
        return self._schema()[1]

    def ask(self, text: str) -> QueryAnswer:
        """The answer to a query in the language of rules."""
        query, schema = parse_query(text), self.schema()
        types = self._types(query, schema)
        check_query(query, schema, types, text)
        return restore_answer_dates(self._queries.answer(query, schema, types), query, schema, types)

    def referred(self, answer: QueryAnswer) -> dict[str, Resource]:
        """What the resources of an answer refer to strongly, by URI."""
        schema = self.schema()
        found = self._queries.referred(answer.resources, schema)
        return {uri: restore_dates(each, schema) for uri, each in found.items()}

    def sparql(self, text: str, results: str | None = None, graph: str | None = None) -> SparqlAnswer:
        """The answer to a query in SPARQL, written as these media types."""
        return self._now().ask(text, results or JSON, graph or N_TRIPLES)

    def _now(self) -> ResourceGraph:
        """The graph of what there is: made when it is first asked, and again when something has changed since."""
        with self._making:
            version, schema = self._schema()
            now = version, self._version()
            if self._graph is None or self._graph[0] != now:
                self._graph = now, ResourceGraph(self._queries.resources(), schema)
            return self._graph[1]

    def _schema(self) -> tuple[int, Schema]:
        file = self._store.metadata.schema()
        if file is None:
            raise SetupError("there is no schema for metadata yet", hint=self._hint)
        if self._read is None or self._read[0] != file.version:
            self._read = file.version, parse_schema(rdf_decoder.decode(file.body, file.media_type))
        return self._read

    def _types(self, query: Query, schema: Schema) -> Mapping[str, str]:
        """The classes of the rules that a query searches."""
        named = {each.extension for each in query.searched} - schema.classes.keys()
        return {name: self._class_of(name, schema) for name in named if self._rule(name) is not None}

    def _class_of(self, name: str, schema: Schema) -> str:
        """What a rule registers: perhaps results of another rule, which its scope has, or which has no scope."""
        scope, text = name[: name.rfind("/") + 1], self._rule(name)
        while text is not None:
            extension = _registered(parse_rule(text))
            if extension in schema.classes:
                return extension
            scoped = self._rule(scope + extension)
            scope, text = (scope, scoped) if scoped is not None else ("", self._rule(extension))
        hint = "it searches a rule of the provider's, whose text is not here: search a class"
        raise InputError("what this rule registers is not known here", received=name, hint=hint)


def _registered(rule: Rule) -> str:
    return next(each.extension for each in rule.searched if each.variable == rule.register)

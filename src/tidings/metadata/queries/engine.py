"""Queries over the metadata of a store, in the rule language or in SPARQL.

    queries = QueryEngine.at_repository(store)
    queries.ask("search CycleProvider c where c.serverPort = 80 select c.serverHost").rows
    queries.sparql("SELECT ?c { ?c a <http://example.org/servers#CycleProvider> }").body

The results of rules can be searched by name: those of its own rules at a repository, those of all rules at a provider.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Lock

from tidings.errors import InputError
from tidings.metadata.provider.log_applier import SchemaCache
from tidings.metadata.queries.answers import QueryAnswer, restore_answer_dates, restore_dates
from tidings.metadata.queries.sparql import JSON, N_TRIPLES, ResourceGraph, SparqlAnswer
from tidings.metadata.resources import Resource
from tidings.metadata.rules.rule_parser import parse_query, parse_rule
from tidings.metadata.rules.syntax import Query, Rule
from tidings.metadata.rules.validation import check_query
from tidings.metadata.schema.model import Schema
from tidings.metadata.sql.metadata_reader import SchemaFile
from tidings.metadata.sql.queries.query_executor import (
    REPOSITORY_MEMBERS_SQL,
    RULE_RESULTS_SQL,
    QueryExecutor,
)
from tidings.store.store import Store

RuleTextLookup = Callable[[str], str | None]
"""Returns the text of a rule by name."""


class QueryEngine:
    """Queries over one store."""

    def __init__(
        self, store: Store, members: str, rule: RuleTextLookup, version: Callable[[], int], hint: str
    ) -> None:
        self._metadata, self._rule, self._version = store.metadata, rule, version
        self._queries = QueryExecutor(store.database, members)
        self._schemas = SchemaCache(hint)
        self._graph: tuple[tuple[SchemaFile | None, int], ResourceGraph] | None = None
        self._making = Lock()

    @classmethod
    def at_repository(cls, store: Store) -> QueryEngine:
        repository = store.repository
        hint = "tidings repository --provider URL --rules FILE fetches it; --at-provider queries a provider's home"
        return cls(
            store,
            REPOSITORY_MEMBERS_SQL,
            lambda name: repository.rules().get(name),
            repository.version,
            hint,
        )

    @classmethod
    def at_provider(cls, store: Store) -> QueryEngine:
        metadata = store.metadata

        def text(name: str) -> str | None:
            rule = metadata.rules_named([name]).get(name)
            return rule.text if rule else None

        return cls(store, RULE_RESULTS_SQL, text, metadata.position, "tidings provider schema FILE")

    def schema(self) -> Schema:
        return self._schemas.context(self._metadata.schema()).schema

    def ask(self, text: str) -> QueryAnswer:
        """Answer a query in the rule language."""
        query, schema = parse_query(text), self.schema()
        types = self._types(query, schema)
        check_query(query, schema, types, text)
        return restore_answer_dates(self._queries.answer(query, schema, types), query, schema, types)

    def find_referred(self, answer: QueryAnswer) -> dict[str, Resource]:
        """Return the resources that those of an answer strongly refer to, by URI."""
        schema = self.schema()
        resources = self._queries.find_referred(answer.resources, schema)
        return {uri: restore_dates(resource, schema) for uri, resource in resources.items()}

    def sparql(self, text: str, results: str | None = None, graph: str | None = None) -> SparqlAnswer:
        """Answer a query in SPARQL in one of the media types."""
        return self._current_graph().ask(text, results or JSON, graph or N_TRIPLES)

    def _current_graph(self) -> ResourceGraph:
        """Return the graph of all resources, built on first use and after changes."""
        with self._making:
            file = self._metadata.schema()
            schema, now = self._schemas.context(file).schema, (file, self._version())
            if self._graph is None or self._graph[0] != now:
                self._graph = now, ResourceGraph(self._queries.resources(), schema)
            return self._graph[1]

    def _types(self, query: Query, schema: Schema) -> Mapping[str, str]:
        """Return the classes of the rules that a query searches."""
        named = {each.extension for each in query.searched} - schema.classes.keys()
        return {name: self._class_of(name, schema) for name in named if self._rule(name) is not None}

    def _class_of(self, name: str, schema: Schema) -> str:
        """Return the class that a rule registers, through rules of its scope or without a scope."""
        scope, text = name[: name.rfind("/") + 1], self._rule(name)
        while text is not None:
            extension = _registered_class(parse_rule(text))
            if extension in schema.classes:
                return extension
            scoped = self._rule(scope + extension)
            scope, text = (scope, scoped) if scoped is not None else ("", self._rule(extension))
        hint = "it searches a rule of the provider, whose text is not available here; search a class instead"
        raise InputError("the class of this rule is not known here", received=name, hint=hint)


def _registered_class(rule: Rule) -> str:
    return next(each.extension for each in rule.searched if each.variable == rule.register)

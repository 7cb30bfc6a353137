"""Events as the matcher reads them: many at a time to atoms, or one in its readable form."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from tidings.atoms import Atoms, AtomShape, Event
from tidings.events import json_decoder, reference_matcher
from tidings.events.json_batch_decoder import decode_many
from tidings.events.kernel_tables import Conformity, PathTable
from tidings.events.predicate_compiler import parse_and_check
from tidings.events.predicate_tree import Tree
from tidings.events.schema.event_schema import EventSchema
from tidings.kinds import Bytes, DecodedPublications, Environment, Evaluator, Explanation, Integers, Reader
from tidings.reference_data.enrichment import MOST_ADDED, Added, add_to_events, enrich_event, find_added


class EventReader(Reader):
    """Decodes events at the paths that subscriptions look at, and finds their ids.

    With an event schema every event is checked against it. Rows of reference tables are added afterwards: the
    schema is about what publishers send.
    """

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        schema, enrichment, id_field = environment.schema, environment.enrichment, environment.id_field
        paths = (*environment.paths.get(AtomShape.FLAT, ()), *enrichment.attributes)
        self._conformity = Conformity(schema, paths, id_field) if schema and schema.event_types else None
        self._paths = self._conformity.paths if self._conformity else PathTable(paths)
        self._schema = SchemaIdentity(schema)

    def decode(self, media_type: str, buffer: Bytes, starts: Integers, ends: Integers) -> DecodedPublications:
        id_field, labels = self._environment.id_field, self._environment.allow_labels
        decoded = decode_many(buffer, starts, ends, self._paths, id_field, self._conformity, labels)
        added, plain = find_added(self._environment.enrichment, decoded.atoms, are_documents=False)
        atoms = add_to_events(decoded.atoms, added) if added else decoded.atoms
        return DecodedPublications(atoms, decoded.ids, decoded.rejects, added, plain)

    def read(self, body: bytes, media_type: str, added: Sequence[Added] = ()) -> Evaluator:
        event = json_decoder.decode(body, self._environment.schema, self._environment.id_field)
        return EventEvaluator(enrich_event(event, added), self._schema)

    def find_added(self, body: bytes, media_type: str) -> Sequence[Added]:
        enrichment = self._environment.enrichment
        if enrichment.is_empty:
            return ()
        event = json_decoder.decode(body, self._environment.schema, self._environment.id_field)
        rows = enrichment.find_rows(Atoms.of([event], enrichment.attributes), are_documents=False).get(0, [])
        return rows if len(rows) <= MOST_ADDED else ()


class SchemaIdentity:
    """A schema as the key of a cache: the same object is the same schema."""

    def __init__(self, schema: EventSchema | None) -> None:
        self.schema = schema

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SchemaIdentity) and other.schema is self.schema

    def __hash__(self) -> int:
        return id(self.schema)


class EventEvaluator(Evaluator):
    """An event, evaluated in the predicate language."""

    def __init__(self, event: Event, schema: SchemaIdentity) -> None:
        self._event, self._schema = event, schema

    def matches(self, language: str, text: str) -> bool:
        return reference_matcher.matches(_parse(text, self._schema), self._event)

    def explain(self, language: str, text: str) -> Explanation:
        return Explanation(reference_matcher.explain(_parse(text, self._schema), self._event))


@lru_cache(maxsize=50_000)
def _parse(text: str, schema: SchemaIdentity) -> Tree:
    """Cached, since popular subscriptions match again and again."""
    return parse_and_check(text, schema.schema)

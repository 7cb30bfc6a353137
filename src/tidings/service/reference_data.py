"""Data for matching besides subscriptions: reference tables, taxonomies, the event schema."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from tidings.core.text import plural
from tidings.errors import InputError, SchemaError, TextWarning
from tidings.events.schema.event_schema import EventSchema
from tidings.graphs.model import Graph
from tidings.graphs.patterns.pattern_tree import PREFIXES, show_term
from tidings.graphs.rdf.multipart import N_TRIPLES, n_triples
from tidings.graphs.rdf.rdf_decoder import decode_graphs
from tidings.graphs.taxonomy import Taxonomy, merged, taxonomy_of
from tidings.graphs.taxonomy_files import taxonomy_in
from tidings.matching.compiler.compilation import compile_many
from tidings.reference_data.declarations import Reference, declare
from tidings.reference_data.table_rows import read_file
from tidings.store.reference_data import TaxonomyFile
from tidings.store.store import Store

SKOS_HIERARCHY = frozenset(
    PREFIXES["skos"] + name for name in ("broader", "narrower", "broaderTransitive", "narrowerTransitive")
)
SKOS_IS_NOT_READ = "SKOS hierarchies are not supported yet; use rdfs:subClassOf for skos:broader"


@dataclass(frozen=True, slots=True)
class DeclaredReference:
    """A declared reference table, its number of rows and their fields; None for a Spark table, read by the stream."""

    reference: Reference
    rows: int | None
    adds: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class SchemaSnapshot:
    """The event schema, and the version at which it was read."""

    version: int
    schema: EventSchema

    @property
    def checked_against(self) -> EventSchema | None:
        """The schema to check publications and subscriptions against; None if it is empty."""
        return None if self.schema.is_empty else self.schema


@dataclass(frozen=True, slots=True)
class TaxonomySnapshot:
    """All loaded taxonomies as one, and the version at which they were read."""

    version: int
    taxonomy: Taxonomy


@dataclass(frozen=True, slots=True)
class LoadedTaxonomy:
    """A loaded taxonomy with its numbers of classes, instances and properties.

    Only loading gives `warnings`: the statements that are not supported are not stored.
    """

    name: str
    classes: int
    instances: int
    properties: int
    warnings: tuple[TextWarning, ...] = ()


def add_reference(
    store: Store, name: str, file: str, key: str, on: str, fields: Iterable[str]
) -> DeclaredReference:
    """Declare a reference table; its file has to be readable."""
    reference = declare(name, file, key, on, fields)
    rows = None if reference.spark_table else read_file(reference)
    stored = store.references.add(reference)
    if rows is None:
        return DeclaredReference(stored, None, None)
    added = dict.fromkeys(field for row in rows for field in row.added)
    return DeclaredReference(stored, len(rows), tuple(added))


def load_taxonomy(store: Store, name: str, body: bytes, media_type: str, base: str | None) -> LoadedTaxonomy:
    """Load an RDFS file; together with the loaded ones it has to be free of cycles."""
    if not name:
        raise InputError("a taxonomy needs a name", hint="name it with --name")
    graphs = [part.graph for part in decode_graphs(body, media_type, base)]
    taxonomy = taxonomy_of(*graphs)
    if not taxonomy.statements:
        raise _no_taxonomy_error(graphs)
    lines = n_triples(Graph(tuple(sorted(taxonomy.statements))))
    file = TaxonomyFile(name, N_TRIPLES, lines)
    store.taxonomies.add(file, lambda files: merged(*map(_parse_file, files)))
    return replace(_summarize(name, taxonomy), warnings=tuple(_warn_about_skos(graphs)))


def _no_taxonomy_error(graphs: Sequence[Graph]) -> InputError:
    """Build the error for a file without classes and properties; it names the contents of the file."""
    edges = [edge for graph in graphs for edge in graph.edges]
    used = Counter(show_term(edge.property) for edge in edges)
    named = ", ".join(f"{name} ({count:,})" for name, count in used.most_common(3))
    received = f"{plural(len(edges), 'edge')}: {named}" if edges else "no edges"
    accepted = "rdfs:subClassOf, rdfs:subPropertyOf or rdf:type"
    hint = SKOS_IS_NOT_READ if any(edge.property.text in SKOS_HIERARCHY for edge in edges) else None
    return InputError(
        "the file has no classes and no properties", received=received, accepted=accepted, hint=hint
    )


def _warn_about_skos(graphs: Sequence[Graph]) -> Iterator[TextWarning]:
    ignored = sum(edge.property.text in SKOS_HIERARCHY for graph in graphs for edge in graph.edges)
    if ignored:
        message = f"{plural(ignored, 'statement')} with skos:broader or skos:narrower ignored"
        yield TextWarning(message, hint=SKOS_IS_NOT_READ)


def read_whole_taxonomy(store: Store) -> Taxonomy:
    """Merge all loaded taxonomies into one."""
    return merged(*map(_parse_file, store.taxonomies.load()))


def list_taxonomies(store: Store) -> list[LoadedTaxonomy]:
    return [_summarize(file.name, _parse_file(file)) for file in store.taxonomies.load()]


def check_subscriptions(store: Store, schema: EventSchema) -> None:
    """Raise if a schema would make current subscriptions invalid."""
    invalid = compile_many(store.subscriptions.list(), schema).rejects
    if invalid:
        reasons = "; ".join(f"{reject.id}: {reject.reason.splitlines()[0]}" for reject in invalid[:3])
        raise SchemaError(
            f"this schema would make {plural(len(invalid), 'subscription')} invalid",
            received=reasons + (" ..." if len(invalid) > 3 else ""),
            hint="unsubscribe them first, or declare the attributes that they use",
        )


def _parse_file(file: TaxonomyFile) -> Taxonomy:
    return taxonomy_in(file.body, file.media_type)


def _summarize(name: str, taxonomy: Taxonomy) -> LoadedTaxonomy:
    return LoadedTaxonomy(name, len(taxonomy.classes), len(taxonomy.types), len(taxonomy.properties))

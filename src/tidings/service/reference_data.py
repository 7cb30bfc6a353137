"""What matching knows besides subscriptions: reference tables, taxonomies, the event schema."""

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
from tidings.reference_data.tables import read_file
from tidings.store.reference_data import TaxonomyFile
from tidings.store.store import Store

SKOS_HIERARCHY = frozenset(
    PREFIXES["skos"] + name for name in ("broader", "narrower", "broaderTransitive", "narrowerTransitive")
)
SKOS_IS_NOT_READ = (
    "SKOS hierarchies are not read yet: a concept has nothing below it; say rdfs:subClassOf for skos:broader"
)


@dataclass(frozen=True, slots=True)
class DeclaredReference:
    """A reference table that was declared, how many rows it has and the fields in them: None for a table of Spark's,
    which only the stream reads.
    """

    reference: Reference
    rows: int | None
    adds: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class SchemaSnapshot:
    """The event schema as it was read, and its version."""

    version: int
    schema: EventSchema

    @property
    def checked_against(self) -> EventSchema | None:
        """What publications and subscriptions are checked against: nothing if it is empty."""
        return None if self.schema.is_empty else self.schema


@dataclass(frozen=True, slots=True)
class TaxonomySnapshot:
    """All loaded taxonomies as one, and the version at which they were read."""

    version: int
    taxonomy: Taxonomy


@dataclass(frozen=True, slots=True)
class LoadedTaxonomy:
    """A taxonomy that is loaded, and how many classes, instances and properties it has.

    `warnings` are given when it is loaded: what its file says is only kept as far as it is read.
    """

    name: str
    classes: int
    instances: int
    properties: int
    warnings: tuple[TextWarning, ...] = ()


def add_reference(
    store: Store, name: str, file: str, key: str, on: str, fields: Iterable[str]
) -> DeclaredReference:
    """Declare a reference table whose file can be read."""
    reference = declare(name, file, key, on, fields)
    rows = None if reference.spark_table else read_file(reference)
    kept = store.references.add(reference)
    if rows is None:
        return DeclaredReference(kept, None, None)
    return DeclaredReference(
        kept, len(rows), tuple(dict.fromkeys(field for row in rows for field in row.added))
    )


def load_taxonomy(store: Store, name: str, body: bytes, media_type: str, base: str | None) -> LoadedTaxonomy:
    """Load an RDFS file that fits those that are there."""
    if not name:
        raise InputError("a taxonomy needs a name", hint="name it with --name")
    graphs = [part.graph for part in decode_graphs(body, media_type, base)]
    said = taxonomy_of(*graphs)
    if not said.statements:
        raise _no_taxonomy(graphs)
    lines = n_triples(Graph(tuple(sorted(said.statements))))
    file = TaxonomyFile(name, N_TRIPLES, lines)
    store.taxonomies.add(file, lambda files: merged(*map(_taxonomy, files)))
    return replace(_loaded(name, said), warnings=tuple(_about_skos(graphs)))


def _no_taxonomy(graphs: Sequence[Graph]) -> InputError:
    """A file that would change nothing; what it holds instead is named."""
    edges = [edge for graph in graphs for edge in graph.edges]
    used = Counter(show_term(edge.property) for edge in edges)
    named = ", ".join(f"{name} ({count:,})" for name, count in used.most_common(3))
    received = f"{plural(len(edges), 'edge')}: {named}" if edges else "no edges"
    accepted = "rdfs:subClassOf, rdfs:subPropertyOf or rdf:type"
    hint = SKOS_IS_NOT_READ if any(edge.property.text in SKOS_HIERARCHY for edge in edges) else None
    return InputError(
        "no class and no property is in this file", received=received, accepted=accepted, hint=hint
    )


def _about_skos(graphs: Sequence[Graph]) -> Iterator[TextWarning]:
    broader = sum(edge.property.text in SKOS_HIERARCHY for graph in graphs for edge in graph.edges)
    if broader:
        what = f"{plural(broader, 'statement')} of skos:broader or skos:narrower left out"
        yield TextWarning(what, hint=SKOS_IS_NOT_READ)


def read_whole_taxonomy(store: Store) -> Taxonomy:
    """All loaded taxonomies as one."""
    return merged(*map(_taxonomy, store.taxonomies.load()))


def list_taxonomies(store: Store) -> list[LoadedTaxonomy]:
    return [_loaded(file.name, _taxonomy(file)) for file in store.taxonomies.load()]


def refuse_orphans(store: Store, schema: EventSchema) -> None:
    """Refuse a schema with which subscriptions that are there now could not be understood."""
    orphans = compile_many(store.subscriptions.list(), schema).rejects
    if orphans:
        named = "; ".join(f"{one.id}: {one.reason.splitlines()[0]}" for one in orphans[:3])
        raise SchemaError(
            f"with this schema {len(orphans):,} of the subscriptions could not be understood any more",
            received=named + (" ..." if len(orphans) > 3 else ""),
            hint="unsubscribe them first, or describe what they ask about",
        )


def _taxonomy(file: TaxonomyFile) -> Taxonomy:
    return taxonomy_in(file.body, file.media_type)


def _loaded(name: str, said: Taxonomy) -> LoadedTaxonomy:
    return LoadedTaxonomy(name, len(said.classes), len(said.types), len(said.properties))

"""Taxonomy files: RDFS in any graph syntax as input, one N-Triples file for Spark tasks as output."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from tidings.core.atomic_files import write_atomically
from tidings.graphs.model import Graph
from tidings.graphs.rdf import rdf_decoder
from tidings.graphs.rdf.multipart import N_TRIPLES, n_triples
from tidings.graphs.taxonomy import Taxonomy, taxonomy_of


def write_taxonomy(folder: Path, taxonomy: Taxonomy) -> str | None:
    """Write a taxonomy to a file named by its content and return the path; None for an empty one."""
    body = dump_taxonomy(taxonomy)
    if body is None:
        return None
    path = folder.absolute() / f"{hashlib.blake2b(body, digest_size=8).hexdigest()}.nt"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(path, body.decode())
    return str(path)


def dump_taxonomy(taxonomy: Taxonomy) -> bytes | None:
    """Return a taxonomy as N-Triples; None for an empty one."""
    return n_triples(Graph(tuple(sorted(taxonomy.statements)))) if taxonomy.statements else None


@lru_cache(maxsize=2)
def read_taxonomy(path: str | None) -> Taxonomy:
    """Read such a file. Cached, because a worker runs many tasks."""
    return Taxonomy() if path is None else taxonomy_in(Path(path).read_bytes(), N_TRIPLES)


def taxonomy_in(body: bytes, media_type: str, base: str | None = None) -> Taxonomy:
    """Read the taxonomy in a graph publication."""
    graphs: Sequence[rdf_decoder.NamedGraph] = rdf_decoder.decode_graphs(body, media_type, base)
    return taxonomy_of(*(each.graph for each in graphs))

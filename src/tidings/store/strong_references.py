"""What resources refer to strongly, however far: it goes wherever they go (section 2.4 of paper 001)."""

from __future__ import annotations

import json
from collections.abc import Collection

from sqlalchemy import ARRAY, Connection, Text, bindparam, text

from tidings.metadata.resources import Resource
from tidings.store import atom_rows, bulk

# A reference to something that is missing, or of another class than the schema says, leads nowhere. UNION, not
# UNION ALL: references may lead in a circle.
_REACHED = (
    "WITH RECURSIVE reached (uri) AS ({given} UNION"
    " SELECT t.uri FROM reached r CROSS JOIN metadata_atoms a CROSS JOIN metadata_resources t"
    " CROSS JOIN metadata_classes c WHERE a.uri = r.uri AND a.strong IS NOT NULL AND t.uri = a.value"
    " AND c.class = t.class AND c.above = a.strong) SELECT uri FROM reached"
)
_STATEMENTS = {
    "sqlite": text(_REACHED.format(given="SELECT value FROM json_each(:keys)")),
    "postgresql": text(_REACHED.format(given="SELECT unnest(:keys)")).bindparams(
        bindparam("keys", type_=ARRAY(Text(collation="C")))
    ),
}


def closure(connection: Connection, uris: Collection[str]) -> tuple[Resource, ...]:
    """Those of these resources that are there, with everything that they refer to strongly, by their URIs."""
    reached: set[str] = set()
    for piece in bulk.pieces(uris, bulk.KEYS):
        keys = json.dumps(piece) if connection.dialect.name == "sqlite" else piece
        reached |= set(connection.execute(_STATEMENTS[connection.dialect.name], {"keys": keys}).scalars())
    found = atom_rows.load(connection, reached)
    return tuple(found[uri].resource for uri in sorted(found))

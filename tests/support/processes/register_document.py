"""A process that registers a document, and prints how many kernels were loaded at each begin and commit."""

from __future__ import annotations

import gc
import json
import sys
from pathlib import Path

from sqlalchemy import event

from tidings.metadata.provider.provider import Provider
from tidings.store.database import sqlite_url
from tidings.store.store import open_store

EXAMPLES = Path(__file__).parents[3] / "examples" / "metadata"
RULES = {
    "large": "search ServerInformation s register s where s.memory > 64",
    "passau": "search CycleProvider c register c where c.serverHost contains 'passau'",
    "all": "search CycleProvider c register c",
    "port": "search CycleProvider c register c where c.serverPort = 5874 and c.serverHost != 'x'",
}


def count_kernels() -> int:
    """Return the number of kernels that were compiled or loaded from the cache."""
    dispatchers = sys.modules.get("numba.core.dispatcher")
    if dispatchers is None:
        return 0
    kernels = (each for each in gc.get_objects() if isinstance(each, dispatchers.Dispatcher))
    return sum(len(each.overloads) for each in kernels)


def main(store_file: Path) -> None:
    with open_store(sqlite_url(store_file)) as store:
        provider, seen = Provider(store), []
        provider.load_schema((EXAMPLES / "schema.ttl").read_bytes(), "text/turtle")
        provider.add_rules(RULES, "ana")
        for name in ("begin", "commit"):
            event.listen(
                store.database.engine, name, lambda _, name=name: seen.append((name, count_kernels()))
            )
        body = (EXAMPLES / "host.rdf").read_bytes()
        entered = provider.register("http://example.org/doc.rdf", body, "application/rdf+xml").outcome.entered
        sys.stdout.write(json.dumps({"entered": len(entered), "seen": seen}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""python -m benchmarks.store [URL]: rows per second that a store writes and reads, in bulk and one by one.

Without a URL, the store is a SQLite file in a temporary folder. With a URL, the store must be empty. CPU seconds are
those of this process: all work on SQLite, the client's part on PostgreSQL.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tidings.model import Publication, Reason, Subscription
from tidings.store.database import sqlite_url
from tidings.store.encoding import MatchRow
from tidings.store.store import Store, open_store

ROWS = 200_000
CHUNK = 20_000
SINGLE = 200
BECAUSE = (Reason("symbol = 'ABC'", "ABC", "/symbol"), Reason("price < 200", 180, "/price"))


def measure(label: str, rows: int, work: Callable[[], object]) -> None:
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(f"{label:<46}{rows / wall:>12,.0f}/s {rows / cpu:>12,.0f} per CPU second")


def run(store: Store) -> None:
    stock = {"symbol": "ABC", "price": 180, "volume": 1000, "open": 1.5, "close": 2.5}
    bodies = [json.dumps(stock | {"n": i}).encode() for i in range(ROWS)]
    publications = [Publication(f"e{i}", "application/json", body) for i, body in enumerate(bodies)]
    texts = [f"symbol = 'S{i}' and price < {i}" for i in range(ROWS)]
    subscriptions = [
        Subscription(f"s{i}", f"u{i % 1000}", "predicates", text) for i, text in enumerate(texts)
    ]
    matches = [MatchRow(f"e{i // 10}", f"s{i}", f"u{i * 7 % 1000}", BECAUSE) for i in range(ROWS)]
    measure("journal: append, 20,000 at a time", ROWS, lambda: publish(store, publications, CHUNK))
    measure("journal: append the same again", ROWS, lambda: publish(store, publications, CHUNK))
    measure("journal: read", ROWS, lambda: sum(1 for _ in store.journal.read(0)))
    measure("subscriptions: add, all at once", ROWS, lambda: store.subscriptions.add_many(subscriptions))
    measure("subscriptions: all changes", ROWS, lambda: store.subscriptions.changes(0))
    measure("notifications: batches of 20,000", ROWS, lambda: notify(store, "first", matches))
    measure("notifications: the same batches again", ROWS, lambda: notify(store, "second", matches))
    unnamed = [Publication("", "application/json", b"{}")] * SINGLE
    measure("journal: append, one at a time", SINGLE, lambda: publish(store, unnamed, 1))


def publish(store: Store, publications: Sequence[Publication], chunk: int) -> None:
    for start in range(0, len(publications), chunk):
        store.journal.append(publications[start : start + chunk])


def notify(store: Store, stream: str, matches: Sequence[MatchRow]) -> None:
    for start in range(0, len(matches), CHUNK):
        store.notifications.commit_batch(stream, start, matches[start : start + CHUNK])


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        url = sys.argv[1] if len(sys.argv) > 1 else sqlite_url(Path(folder) / "store.db")
        with open_store(url) as store:
            print(store.database.name)
            run(store)


if __name__ == "__main__":
    main()

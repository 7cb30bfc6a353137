"""Publisher of the store's subscriptions: brings an index up to date, and publishes each version of it for executors.

    <folder>/                       the index (`live_index`)
    <location>/versions/            what tasks match with (`PublishedSubscriptions`)

Only what has changed is compiled, and only new segments are sent.
"""

from __future__ import annotations

from pathlib import Path

from tidings.core.atomic_files import private_folder
from tidings.errors import InputError
from tidings.graphs.taxonomy import merged
from tidings.graphs.taxonomy_files import dump_taxonomy, taxonomy_in
from tidings.spark.dataframe.environment import PublishedSubscriptions
from tidings.spark.dataframe.segments import describe_index
from tidings.spark.stream.live_index import LiveIndex
from tidings.store.store import Store

KEPT_VERSIONS = 5
"""Versions that stay published. A micro-batch that is repeated needs the newest one; the others help to investigate."""


class SubscriptionPublisher:
    """Publishes the active subscriptions of a store, with its event schema and taxonomies."""

    def __init__(self, folder: Path, location: str, store: Store) -> None:
        self._store = store
        self._live = LiveIndex(private_folder(folder), store)
        self._published = PublishedSubscriptions.create(location)
        self._taxonomy: bytes | None = None
        self._taxonomy_version = -1
        versions = self._published.list_versions()
        self._version = versions[-1] if versions else 0
        self._content = self._read_published() if versions else None

    @property
    def subscriptions(self) -> int:
        """The number of subscriptions."""
        return self._live.index.size

    @property
    def segments(self) -> int:
        """The number of segments of the index."""
        return self._live.index.segments

    def refresh(self) -> int:
        """Apply changes in the store, publish them if there are any, and return the current version."""
        reject_references(self._store)
        self._live.refresh()
        self._refresh_taxonomy()
        described = describe_index(self._live.index)
        schema = self._live.schema_text
        content = described.manifest.digest, schema, self._taxonomy
        if content != self._content:
            self._version = self._published.add(described, schema, self._taxonomy, KEPT_VERSIONS)
            self._content = content
        self._live.tidy()
        return self._version

    def _read_published(self) -> tuple[str, str | None, bytes | None]:
        newest = self._published.environment()
        return newest.manifest.digest, newest.schema, newest.taxonomy

    def _refresh_taxonomy(self) -> None:
        """Load the taxonomies after a change. Each was checked when it was added."""
        version = self._store.taxonomies.version()
        if version != self._taxonomy_version:
            files = self._store.taxonomies.load()
            self._taxonomy = dump_taxonomy(
                merged(*(taxonomy_in(file.body, file.media_type) for file in files))
            )
            self._taxonomy_version = version


def reject_references(store: Store) -> None:
    """Raise `InputError` if the store has reference tables, which only the stream of the journal joins."""
    if tables := store.references.load():
        raise InputError(
            "a stream from a source to a sink does not join reference tables",
            received=", ".join(table.name for table in tables),
            hint="leave out the sink: the stream of the journal joins them",
        )

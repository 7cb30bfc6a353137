"""The taxonomy of a running stream: a file that tasks read, made anew when one was loaded or removed."""

from __future__ import annotations

from pathlib import Path

from tidings.publications.taxonomy_files import taxonomy_in, write_taxonomy
from tidings.store import Store
from tidings.taxonomies import merged


class LiveTaxonomy:
    """What the taxonomies of a store say together, as a file; `path` is None if they say nothing."""

    def __init__(self, folder: Path, store: Store) -> None:
        self.path: str | None = None
        self._folder, self._store, self._version = folder, store, -1

    def refresh(self) -> None:
        """Take over what changed. Each file was checked with all others when it was loaded."""
        version = self._store.taxonomies.version()
        if version != self._version:
            said = [taxonomy_in(each.body, each.media_type) for each in self._store.taxonomies.load()]
            self.path, self._version = write_taxonomy(self._folder, merged(*said)), version

    def tidy(self) -> None:
        """Delete what only earlier batches used."""
        for path in self._folder.glob("*.nt"):
            if str(path.absolute()) != self.path:
                path.unlink()

"""Trigger index of a running stream: files for the tasks, updated before each batch.

    <home>/segments/metadata/state.json     the folder and version of the index, and its last rule
    <home>/segments/metadata/<folder>/      the index

Rule numbers only grow, so new rules have greater numbers. Removed rules are detected when a resource satisfies them:
checking all of them before each batch would cost more. Schemas only grow, too, so compiled rules stay valid.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from uuid import uuid4

from tidings.core.atomic_files import write_atomically
from tidings.errors import SetupError
from tidings.matching.index.compaction import CompactionWorker
from tidings.matching.index.index import Index
from tidings.metadata.filter.trigger_index import TriggerIndex
from tidings.metadata.schema.model import Schema
from tidings.store.store import Store

_STATE = "state.json"


@dataclass(frozen=True, slots=True)
class IndexState:
    """The state of an index: its store, and the last rule number."""

    store: str
    folder: str
    index: int
    last: int


class LiveTriggerIndex:
    """An index that is kept up to date with the triggering rules of a store."""

    def __init__(self, folder: Path, store: Store) -> None:
        self._folder, self._store = folder, store
        self.index, self._state = self._start()
        self._merger = CompactionWorker(self.index)

    @property
    def last(self) -> int:
        """The greatest number of a rule in the index."""
        return self._state.last

    @property
    def folder(self) -> str:
        return str(self.index.folder.absolute())

    def refresh(self, schema: Schema, gone: Collection[int] = ()) -> None:
        """Add new rules and remove deleted ones; merge segments where that is worthwhile."""
        new = self._store.metadata.triggering_rules(self.last)
        if new or gone:
            self._merger.change(map(str, gone), TriggerIndex(schema, self.index).compiled(new))
        else:
            self._merger.step()
        self._remember(max(self.last, *new) if new else self.last)

    def tidy(self) -> None:
        """Delete files that only earlier batches used."""
        self.index.collect(keep_versions=1)

    def _start(self) -> tuple[Index, IndexState]:
        """Open the index of an earlier run if it belongs to this store; otherwise create an empty one."""
        path = self._folder / _STATE
        state = IndexState(**json.loads(path.read_text())) if path.exists() else None
        if (
            state
            and state.store == self._store.database.name
            and state.last <= self._store.metadata.last_rule_number()
        ):
            try:
                return Index.open(self._folder / state.folder, state.index), state
            except SetupError:  # somebody has deleted it: what it has is in the store
                pass
        for other in self._folder.glob("index-*"):
            shutil.rmtree(other)
        folder = f"index-{uuid4().hex[:8]}"
        index = Index.create(self._folder / folder)
        return index, self._written(IndexState(self._store.database.name, folder, index.version, 0))

    def _remember(self, last: int) -> None:
        now = replace(self._state, index=self.index.version, last=last)
        if now != self._state:
            self._state = self._written(now)

    def _written(self, state: IndexState) -> IndexState:
        write_atomically(self._folder / _STATE, json.dumps(asdict(state)))
        return state

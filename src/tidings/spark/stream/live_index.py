"""Index of a running stream, brought up to date before each batch.

    <home>/segments/state.json     the folder and version of the index, and the version of the store it reflects
    <home>/segments/<folder>/      the index

Changes in the store since the last batch become a new segment, and marks for removed subscriptions. A crash between two
steps leaves the old state, which names an old version of the index that still exists; the changes are then applied
again.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection
from dataclasses import asdict, dataclass
from pathlib import Path
from uuid import uuid4

from tidings.core.atomic_files import write_atomically
from tidings.errors import SetupError
from tidings.events.schema.event_schema import EventSchema
from tidings.events.schema.files import dump
from tidings.matching.compiler.compilation import compile_many
from tidings.matching.compiler.plan import Compiled
from tidings.matching.index.compaction import CompactionWorker
from tidings.matching.index.index import Index
from tidings.model import Subscription
from tidings.store.dead_letters import DeadLetter
from tidings.store.store import Store

_STATE = "state.json"
_TRIES = 5


@dataclass(frozen=True, slots=True)
class IndexState:
    """The version of the index, and of the store that it reflects."""

    store: str
    folder: str
    index: int
    subscriptions: int
    schema: int


def read_index_state(segments: Path) -> IndexState | None:
    """Read the state that the stream wrote last, or None."""
    path = segments / _STATE
    return IndexState(**json.loads(path.read_text())) if path.exists() else None


def repair_index(segments: Path) -> list[str]:
    """Discard an unreadable index, as a failed disk may leave it; describe the repair.

    The stream rebuilds it from the store.
    """
    try:
        if state := read_index_state(segments):
            Index.open(segments / state.folder, state.index).check()
    except (SetupError, ValueError, TypeError) as problem:
        (segments / _STATE).unlink()
        why = problem.headline() if isinstance(problem, SetupError) else f"{_STATE} cannot be read"
        return [f"{why}: it is rebuilt from the store"]
    return []


def open_current_index(segments: Path) -> Index | None:
    """Open the current index of a stream for reading; return None if there is none."""
    for tries_left in reversed(range(_TRIES)):
        state = read_index_state(segments)
        if state is None:
            return None
        try:
            index = Index.open(segments / state.folder, state.index)
            index.paths  # noqa: B018  maps all files: deleting them later does no harm
            return index
        except (SetupError, FileNotFoundError):
            # The stream has moved on and deleted this version since we read the state.
            if not tries_left:
                raise
    return None


class LiveIndex:
    """An index that follows the subscriptions and the event schema of a store."""

    def __init__(self, segments: Path, store: Store) -> None:
        self._segments, self._store = segments, store
        self._schema = EventSchema()
        self.schema_text: str | None = None
        self.index, self._state = self._start()
        self._merger = CompactionWorker(self.index)

    def refresh(self) -> None:
        """Apply changes in the store; a new schema recompiles every subscription.

        Then merge segments where that pays off, large ones in the background of the next batches.
        """
        if self._store.schemas.version() != self._state.schema:
            self._merger.finish()
            self.index, self._state = self._build()
            self._merger = CompactionWorker(self.index)
        self._apply_changes()
        if self.index.version != self._state.index:
            self._write_state(self._state.subscriptions)

    def _apply_changes(self) -> None:
        changes = self._store.subscriptions.changes(self._state.subscriptions)
        if changes.version == self._state.subscriptions:
            self._merger.step()
        else:
            self._merger.change(changes.removed, self._compile(changes.added))
            self._write_state(changes.version)

    def part(self, folder: Path, ids: Collection[str]) -> Index:
        """Build a new index of some of the subscriptions, in its own folder."""
        wanted = set(ids)
        subscriptions = (
            [one for one in self._store.subscriptions.list() if one.id in wanted] if wanted else []
        )
        index = Index.create(folder)
        index.add(compile_many(subscriptions, self._schema))
        return index

    def tidy(self) -> None:
        """Delete files that only earlier batches used."""
        self.index.collect(keep_versions=1)

    @property
    def folder(self) -> str:
        return str(self.index.folder.absolute())

    def _start(self) -> tuple[Index, IndexState]:
        state = self._read_valid_state()
        if state is None:
            return self._build()
        self._load_schema()
        try:
            return Index.open(self._segments / state.folder, state.index), state
        except SetupError:  # deleted: the store has everything to rebuild it
            return self._build()

    def _read_valid_state(self) -> IndexState | None:
        """Return the state of an earlier run if it belongs to this store and schema."""
        state = read_index_state(self._segments)
        fits = state and (state.store, state.schema) == (
            self._store.database.name,
            self._store.schemas.version(),
        )
        return state if fits else None

    def _build(self) -> tuple[Index, IndexState]:
        """Build the index from scratch in a new folder; delete the others."""
        schema = self._store.schemas.version()
        self._load_schema()
        changes = self._store.subscriptions.changes(0)
        folder = f"index-{uuid4().hex[:8]}"
        self.index = Index.create(self._segments / folder)
        self.index.add(self._compile(changes.added))
        self._state = IndexState(
            self._store.database.name, folder, self.index.version, changes.version, schema
        )
        self._write_state(changes.version)
        for other in self._segments.glob("index-*"):
            if other.name != folder:
                shutil.rmtree(other)
        return self.index, self._state

    def _write_state(self, version: int) -> None:
        fields = asdict(self._state) | {"index": self.index.version, "subscriptions": version}
        self._state = IndexState(**fields)
        write_atomically(self._segments / _STATE, json.dumps(fields))

    def _load_schema(self) -> None:
        self._schema = self._store.schemas.load()
        self.schema_text = None if self._schema.is_empty else dump(self._schema)

    def _compile(self, subscriptions: list[Subscription]) -> Compiled:
        """Compile subscriptions; those that do not fit the current schema become dead letters.

        Schema extensions that would invalidate a subscription are refused, so this only happens to a subscription that
        was accepted at the same moment.
        """
        compiled = compile_many(subscriptions, self._schema)
        letters = (DeadLetter(reject.id, reject.reason, reject.facts) for reject in compiled.rejects)
        self._store.dead_letters.add("subscriptions", letters)
        return compiled

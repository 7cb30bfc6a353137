"""The index of a running stream: brought up to date before each batch.

    <home>/segments/state.json     which folder, which version of the index, which version of the store it shows
    <home>/segments/<folder>/      the index

What changed in the store since the last batch becomes a new segment and marks for what was removed. A crash between
two steps leaves the old state, which names an old version of the index that is still there; the changes are then
applied once more.
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
    """Which index shows which version of which store."""

    store: str
    folder: str
    index: int
    subscriptions: int
    schema: int


def read_index_state(segments: Path) -> IndexState | None:
    """What the stream of a folder has written down last."""
    path = segments / _STATE
    return IndexState(**json.loads(path.read_text())) if path.exists() else None


def repair_index(segments: Path) -> list[str]:
    """Forget an index that cannot be read, as a disk that failed may leave it, and say so. What it shows is in the
    store, from which a stream makes it anew.
    """
    try:
        if state := read_index_state(segments):
            Index.open(segments / state.folder, state.index).check()
    except (SetupError, ValueError, TypeError) as problem:
        (segments / _STATE).unlink()
        why = problem.headline() if isinstance(problem, SetupError) else f"{_STATE} cannot be read"
        return [f"{why}: it is made anew from the store"]
    return []


def open_current_index(segments: Path) -> Index | None:
    """The index a stream uses now, for somebody who only looks; None if there is none."""
    for tries_left in reversed(range(_TRIES)):
        state = read_index_state(segments)
        if state is None:
            return None
        try:
            index = Index.open(segments / state.folder, state.index)
            index.paths  # noqa: B018  maps all files: from now on it does not matter who deletes them
            return index
        except (SetupError, FileNotFoundError):
            # The stream has gone on and tidied up since we read the state.
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
        """Take over what changed in the store. A new schema means that every text is compiled anew.

        Then segments are merged where that is worth it, large ones beside the batches to come.
        """
        if self._store.schemas.version() != self._state.schema:
            self._merger.finish()
            self.index, self._state = self._build()
            self._merger = CompactionWorker(self.index)
        self._take_over()
        if self.index.version != self._state.index:
            self._remember(self._state.subscriptions)

    def _take_over(self) -> None:
        changes = self._store.subscriptions.changes(self._state.subscriptions)
        if changes.version == self._state.subscriptions:
            self._merger.step()
        else:
            self._merger.change(changes.removed, self._compile(changes.added))
            self._remember(changes.version)

    def part(self, folder: Path, ids: Collection[str]) -> Index:
        """A new index of some of the subscriptions, in a folder of its own."""
        wanted = set(ids)
        found = [one for one in self._store.subscriptions.list() if one.id in wanted] if wanted else []
        index = Index.create(folder)
        index.add(compile_many(found, self._schema))
        return index

    def tidy(self) -> None:
        """Delete what only earlier batches used."""
        self.index.collect(keep_versions=1)

    @property
    def folder(self) -> str:
        return str(self.index.folder.absolute())

    def _start(self) -> tuple[Index, IndexState]:
        state = self._remembered()
        if state is None:
            return self._build()
        self._load_schema()
        try:
            return Index.open(self._segments / state.folder, state.index), state
        except SetupError:  # somebody has deleted it: what it shows is in the store
            return self._build()

    def _remembered(self) -> IndexState | None:
        """The state of an earlier run, if it is about this store and this schema."""
        state = read_index_state(self._segments)
        fits = state and (state.store, state.schema) == (
            self._store.database.name,
            self._store.schemas.version(),
        )
        return state if fits else None

    def _build(self) -> tuple[Index, IndexState]:
        """An index from nothing, in a folder of its own; the other ones go."""
        schema = self._store.schemas.version()
        self._load_schema()
        changes = self._store.subscriptions.changes(0)
        folder = f"index-{uuid4().hex[:8]}"
        self.index = Index.create(self._segments / folder)
        self.index.add(self._compile(changes.added))
        self._state = IndexState(
            self._store.database.name, folder, self.index.version, changes.version, schema
        )
        self._remember(changes.version)
        for other in self._segments.glob("index-*"):
            if other.name != folder:
                shutil.rmtree(other)
        return self.index, self._state

    def _remember(self, version: int) -> None:
        fields = asdict(self._state) | {"index": self.index.version, "subscriptions": version}
        self._state = IndexState(**fields)
        write_atomically(self._segments / _STATE, json.dumps(fields))

    def _load_schema(self) -> None:
        self._schema = self._store.schemas.load()
        self.schema_text = None if self._schema.is_empty else dump(self._schema)

    def _compile(self, subscriptions: list[Subscription]) -> Compiled:
        """Compile what the store has. What the schema of now does not understand is a dead letter.

        An extension that would make a subscription meaningless is refused, so this is the rare one that was
        accepted at the very moment the schema was extended.
        """
        compiled = compile_many(subscriptions, self._schema)
        letters = (DeadLetter(one.id, one.reason, one.facts) for one in compiled.rejects)
        self._store.dead_letters.add("subscriptions", letters)
        return compiled

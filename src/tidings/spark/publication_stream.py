"""The stream of publications: where they come from, and where what is known of them stands in the home folder."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from tidings.spark import checkpoint
from tidings.spark.budget import DEFAULT_BUDGET, Budget
from tidings.spark.folder import FolderSource
from tidings.spark.live_publications import LivePublications
from tidings.spark.news import Progress
from tidings.spark.source import JournalSource
from tidings.store import Store

MOST_PUBLICATIONS = 10_000
SUSPEND_AFTER = 3


@dataclass(frozen=True, slots=True)
class PublicationStream:
    """What is to run: everything that has to be known, wherever it runs.

    Without a `folder` the source is the store's journal. With a name, a `run` begins with a batch in any case. A
    subscription is suspended after it has exceeded the budget `suspend_after` times.
    """

    home: Path
    store: str
    folder: str | None = None
    id_field: str = "id"
    most: int = MOST_PUBLICATIONS
    run: str = ""
    budget: Budget = DEFAULT_BUDGET
    suspend_after: int = SUSPEND_AFTER

    name = "tidings"

    @property
    def checkpoint(self) -> Path:
        """How far this source was read. Each source has its own: a position in the journal is none in a folder."""
        key = hashlib.blake2b(self.folder.encode(), digest_size=5).hexdigest() if self.folder else ""
        return self.home / "checkpoint" / (f"folder-{key}" if self.folder else "journal")

    @property
    def file_list(self) -> Path:
        return self.checkpoint / "files.jsonl"

    @property
    def batches(self) -> Path:
        """Where tasks leave what they find, until it is committed."""
        return self.home / "batches"

    @property
    def segments(self) -> Path:
        return self.home / "segments"

    @property
    def status(self) -> Path:
        return self.home / "stream.json"

    @property
    def source(self) -> str:
        return f"folder {self.folder}" if self.folder else "journal"

    def position(self, store: Store) -> int:
        """How far the source was read, by what was written down of earlier batches."""
        position = checkpoint.position(self.checkpoint)
        return position if self.folder else position or store.notifications.matched()

    def rows(self, session: SparkSession) -> DataFrame:
        """The publications, as a stream."""
        options = {"publications": str(self.most), "lock": str(self.home / checkpoint.STREAM_LOCK)}
        options |= {"run": self.run} if self.run else {}
        source: type[Any] = FolderSource if self.folder else JournalSource
        more = (
            {"folder": self.folder, "list": str(self.file_list)} if self.folder else {"store_url": self.store}
        )
        session.dataSource.register(source)
        return session.readStream.format(source.name()).options(**options, **more).load()

    def open(self) -> LivePublications:
        return LivePublications(self)

    def progress(self, told: dict[str, Any]) -> Progress:
        return Progress(**told)

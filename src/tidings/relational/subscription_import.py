"""Import of subscription files into tables, in blocks of bounded size."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from tidings.errors import IdConflict, SubscriptionError, TidingsError
from tidings.model import Reject
from tidings.relational.branches import LANGUAGE
from tidings.relational.table_store import AddResult, TableStore
from tidings.spark.batch.subscription_file import read_subscription_blocks


def import_subscriptions(
    store: TableStore, session: SparkSession | None, file: str | Path
) -> Iterator[AddResult]:
    """Add the subscriptions of a file, block by block. What cannot be added is rejected.

    Each block counts as soon as it is yielded, so an import that is interrupted has added the blocks before.
    """
    for block in read_subscription_blocks(file):
        documents, rejects = _split(store, block.subscriptions)
        added = store.add(session, documents) if documents.num_rows else AddResult(0, ())
        yield AddResult(added.taken, (*block.rejects, *rejects, *added.rejects))


def _split(store: TableStore, subscriptions: Any) -> tuple[Any, list[Reject]]:
    """Split off the subscriptions in other languages, and those whose ids are taken."""
    is_xpath = pc.equal(subscriptions["language"], LANGUAGE)
    others = subscriptions.filter(pc.invert(is_xpath)).select(["id", "language"]).to_pylist()
    rejects = [_reject(row["id"], _other_language(row["language"])) for row in others]
    documents = subscriptions.filter(is_xpath)
    taken = store.live_ids(documents["id"].to_pylist()) if store.version.subscriptions else []
    rejects += [_reject(id, _taken(id)) for id in taken]
    return documents.filter(pc.invert(pc.is_in(documents["id"], pa.array(taken, pa.string())))), rejects


def _reject(id: str, problem: TidingsError) -> Reject:
    return Reject("subscription", id, problem.message(), problem.facts())


def _other_language(language: str) -> SubscriptionError:
    return SubscriptionError(
        "the relational engine does not support this language",
        received=repr(language),
        accepted=LANGUAGE,
        hint="--engine index supports all languages",
    )


def _taken(id: str) -> IdConflict:
    return IdConflict(
        "there is a subscription with this id already",
        received=repr(id),
        hint="remove it first: tidings tables remove FOLDER ID",
    )

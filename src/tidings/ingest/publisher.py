"""Ingest: the way of publications into the journal.

    publish(store, submission, schema)          parse_submission -> validate -> append
    publish_stream(store, items, schema_now)    the same for a stream, made durable in chunks

The command line, the console, the library and the outbox of objects call these. The HTTP API takes the same steps, and
appends the submissions of concurrent callers in one transaction (`api/v1/ingest.py`), and so do tasks of Spark that
publish rows (`spark/data_source/store_writer.py`), with `read_items` and `append_items`. Feeds append new items in the
transaction that remembers them (`feeds/sql/polled_items.py`), with the same `append_publications` of the journal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from tidings.core import suggest
from tidings.errors import DecodeProblem, InputError
from tidings.events.schema.event_schema import EventSchema
from tidings.ingest.submission import (
    ParsedSubmission,
    Submission,
    SubmissionItem,
    is_bulk,
    parse_submission,
)
from tidings.kinds import kind_of
from tidings.model import Publication
from tidings.store.journal import AppendBatch, AppendOutcome, add_trace
from tidings.store.store import Store

APPEND_CHUNK = 10_000
"""Number of publications of a long submission that become durable at a time."""


def publish(store: Store, submission: Submission, schema: EventSchema | None) -> list[AppendOutcome]:
    """Publish a submission: an outcome for each item of a bulk, else all publications or an error."""
    parsed = parse_submission(submission)
    items = validate(parsed, schema)
    return append(store, submission, items)


def publish_stream(
    store: Store,
    items: Iterable[SubmissionItem],
    schema_now: Callable[[], EventSchema | None],
    audience: str | None = None,
) -> Iterator[AppendOutcome]:
    """Publish items as they come, and yield an outcome for each when it is durable.

    Each chunk is validated against the schema at that moment.
    """
    remaining = iter(items)
    while chunk := list(islice(remaining, APPEND_CHUNK)):
        schema = schema_now()
        yield from append_items(store, [_validate_item(item, schema, audience) for item in chunk])


def validate(parsed: ParsedSubmission, schema: EventSchema | None) -> list[SubmissionItem]:
    """Validate the items of a submission, and give each its id and audience.

    Problems of a bulk are items. After too many of them, the remaining items are not validated.
    """
    submission = parsed.submission
    if parsed.are_valid:
        return [*parsed.items]
    if not is_bulk(submission):
        return [_validate_or_raise(item, schema, submission.audience) for item in parsed.items]
    most, rejected = submission.limits.rejections, 0
    items: list[SubmissionItem] = []
    with suggest.bounded_search():
        for item in parsed.items:
            if rejected > most:
                items.append(unread_item_error(most))
                continue
            items.append(_validate_item(item, schema, submission.audience))
            rejected += isinstance(items[-1], InputError)
    return items


def read_items(submission: Submission, schema: EventSchema | None) -> list[SubmissionItem]:
    """Parse and validate a submission like `publish`; a problem of the submission as a whole is an item, too."""
    try:
        return validate(parse_submission(submission), schema)
    except InputError as problem:
        return [problem.with_traceback(None)]


def append(store: Store, submission: Submission, items: Sequence[SubmissionItem]) -> list[AppendOutcome]:
    """Append validated items durably: in chunks with an outcome for each, or all of them or none."""
    if not is_bulk(submission):
        return [*store.journal.append(item for item in items if isinstance(item, Publication))]
    chunks = (items[start : start + APPEND_CHUNK] for start in range(0, len(items), APPEND_CHUNK))
    return [outcome for chunk in chunks for outcome in append_items(store, chunk)]


def unread_item_error(most: int) -> DecodeProblem:
    """Return the problem of all items after too many rejected ones."""
    return DecodeProblem(
        "not validated, because too many items before it were rejected",
        accepted=f"at most {most:,} rejected items in a request",
        hint="correct the first ones and send the rest again",
    )


def append_items(store: Store, items: Sequence[SubmissionItem]) -> list[AppendOutcome]:
    """Append the valid ones of some items in one transaction; return an outcome for each item."""
    valid = [item for item in items if isinstance(item, Publication)]
    [appended] = store.journal.append_batches([AppendBatch(add_trace(valid))]) if valid else [[]]
    outcomes = iter(appended or ())
    return [item if isinstance(item, InputError) else next(outcomes) for item in items]


def _validate_item(item: SubmissionItem, schema: EventSchema | None, audience: str | None) -> SubmissionItem:
    try:
        return _validate_or_raise(item, schema, audience)
    except InputError as problem:
        return problem.with_traceback(None)


def _validate_or_raise(item: SubmissionItem, schema: EventSchema | None, audience: str | None) -> Publication:
    """Return the publication with its id and audience: those given, or those that it claims as a CloudEvent."""
    if isinstance(item, InputError):
        raise item
    claims = kind_of(item.media_type).check(item.body, item.media_type, schema)
    if not item.id and claims.id:
        item = replace(item, id=claims.id, source=claims.source)
    label = None
    for claimed in (item.audience, audience, claims.audience):
        if claimed is not None and label not in (None, claimed):
            # One author would reveal, or hide, content against the intention of the other.
            raise DecodeProblem("two audiences", where="audience", received=f"{label!r} and {claimed!r}")
        label = label if claimed is None else claimed
    return item if label == item.audience else replace(item, audience=label)

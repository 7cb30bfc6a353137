"""Submissions: a body and its media type, divided into publications.

    application/json, application/cloudevents+json     an event
    application/xml, text/xml                          a document
    text/turtle, application/ld+json, ...              a graph; several graphs, and the items of feeds, are divided
    application/x-ndjson, application/jsonl            an event on each line
    application/cloudevents-batch+json                 an array of CloudEvents

A JSON object with a `specversion` is a CloudEvent, whatever its media type. Its own id becomes the id of the
publication, unless the submission names another one.
"""

from __future__ import annotations

import json
import sys
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tidings.core.arguments import wrong_type
from tidings.errors import DecodeProblem, InputError, LimitExceeded, PublicationError
from tidings.events.json_decoder import text_of
from tidings.events.kind import CLOUD_EVENT, EVENTS
from tidings.graphs.rdf.media_types import plain
from tidings.kinds import Kind, Part, find_kind, kind_of, kinds, media_types
from tidings.model import Publication
from tidings.parsers.strict_json import (
    BATCHED,
    MOST_VALUES,
    has_more_values,
    parse,
    parse_value,
    values_problem,
)
from tidings.store import names
from tidings.store.audiences import check_label

CLOUD_EVENT_BATCH = "application/cloudevents-batch+json"
_STRUCTURED = "application/cloudevents"
"""Prefix of the media types that hold whole CloudEvents, one or several."""

JSON_LINES_TYPES = frozenset(EVENTS.line_types)

_encode_json = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


@dataclass(frozen=True, slots=True)
class SubmissionLimits:
    """Maximum numbers of items of a submission, values of a JSON text, and rejected items.

    After more rejections than that, the remaining items are not validated.
    """

    items: int = 100_000
    values: int = MOST_VALUES
    rejections: int = 1_000


UNLIMITED = SubmissionLimits(sys.maxsize, sys.maxsize, sys.maxsize)
"""For callers in this process, which have the body in memory anyway."""


@dataclass(frozen=True, slots=True)
class Submission:
    """A body to publish. `attributes` are those of a CloudEvent in binary mode, whose data is the body.

    With `is_single` the body is never divided: one that holds several publications is rejected.
    """

    body: bytes
    media_type: str
    id: str | None = None
    id_field: str | None = None
    base: str | None = None
    audience: str | None = None
    attributes: Mapping[str, str] | None = None
    limits: SubmissionLimits = SubmissionLimits()
    is_single: bool = False


SubmissionItem = Publication | InputError
"""A publication, or the reason why an item is rejected."""


@dataclass(frozen=True, slots=True)
class ParsedSubmission:
    """The items of a submission. Those of lines are parsed when they are read.

    `are_valid` is true for the parts of a divided body: dividing it has parsed each of them.
    """

    submission: Submission
    items: Iterable[SubmissionItem]
    are_valid: bool = False


class UnknownMediaType(InputError):
    """Nothing of this media type can be published."""


def accepted_media_types() -> tuple[str, ...]:
    """Return the media types that can be published."""
    containers = (media_type for kind in kinds() for media_type in kind.containers)
    lines = (media_type for kind in kinds() for media_type in sorted(kind.line_types))
    return (*media_types(), *containers, *lines, CLOUD_EVENT_BATCH)


def is_bulk(submission: Submission) -> bool:
    """Return whether each item has its own outcome, as lines and batches do; others are published all or none."""
    media_type = plain(submission.media_type)
    is_lines = _find_line_type(media_type) is not None and not is_binary(submission)
    return media_type == CLOUD_EVENT_BATCH or is_lines


def is_binary(submission: Submission) -> bool:
    """Return whether the body is the data of a CloudEvent in binary mode.

    In structured mode the attributes are in the body; headers may repeat them (CloudEvents HTTP binding, 3.2.3).
    """
    return submission.attributes is not None and not plain(submission.media_type).startswith(_STRUCTURED)


def parse_submission(submission: Submission) -> ParsedSubmission:
    """Divide a submission into publications by its media type; they are not validated yet.

    Raise problems of the submission as a whole. Problems of single items in bulk are items.
    """
    media_type = plain(submission.media_type)
    _check_parameters(submission, media_type)
    if is_binary(submission):
        return ParsedSubmission(submission, [_parse_binary(submission, media_type)])
    line_type = _find_line_type(media_type)
    if line_type is not None and not submission.is_single:
        check_item_count(submission.body.count(b"\n"), submission.limits.items)
        lines = (line.strip() for line in submission.body.split(b"\n") if line.strip())
        return ParsedSubmission(submission, parse_bodies(lines, line_type, submission))
    if media_type == CLOUD_EVENT_BATCH and not submission.is_single:
        return ParsedSubmission(submission, _parse_batch(submission))
    kind = find_kind(media_type)
    if kind is None or (submission.is_single and media_type not in kind.media_types):
        raise _unknown_media_type(media_type, submission.is_single)
    kind.refuse_empty(submission.body)
    if kind.may_split(media_type) and not submission.is_single:
        parts = kind.split(submission.body, submission.media_type, submission.base)
        if parts is not None:
            return ParsedSubmission(submission, _number_parts(submission, parts), are_valid=True)
    return ParsedSubmission(submission, [_parse_single(submission, media_type, kind)])


def parse_bodies(
    bodies: Iterable[bytes], media_type: str, submission: Submission
) -> Iterator[SubmissionItem]:
    """Yield an item for each of several bodies of one media type; the submission has the field of their ids."""
    kind = kind_of(media_type)
    for body in bodies:
        try:
            yield _parse_body(body, media_type, kind, submission)
        except InputError as problem:
            yield problem.with_traceback(None)


def number_lines(submission: Submission) -> list[int] | None:
    """Return the line number of each item, counted from one; None if the body is not divided by lines."""
    if _find_line_type(plain(submission.media_type)) is None:
        return None
    return [number for number, line in enumerate(submission.body.split(b"\n"), start=1) if line.strip()]


def check_item_count(count: int, most: int) -> None:
    """Reject more items than a request may have: a line of two bytes becomes some hundreds in memory."""
    if count > most:
        raise LimitExceeded(
            "too many items in one request", received=f"{count:,} or more", accepted=f"{most:,}"
        )


def _find_line_type(media_type: str) -> str | None:
    """Return the media type of each line, if bodies of a media type hold a publication on each line."""
    kind = find_kind(media_type)
    return kind.line_types.get(media_type) if kind else None


def _unknown_media_type(media_type: str, is_single: bool) -> UnknownMediaType:
    accepted = media_types() if is_single else accepted_media_types()
    return UnknownMediaType(
        "this media type cannot be published",
        received=media_type[:200] or "no media type",
        accepted=", ".join(accepted),
    )


def _check_parameters(submission: Submission, media_type: str) -> None:
    if submission.audience is not None:
        check_label(submission.audience)
    if submission.id is not None and is_bulk(submission):
        hint = "name the field that holds the id of each publication: id_field"
        raise InputError("an id for several publications", where="id", hint=hint)
    if submission.id_field is not None:
        _check_id_field(submission, media_type)
    _check_value_count(submission, media_type)


def _check_id_field(submission: Submission, media_type: str) -> None:
    kind = find_kind(media_type)
    if is_binary(submission) or kind is None or not kind.has_id_field:
        with_field = [kind for kind in kinds() if kind.has_id_field]
        accepted = [name for kind in with_field for name in (*kind.media_types, *sorted(kind.line_types))]
        message = "only events have a field with their id"
        raise InputError(message, where="id_field", received=media_type, accepted=", ".join(accepted))
    if submission.id:
        received = f"id={submission.id}"[:200]
        raise InputError("both an id and a field with the id", where="id_field", received=received)


def _check_value_count(submission: Submission, media_type: str) -> None:
    """Reject JSON with too many values. A batch may have several times as many; lines are counted one by one."""
    if media_type and not _is_json(media_type):
        return
    is_batch = media_type == CLOUD_EVENT_BATCH or any(media_type in kind.containers for kind in kinds())
    most = submission.limits.values * (BATCHED if is_batch else 1)
    if has_more_values(submission.body, most):
        raise LimitExceeded("too many values in this JSON", accepted=f"at most {most:,} values")


def _is_json(media_type: str) -> bool:
    return media_type.endswith(("/json", "+json"))


def _parse_single(submission: Submission, media_type: str, kind: Kind) -> Publication:
    id = names.check_chosen_id(submission.id)
    if submission.id_field is not None:
        id = kind.find_id(submission.body, submission.id_field) or ""
    if media_type == CLOUD_EVENT and not id:
        _check_cloud_event(parse(submission.body))
    if submission.base is None:
        return Publication(id, media_type, submission.body)
    return Publication(id, *kind.resolve(submission.body, submission.media_type, submission.base))


def _parse_body(body: bytes, media_type: str, kind: Kind, submission: Submission) -> Publication:
    if not isinstance(body, bytes):
        raise wrong_type("bodies", body, bytes)
    if has_more_values(body, submission.limits.values):
        raise values_problem(submission.limits.values)
    id = kind.find_id(body, submission.id_field) if submission.id_field else None
    return Publication(id or "", media_type, body)


def _number_parts(submission: Submission, parts: Sequence[Part]) -> list[SubmissionItem]:
    """Return the parts of a body as publications. If the submission has an id, theirs are numbered."""
    id = names.check_chosen_id(submission.id)
    return [
        Publication(f"{id}-{number}" if id else "", *part, audience=submission.audience)
        for number, part in enumerate(parts, start=1)
    ]


def _parse_batch(submission: Submission) -> Iterator[SubmissionItem]:
    elements = parse_value(submission.body)
    if not isinstance(elements, list):
        raise DecodeProblem("the body is not a JSON array", accepted="an array of CloudEvents")
    check_item_count(len(elements), submission.limits.items)
    return map(_parse_element, elements)


def _parse_element(element: Any) -> SubmissionItem:
    try:
        _check_cloud_event(element)
    except PublicationError as problem:
        return problem.with_traceback(None)
    return Publication("", CLOUD_EVENT, _encode_json(element).encode())


def _check_cloud_event(value: Any) -> None:
    """Reject an object without `specversion`: it would be an ordinary event, envelope and all."""
    if not isinstance(value, dict) or "specversion" not in value:
        raise DecodeProblem("not a CloudEvent", accepted='an object with a "specversion"')


def _parse_binary(submission: Submission, media_type: str) -> Publication:
    """Build the publication of a CloudEvent in binary mode.

    Data of another kind, such as a document, is published as that kind. All other data becomes a CloudEvent in
    structured mode.
    """
    attributes = dict(submission.attributes or {})
    id, source = names.check_chosen_id(submission.id), None
    if not id:
        id, source = attributes.get("id", ""), attributes.get("source")
    events, kind = kind_of(CLOUD_EVENT), find_kind(media_type)
    if kind is not None and kind is not events and media_type in kind.media_types:
        envelope = _encode_json(attributes).encode("utf-8", "surrogatepass")
        audience = events.check(envelope, CLOUD_EVENT).audience
        kind.refuse_empty(submission.body)
        publication = _parse_single(replace(submission, id=id or None), media_type, kind)
        return replace(publication, audience=audience)
    media_type_attribute = {"datacontenttype": submission.media_type} if media_type else {}
    body = _encode_structured(
        dict(sorted(attributes.items())) | media_type_attribute, media_type, submission.body
    )
    return Publication(id, CLOUD_EVENT, body, source=source)


def _encode_structured(envelope: Mapping[str, str], media_type: str, body: bytes) -> bytes:
    head = _encode_json(envelope)[:-1].encode("utf-8", "surrogatepass")
    if not body:
        return head + b"}"
    if not media_type or _is_json(media_type):
        parse_value(body)  # it is copied: anything but one JSON value would change the envelope
        return head + b',"data":' + body.strip() + b"}"
    text = text_of(envelope["datacontenttype"], body)
    if text is not None:
        return head + b',"data":' + _encode_json(text).encode() + b"}"
    return head + b',"data_base64":"' + b64encode(body) + b'"}'

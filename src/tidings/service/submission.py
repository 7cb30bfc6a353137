"""What somebody sends, as publications: one or many, by its media type.

    application/json, application/cloudevents+json     an event
    application/xml, text/xml                          a document
    text/turtle, application/ld+json, ...              a graph; several graphs and the items of feeds are taken apart
    application/x-ndjson, application/jsonl            an event a line
    application/cloudevents-batch+json                 several CloudEvents

What has a `specversion` is a CloudEvent, sent as an event, too. Its id is that of the publication, unless another one
is given.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from tidings.core import suggest
from tidings.errors import DecodeProblem, InputError, OverLimit, PublicationError
from tidings.events.json_decoder import publication_id, text_of
from tidings.events.kind import CLOUD_EVENT, EVENTS
from tidings.events.schema.event_schema import EventSchema
from tidings.graphs.rdf.media_types import plain
from tidings.kinds import JSON, Kind, Part, find_kind, kind_of, kinds, media_types
from tidings.model import Publication
from tidings.parsers.strict_json import (
    BATCHED,
    MOST_VALUES,
    has_more_values,
    parse,
    parse_value,
    seem_lines,
    values_problem,
)
from tidings.service.arguments import check_own_id as given_id
from tidings.service.ingest import PUBLISH_CHUNK, assign_own_id, resolve_label
from tidings.store.audiences import check_label
from tidings.store.journal import AppendResult
from tidings.store.store import Store

CLOUD_EVENT_BATCH = "application/cloudevents-batch+json"
_WHOLE = "application/cloudevents"
"""How the media types of whole CloudEvents begin, of one or of several."""


JSON_LINES_TYPES = frozenset(EVENTS.line_types)


def accepted_media_types() -> tuple[str, ...]:
    """Return the media types that may be published."""
    containers = (media_type for kind in kinds() for media_type in kind.containers)
    lines = (media_type for kind in kinds() for media_type in sorted(kind.line_types))
    return (*media_types(), *containers, *lines, CLOUD_EVENT_BATCH)


_write = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


@dataclass(frozen=True, slots=True)
class Submission:
    """What somebody sends. `context` are the attributes of a CloudEvent that come beside its data (binary mode), `most`
    is how many there may be of many, `values` how many values a JSON text may have, and `refusals` how many of many may
    be refused before the rest is not read.
    """

    body: bytes
    media_type: str
    id: str | None = None
    id_field: str | None = None
    base: str | None = None
    audience: str | None = None
    context: Mapping[str, str] | None = None
    most: int = 100_000
    values: int = MOST_VALUES
    refusals: int = 1_000


SubmissionItem = Publication | InputError
"""A publication that is good, or why it is none."""


UNSPECIFIED_TYPES = ("", "application/x-www-form-urlencoded", "application/octet-stream", "text/plain")
"""Media types of programs that were not told any."""
CONTENT_TYPE_HINT = "say what is sent, for an event Content-Type: application/json"


JSON_LINES_HINT = "where many are taken they come one a line, as Content-Type: application/x-ndjson"


def hint_json_lines(body: bytes) -> str | None:
    """A hint for whoever sends JSON Lines and does not say so."""
    return f"these look like lines; {JSON_LINES_HINT}" if seem_lines(body) else None


class WrongType(InputError):
    """Nothing of this media type can be published."""


def is_bulk(sent: Submission) -> bool:
    """Whether each of many stands for itself: what is wrong with one is no matter of the others."""
    media_type = plain(sent.media_type)
    return media_type == CLOUD_EVENT_BATCH or (_line_type(media_type) is not None and not is_binary(sent))


def is_binary(sent: Submission) -> bool:
    """Whether it is the data of a CloudEvent, whose attributes came beside it. What is a CloudEvent by its media type
    has them inside, and whoever sends it may say them again in headers (HTTP binding, 3.2.3).
    """
    return sent.context is not None and not plain(sent.media_type).startswith(_WHOLE)


def parse_submission(sent: Submission, schema: EventSchema | None) -> list[SubmissionItem]:
    """Divide a submission into publications, and validate each.

    Where publications do not stand for themselves, the first problem is raised; so is one that concerns all of them.
    """
    if sent.audience is not None:
        check_label(sent.audience)
    media_type = plain(sent.media_type)
    line_type = _line_type(media_type)
    if sent.id_field is not None:
        _check_id_field(sent, media_type)
    _refuse_many_values(sent, media_type)
    if is_binary(sent):
        return [_checked(_binary(sent, media_type), schema, sent.audience)]
    if line_type is not None:
        refuse_too_many(sent.body.count(b"\n"), sent.most)
        lines = [line for line in sent.body.split(b"\n") if line.strip()]
        return _each(lines, lambda line: _line(line, line_type, sent), schema, sent)
    if media_type == CLOUD_EVENT_BATCH:
        elements = _elements(sent.body)
        refuse_too_many(len(elements), sent.most)
        return _each(elements, _element, schema, sent)
    kind = find_kind(media_type)
    if kind is None:
        raise _wrong_type(sent, media_type)
    if kind.may_split(media_type):
        _refuse_empty(sent, kind)
        parts = kind.split(sent.body, sent.media_type, sent.base)
        if parts is not None:
            return [*_parts(sent, parts)]
    try:
        return [_checked(_one(sent, media_type, kind), schema, sent.audience)]
    except DecodeProblem as problem:
        hint = hint_json_lines(sent.body) if media_type == JSON else None
        raise problem.with_hint(hint) if hint else problem from None


def _line_type(media_type: str) -> str | None:
    """Return the media type of the lines, for bodies with a publication on each line."""
    kind = find_kind(media_type)
    return kind.line_types.get(media_type) if kind else None


def _check_id_field(sent: Submission, media_type: str) -> None:
    kind = find_kind(media_type)
    if is_binary(sent) or kind is None or not kind.has_id_field:
        with_field = [kind for kind in kinds() if kind.has_id_field]
        accepted = [name for kind in with_field for name in (*kind.media_types, *sorted(kind.line_types))]
        what = "only events have a field with their id"
        raise InputError(what, where="id_field", received=media_type, accepted=", ".join(accepted))


def _wrong_type(sent: Submission, media_type: str) -> WrongType:
    return WrongType(
        "nothing of this media type can be published",
        where="Content-Type",
        received=media_type[:200] or "nothing",
        accepted=", ".join(accepted_media_types()),
        hint=hint_json_lines(sent.body) or CONTENT_TYPE_HINT if media_type in UNSPECIFIED_TYPES else None,
    )


def _refuse_many_values(sent: Submission, kind: str) -> None:
    """Refuse JSON of more values than allowed; a batch may have some times as many, and of lines each is counted."""
    if not (kind.endswith(("/json", "+json")) or not kind):
        return
    batched = kind == CLOUD_EVENT_BATCH or any(kind in each.containers for each in kinds())
    most = sent.values * (BATCHED if batched else 1)
    if has_more_values(sent.body, most):
        raise OverLimit("too many values in this JSON", accepted=f"at most {most:,} values")


def refuse_too_many(count: int, most: int) -> None:
    """Refuse more than may come together: a line of two bytes becomes some hundreds of them in memory."""
    if count > most:
        raise OverLimit("too many at once", received=f"{count:,} or more", accepted=f"{most:,}")


def _one(sent: Submission, media_type: str, kind: Kind) -> Publication:
    id = given_id(sent.id)
    _refuse_empty(sent, kind)
    if sent.id_field is not None and id:
        raise InputError("two places for one id", where="id_field", received=f"id={id}"[:200])
    if sent.id_field is not None:
        id = kind.find_id(sent.body, sent.id_field) or ""
    if media_type == CLOUD_EVENT and not id:
        return _by_its_id(_whole(parse(sent.body)), sent.body)
    if sent.base is None:
        return Publication(id, media_type, sent.body)
    return Publication(id, *kind.resolve(sent.body, sent.media_type, sent.base))


def _parts(sent: Submission, parts: Sequence[Part]) -> list[Publication]:
    """The publications in a body. With an id, theirs are numbered."""
    id = given_id(sent.id)
    ids = (f"{id}-{n}" if id else "" for n in count(1))
    return [Publication(name, *part, audience=sent.audience) for name, part in zip(ids, parts, strict=False)]


def _refuse_empty(sent: Submission, kind: Kind) -> None:
    """Turtle often begins with an @, and curl's `-d '@prefix ...'` sends a file of that name, or nothing."""
    try:
        kind.refuse_empty(sent.body)
    except DecodeProblem as problem:
        hint = "curl -d '@...' sends what is in a file; --data-binary @page.ttl sends one as it is"
        raise problem.with_hint(hint) from None


def _binary(sent: Submission, media_type: str) -> Publication:
    """A CloudEvent whose attributes come as headers.

    Data of a kind that is no event is published as such; other data is kept in the structured mode, as it came.
    """
    context = dict(sent.context or {})
    id, source = given_id(sent.id), None
    if not id:
        id, source = context.get("id", ""), context.get("source")
    events, kind = kind_of(CLOUD_EVENT), find_kind(media_type)
    if kind is not None and kind is not events and media_type in kind.media_types:
        attributes = _write(context).encode("utf-8", "surrogatepass")  # checked as those of an event are
        label = resolve_label(events.check(attributes, CLOUD_EVENT), None)
        return replace(_one(replace(sent, id=id or None), media_type, kind), audience=label)
    envelope = dict(sorted(context.items())) | ({"datacontenttype": sent.media_type} if media_type else {})
    return Publication(id, CLOUD_EVENT, _structured(envelope, media_type, sent.body), source=source)


def _structured(envelope: Mapping[str, str], kind: str, body: bytes) -> bytes:
    head = _write(envelope)[:-1].encode("utf-8", "surrogatepass")
    if not body:
        return head + b"}"
    if not kind or kind.endswith(("/json", "+json")):
        parse_value(body)  # so that nothing but a value stands between the braces
        return head + b',"data":' + body.strip() + b"}"
    text = text_of(envelope["datacontenttype"], body)
    if text is not None:
        return head + b',"data":' + _write(text).encode() + b"}"
    return head + b',"data_base64":"' + b64encode(body) + b'"}'


def _line(line: bytes, media_type: str, sent: Submission) -> Publication:
    if has_more_values(line, sent.values):
        raise values_problem(sent.values)
    id = kind_of(media_type).find_id(line, sent.id_field) if sent.id_field else None
    return Publication(id or "", media_type, line.strip())


def _elements(body: bytes) -> list[Any]:
    found = parse_value(body)
    if not isinstance(found, list):
        raise DecodeProblem("the body is not a JSON array", accepted="an array of CloudEvents")
    return found


def _element(element: Any) -> Publication:
    return _by_its_id(_whole(element), _write(element).encode())


def _by_its_id(event: Mapping[str, Any], body: bytes) -> Publication:
    """A CloudEvent under its own id, of which its source may have used another one. What is wrong with them is said
    when it is checked.
    """
    source = event.get("source")
    said = source if isinstance(source, str) else None
    return Publication(publication_id(event) or "", CLOUD_EVENT, body, source=said)


def _whole(element: Any) -> dict[str, Any]:
    """What is sent as a CloudEvent is one: without a version it would be an event of its own, envelope and all."""
    if not isinstance(element, dict) or "specversion" not in element:
        raise DecodeProblem("not a CloudEvent", accepted='an object with a "specversion"')
    return element


def _each(
    given: Sequence[Any],
    publication: Callable[[Any], Publication],
    schema: EventSchema | None,
    sent: Submission,
) -> list[SubmissionItem]:
    """Check each of many; when too many were refused the rest is not read, and has one and the same problem."""
    unread, refused, found = unread_problem(sent.refusals), 0, list[SubmissionItem]()
    with suggest.bounded_search():
        for one in given:
            if refused > sent.refusals:
                found.append(unread)
                continue
            try:
                found.append(_checked(publication(one), schema, sent.audience))
            except PublicationError as problem:
                refused += 1
                found.append(problem.with_traceback(None))
    return found


def unread_problem(refusals: int) -> DecodeProblem:
    """Return the problem of all that stand after so many that were refused."""
    what, hint = "not read: too many before it were refused", "correct the first ones and send the rest again"
    return DecodeProblem(what, accepted=f"at most {refusals:,} refusals in a request", hint=hint)


def _checked(one: Publication, schema: EventSchema | None, audience: str | None) -> Publication:
    """It with its label and its id: those given, or those that it says itself."""
    claims = kind_of(one.media_type).check(one.body, one.media_type, schema)
    one = assign_own_id(one, claims)
    label = resolve_label(claims, audience)
    if one.audience is not None and label is not None and one.audience != label:
        received = f"{one.audience!r} and {label!r}"
        raise DecodeProblem("two audiences", where="audience", received=received)
    return one if label is None or one.audience is not None else replace(one, audience=label)


# What somebody sends, into the journal: the same for those who send it over HTTP and for those who paste it.
#
#     found = offered(sent, schema)          what it is, each checked
#     outcomes = take(store, sent, found)    where each of them stands now, or why it does not
#
# What belongs together is taken as a whole or not at all. Of many that stand for themselves each has its outcome.


SubmissionOutcome = AppendResult | InputError


def append_submission(
    store: Store, sent: Submission, found: Sequence[SubmissionItem]
) -> list[SubmissionOutcome]:
    """Make it durable: an outcome for each, in the order in which they came."""
    good = [one for one in found if isinstance(one, Publication)]
    if not is_bulk(sent):
        return [*store.journal.append_all(good)]
    if sent.id is not None:
        raise InputError("an id is for one publication", where="id", hint="?id_field= names where ids are")
    chunks = range(0, len(good), PUBLISH_CHUNK)
    taken = iter(
        [one for start in chunks for one in store.journal.offer(good[start : start + PUBLISH_CHUNK])]
    )
    return [one if isinstance(one, InputError) else next(taken) for one in found]


def number_lines(sent: Submission) -> list[int] | None:
    """The numbers of the lines that the outcomes are of, counted from one; none if it is not taken line by line."""
    if _line_type(plain(sent.media_type)) is None:
        return None
    return [number for number, line in enumerate(sent.body.split(b"\n"), start=1) if line.strip()]

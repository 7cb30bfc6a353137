"""Publications on their way into the journal: checked one by one, durable in chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from tidings.core.arguments import wrong_type
from tidings.errors import DecodeProblem, InputError, PublicationError, TidingsError
from tidings.events.json_decoder import audience_of, cloud_event_id, publication_id, source_of
from tidings.events.schema.event_schema import EventSchema
from tidings.graphs.rdf.media_types import SYNTAXES
from tidings.graphs.rdf.multipart import N_TRIPLES, resolved
from tidings.kinds import MEDIA_TYPES, Decode
from tidings.model import Publication, Reject
from tidings.service.arguments import check_own_id, choose_known
from tidings.store.journal import AppendResult
from tidings.store.store import Store

PUBLISH_CHUNK = 10_000
"""How many publications of many are made durable at a time."""


def publish(
    store: Store,
    body: bytes | str,
    id: str | None,
    media_type: str,
    base: str | None,
    schema: EventSchema | None,
    audience: str | None = None,
) -> AppendResult:
    data = body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body
    refuse_empty(data, media_type)
    if base is not None:
        data, media_type = _resolved(data, media_type, base), N_TRIPLES
    said = choose_known("a media type", media_type, MEDIA_TYPES)(data, schema)
    label = resolve_label(said, audience)
    one = assign_own_id(Publication(check_own_id(id), media_type, data, audience=label), said)
    [outcome] = store.journal.offer([one])
    if isinstance(outcome, InputError):
        raise outcome
    return outcome


def publish_named(
    store: Store,
    bodies: Mapping[str, bytes],
    media_type: str,
    schema: EventSchema | None,
    audience: str | None = None,
) -> dict[str, AppendResult | InputError]:
    """All in one transaction; what is refused stands for itself."""
    decoder = choose_known("a media type", media_type, MEDIA_TYPES)
    outcomes: dict[str, AppendResult | InputError] = {}
    good = []
    for id, body in bodies.items():
        if not isinstance(id, str):
            raise wrong_type("bodies", id, str, "publish_named({'p1': b'{}'})")
        if not isinstance(body, bytes):
            outcomes[id] = wrong_type("bodies", body, bytes)
            continue
        try:
            label = resolve_label(decoder(body, schema), audience)
            good.append(Publication(id, media_type, body, audience=label))
        except PublicationError as problem:
            outcomes[id] = problem
    appended = store.journal.offer(good) if good else []
    return outcomes | {one.id: outcome for one, outcome in zip(good, appended, strict=True)}


def publish_many(
    store: Store,
    bodies: Iterable[bytes],
    id_field: str | None,
    media_type: str,
    schema_now: Callable[[], EventSchema | None],
    audience: str | None = None,
) -> Iterator[AppendResult | Reject]:
    """Each chunk is checked against the schema of that moment."""
    decoder = choose_known("a media type", media_type, MEDIA_TYPES)
    schema, number, chunk = schema_now(), 0, []
    for number, body in enumerate(bodies, start=1):
        chunk.append(_checked(number, body, id_field, media_type, decoder, schema, audience))
        if len(chunk) == PUBLISH_CHUNK:
            yield from _append(store, chunk, number)
            chunk, schema = [], schema_now()
    yield from _append(store, chunk, number)


def _append(
    store: Store, chunk: Sequence[Publication | Reject], last: int
) -> Iterator[AppendResult | Reject]:
    good = [one for one in chunk if isinstance(one, Publication)]
    outcomes = iter(store.journal.offer(good)) if good else iter(())
    for number, one in enumerate(chunk, start=last - len(chunk) + 1):
        outcome = one if isinstance(one, Reject) else next(outcomes)
        yield _reject(number, outcome) if isinstance(outcome, InputError) else outcome


def refuse_empty(body: bytes, media_type: str) -> None:
    """Refuse a graph of which nothing was sent: what should have been is somewhere else. An empty graph that somebody
    wrote, `# nothing today` say, is a graph.
    """
    if media_type in SYNTAXES and not body.strip():
        raise DecodeProblem("the body is empty", accepted="a graph, such as <urn:a> <urn:b> 5 .")


def _resolved(body: bytes, media_type: str, base: str) -> bytes:
    if media_type not in SYNTAXES:
        accepted = ", ".join(SYNTAXES)
        raise InputError("only graphs have a base", received=media_type, accepted=accepted)
    return resolved(body, media_type, base)


def _checked(
    number: int,
    body: bytes,
    id_field: str | None,
    media_type: str,
    decoder: Decode,
    schema: EventSchema | None,
    audience: str | None,
) -> Publication | Reject:
    if not isinstance(body, bytes):
        return _reject(number, wrong_type("bodies", body, bytes))
    try:
        said = decoder(body, schema)
        label = resolve_label(said, audience)
        id = publication_id(body, id_field) if id_field else None
    except PublicationError as error:
        return _reject(number, error)
    return assign_own_id(Publication(id or "", media_type, body, audience=label), said)


def assign_own_id(one: Publication, said: object) -> Publication:
    """It by the id that it says itself, as a CloudEvent, unless it was given one; without any the store makes one."""
    if one.id or not isinstance(said, Mapping):
        return one
    id = cloud_event_id(said, one.body)
    return replace(one, id=id, source=source_of(said)) if id else one


def resolve_label(said: object, given: str | None) -> str | None:
    """The label of a publication: the one given, or the one that a CloudEvent itself carries. Two that differ are
    refused: whoever loses would be shown, or denied, what the other one meant.
    """
    carried = audience_of(said) if isinstance(said, Mapping) else None
    if given is not None and carried is not None and given != carried:
        raise DecodeProblem("two audiences", where="audience", received=f"{given!r} and {carried!r}")
    return carried if given is None else given


def _reject(number: int, error: TidingsError) -> Reject:
    return Reject("publication", f"line {number}", str(error), error.facts())

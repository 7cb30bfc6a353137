"""Publications on their way into the journal: checked one by one, durable in chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from tidings.core.arguments import wrong_type
from tidings.errors import DecodeProblem, InputError, PublicationError, TidingsError
from tidings.events.schema.event_schema import EventSchema
from tidings.kinds import Claims, Kind, kind_of, media_types
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
    kind = choose_kind(media_type)
    kind.refuse_empty(data)
    if base is not None:
        media_type, data = kind.resolve(data, media_type, base)
    claims = kind.check(data, media_type, schema)
    label = resolve_label(claims, audience)
    one = assign_own_id(Publication(check_own_id(id), media_type, data, audience=label), claims)
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
    kind = choose_kind(media_type)
    outcomes: dict[str, AppendResult | InputError] = {}
    good = []
    for id, body in bodies.items():
        if not isinstance(id, str):
            raise wrong_type("bodies", id, str, "publish_named({'p1': b'{}'})")
        if not isinstance(body, bytes):
            outcomes[id] = wrong_type("bodies", body, bytes)
            continue
        try:
            label = resolve_label(kind.check(body, media_type, schema), audience)
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
    kind = choose_kind(media_type)
    schema, number, chunk = schema_now(), 0, []
    for number, body in enumerate(bodies, start=1):
        chunk.append(_checked(number, body, id_field, media_type, kind, schema, audience))
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


def choose_kind(media_type: str) -> Kind:
    """Return the kind of a media type of single publications, or reject the media type."""
    return choose_known("a media type", media_type, {name: kind_of(name) for name in media_types()})


def _checked(
    number: int,
    body: bytes,
    id_field: str | None,
    media_type: str,
    kind: Kind,
    schema: EventSchema | None,
    audience: str | None,
) -> Publication | Reject:
    if not isinstance(body, bytes):
        return _reject(number, wrong_type("bodies", body, bytes))
    try:
        claims = kind.check(body, media_type, schema)
        label = resolve_label(claims, audience)
        id = kind.find_id(body, id_field) if id_field else None
    except PublicationError as error:
        return _reject(number, error)
    return assign_own_id(Publication(id or "", media_type, body, audience=label), claims)


def assign_own_id(publication: Publication, claims: Claims) -> Publication:
    """Give a publication the id that it claims itself, as a CloudEvent does, unless it has one.

    Without any, the store makes one.
    """
    if publication.id or not claims.id:
        return publication
    return replace(publication, id=claims.id, source=claims.source)


def resolve_label(claims: Claims, given: str | None) -> str | None:
    """Return the label of a publication: the one given, or the one that a CloudEvent itself carries.

    Two that differ are rejected: one of the two authors would show, or hide, what the other one did not mean to.
    """
    if given is not None and claims.audience is not None and given != claims.audience:
        raise DecodeProblem("two audiences", where="audience", received=f"{given!r} and {claims.audience!r}")
    return claims.audience if given is None else given


def _reject(number: int, error: TidingsError) -> Reject:
    return Reject("publication", f"line {number}", str(error), error.facts())

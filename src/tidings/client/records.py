"""Records that the service answers with, as frozen dataclasses, and how they are parsed.

Parsers ignore unknown members, so an older client works with a newer service.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Generic, TypeVar
from urllib.parse import unquote

from tidings.errors import InputError, TextWarning, TidingsError, error_from, warning_from
from tidings.model import Notification, Reason

T = TypeVar("T")
Members = Mapping[str, Any]

_SOURCE = "/subscriptions/"


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One page of a list, and the cursor of the next page; `None` on the last one."""

    items: tuple[T, ...]
    next: Any


@dataclass(frozen=True, slots=True)
class PublishResult:
    """A durable publication. `new` is false if it was published before.

    `parts` are the graphs of a file or the items of a feed, each a publication of its own.
    """

    id: str
    position: int
    new: bool
    parts: tuple[PublishResult, ...] = ()


@dataclass(frozen=True, slots=True)
class Health:
    """Counters of a subscription, and the outcome of its latest deliveries."""

    matched: int
    last_matched: str | None
    delivered: int
    last_success: str | None
    consecutive_failures: int
    last_error: str | None


@dataclass(frozen=True, slots=True)
class Subscription:
    """A subscription with its state and health. `reason` is why the service suspended it.

    `predicates`, `reached_through` and `warnings` are set by calls that compile the text: subscribe and change.
    """

    id: str
    subscriber: str
    language: str
    text: str
    within: str | None
    state: str
    paused: str | None
    health: Health
    reason: str | None = None
    predicates: int | None = None
    reached_through: str | None = None
    warnings: tuple[TextWarning, ...] | None = None


@dataclass(frozen=True, slots=True)
class SubscribeResult:
    """One subscription of a bulk request. `new` is false if it existed before."""

    id: str
    new: bool
    warnings: tuple[TextWarning, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of compiling a text without subscribing."""

    language: str
    predicates: int
    reached_through: str
    warnings: tuple[TextWarning, ...] = ()


@dataclass(frozen=True, slots=True)
class Content:
    """The body of a publication: JSON as a value, other text as `str`, anything that is not UTF-8 as `bytes`."""

    id: str
    media_type: str
    body: Any


@dataclass(frozen=True, slots=True)
class PreviewMatch:
    """A publication that would have matched, and why. `words` are the reasons in plain English."""

    content: Content
    because: tuple[Reason, ...]
    bindings: dict[str, Any] | None
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Preview:
    """Which of the latest publications would have matched, newest first.

    `complete` is false if a limit was reached before all requested publications were examined. `skipped` counts
    publications that do not fit the current schema; `notes` give the reasons.
    """

    looked_at: int
    complete: bool
    matches: tuple[PreviewMatch, ...]
    notes: tuple[str, ...]
    warnings: tuple[TextWarning, ...] = ()
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class ReceivedNotification(Notification):
    """A notification; `sequence` is its cursor.

    `content` is the publication. It is `None` for resources and objects, for bodies that are too large, and for
    notifications of kind `withheld`, whose publication the subscriber may no longer see.
    """

    content: Content | None = None


@dataclass(frozen=True, slots=True)
class NotificationPage:
    """Notifications, the cursor after which the next page begins, and the subscriber's position."""

    notifications: tuple[ReceivedNotification, ...]
    cursor: int
    last: int
    acknowledged: int


@dataclass(frozen=True, slots=True)
class AckPosition:
    """Up to which sequence number everything is acknowledged, when, and the latest number."""

    acknowledged: int
    last: int
    time: str | None = None

    @property
    def unread(self) -> int:
        return self.last - self.acknowledged


@dataclass(frozen=True, slots=True)
class DeliveryHealth:
    """Outcome of the deliveries to a destination."""

    delivered: int
    last_success: str | None
    consecutive_failures: int
    last_failure: str | None
    last_error: str | None


@dataclass(frozen=True, slots=True)
class Destination:
    """A destination of notifications. `target` omits credentials; `secret` is set only when it was just created."""

    id: str
    subscriber: str
    subscription: str | None
    kind: str
    target: str
    name: str
    state: str
    reason: str | None
    made: str
    old_secret_until: str | None
    health: DeliveryHealth
    dead_letters: int
    secret: str | None = None


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """Entries `first` to `last` of a subscription that could not be delivered; `due` is the time of the next retry."""

    number: int
    subscription: str
    first: int
    last: int
    digest: bool
    message: str
    problem: str
    attempts: int
    time: str
    due: str | None


@dataclass(frozen=True, slots=True)
class DestinationTest:
    """The outcome of sending a sample to a destination; `taken` is true if the receiver accepted it."""

    taken: bool
    seconds: float
    status: int | None
    problem: str | None


@dataclass(frozen=True, slots=True)
class Feed:
    """The address of a feed; without a subscription, of the list of all feeds (OPML).

    Anyone with the address can read the feed. It is `None` if it was created with the key of another home folder.
    """

    subscription: str | None
    address: str | None


def make_parser(kind: type[T]) -> Callable[[Members], T]:
    """Return a function that builds a record from the members of a JSON object."""
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    return lambda answer: kind(**{name: answer[name] for name in names if name in answer})


_health = make_parser(Health)
_subscription = make_parser(Subscription)
_check_result = make_parser(CheckResult)
_delivery_health = make_parser(DeliveryHealth)
_destination = make_parser(Destination)
parse_feed = make_parser(Feed)
parse_dead_letter = make_parser(DeadLetter)
parse_destination_test = make_parser(DestinationTest)
parse_position = make_parser(AckPosition)


def parse_publish_result(answer: Members, id: str = "") -> PublishResult:
    if "publications" not in answer:
        return PublishResult(answer["id"], answer["position"], answer["new"])
    parts = tuple(map(parse_publish_result, answer["publications"]))
    if not parts:
        raise InputError("nothing was published: the body has no items", received=id)
    return PublishResult(id, parts[-1].position, any(part.new for part in parts), parts)


def parse_publish_outcomes(answer: Members) -> list[PublishResult | TidingsError]:
    return [
        error_from(outcome["problem"]) if outcome.get("problem") else parse_publish_result(outcome)
        for outcome in answer["outcomes"]
    ]


def parse_subscription(answer: Members) -> Subscription:
    warnings = _parse_warnings(answer, answer["text"]) if answer.get("warnings") is not None else None
    return _subscription({**answer, "health": _health(answer["health"]), "warnings": warnings})


def parse_subscribe_outcome(outcome: Members, text: object) -> SubscribeResult | TidingsError:
    """Return the outcome of one line of a bulk request; `text` is the subscription of that line."""
    if not (problem := outcome.get("problem")):
        return SubscribeResult(outcome["id"], outcome["new"], _parse_warnings(outcome, str(text)))
    return error_from(problem, text if problem.get("pointer") == "/text" and isinstance(text, str) else None)


def parse_check_result(answer: Members, text: str) -> CheckResult:
    return _check_result({**answer, "warnings": _parse_warnings(answer, text)})


def _parse_warnings(answer: Members, text: str) -> tuple[TextWarning, ...]:
    return tuple(warning_from(facts, text) for facts in answer.get("warnings") or ())


def parse_preview(answer: Members, text: str) -> Preview:
    return Preview(
        answer["looked_at"],
        answer["complete"],
        tuple(map(_parse_preview_match, answer["matches"])),
        tuple(answer["notes"]),
        _parse_warnings(answer, text),
        answer.get("skipped", 0),
    )


def _parse_preview_match(match: Members) -> PreviewMatch:
    content, because = parse_content(match["publication"]), _parse_reasons(match["because"])
    return PreviewMatch(content, because, match["bindings"], tuple(match["words"]))


def _parse_reasons(reasons: Sequence[Members]) -> tuple[Reason, ...]:
    return tuple(Reason(reason["predicate"], reason["value"], reason["at"]) for reason in reasons)


def parse_notification(event: Members) -> ReceivedNotification:
    """Return the notification in a CloudEvent."""
    data = event["data"]
    return ReceivedNotification(
        id=event["id"],
        subscriber=data["subscriber"],
        sequence=data["sequence"],
        subscription=unquote(event["source"].removeprefix(_SOURCE)),
        publication=event.get("subject", ""),
        because=_parse_reasons(data["because"]),
        time=event["time"],
        kind=data["kind"],
        bindings=data["bindings"],
        content=parse_content(data["publication"]) if data["publication"] else None,
    )


def parse_content(publication: Members) -> Content:
    encoded = publication.get("body_base64")
    body = b64decode(encoded) if encoded is not None else publication.get("body")
    return Content(publication["id"], publication["media_type"], body)


def parse_notification_page(answer: Members) -> NotificationPage:
    notifications = tuple(map(parse_notification, answer["notifications"]))
    return NotificationPage(notifications, answer["cursor"], answer["last"], answer["acknowledged"])


def parse_destination(answer: Members) -> Destination:
    return _destination({**answer, "health": _delivery_health(answer["health"])})

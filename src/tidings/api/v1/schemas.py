"""Schemas of requests and responses: the OpenAPI and AsyncAPI documents are generated from them.

Records without constraints of their own are the client's dataclasses (`tidings.client.records`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any, Literal, TypeVar

from pydantic import AwareDatetime, Base64Bytes, BaseModel, ConfigDict, Field, JsonValue

from tidings import errors
from tidings.client.records import Health
from tidings.service.subscription_lines import MAX_LENGTHS

T = TypeVar("T")


class StrictModel(BaseModel):
    model_config = ConfigDict(extra="forbid")


# Errors and warnings


class Place(StrictModel):
    """A place in a text. Line and column start at one."""

    line: int
    column: int
    length: int


class TextWarning(StrictModel):
    """A warning about an accepted text: it can never match, or probably means something else than intended."""

    what: str
    place: Place | None = None
    hint: str | None = None


class Problem(BaseModel):
    """Problem Details (RFC 9457), with the facts of the error as members."""

    model_config = ConfigDict(extra="allow")
    type: str = Field(
        description="The type of problem; `/problems` lists them",
        json_schema_extra={"format": "uri-reference"},
    )
    title: str
    status: int
    detail: str
    instance: str | None = None
    error: str
    what: str
    message: str
    pointer: str | None = Field(
        default=None, description="JSON pointer to the member of the request that is wrong"
    )
    place: Place | None = Field(default=None, description="Where in the text the error is")
    where: str | None = None
    received: str | None = None
    accepted: str | None = None
    hint: str | None = None


def copy_fields(record: type[T], source: object) -> T:
    """Build a record of the client from the attributes of the same names."""
    return record(**{field.name: getattr(source, field.name) for field in fields(record)})  # type: ignore[arg-type]


def build_warnings(warnings: Iterable[errors.TextWarning]) -> list[TextWarning]:
    return [TextWarning.model_validate(warning.facts()) for warning in warnings]


# Notifications and streams


class Reason(StrictModel):
    """A predicate that holds, the value that satisfies it, and the place of that value in the publication."""

    predicate: str
    value: bool | int | float | str | None
    at: str


class Publication(StrictModel):
    """The content of a publication: JSON as a value, other text as a string, anything that is not UTF-8 as base64."""

    id: str
    media_type: str
    body: JsonValue = None
    body_base64: Base64Bytes | None = None


class NotificationData(StrictModel):
    """The data of a notification. Each subscriber has a sequence of its own: 1, 2, 3, without gaps."""

    subscriber: str
    sequence: int = Field(ge=1)
    kind: str = Field(
        description="`matched`; `entered`, `changed` or `left` for metadata; the change for objects; `withheld` if the "
        "subscriber may no longer see the publication; `suspended` if the subscription exceeded its budget too often"
    )
    because: list[Reason]
    bindings: dict[str, Any] | None = Field(
        description="The values of a pattern's variables, or what changed"
    )
    publication: Publication | None = Field(
        description="Null for resources and objects, which are not in the journal, and for large publications"
    )


class CloudEvent(StrictModel):
    """A notification as a CloudEvent, version 1.0."""

    specversion: Literal["1.0"]
    id: str
    type: Literal["tidings.notification"]
    source: str = Field(pattern="^/subscriptions/", json_schema_extra={"format": "uri-reference"})
    subject: str = Field(
        default="",
        description="The id of the publication, resource or change; absent if it is withheld",
    )
    time: AwareDatetime
    datacontenttype: Literal["application/json"]
    data: NotificationData


class NotificationPage(StrictModel):
    """Notifications, oldest first. The next page begins after `cursor`, even if this one is empty."""

    notifications: list[CloudEvent]
    cursor: int
    last: int
    acknowledged: int


class Acknowledgement(StrictModel):
    """Acknowledges everything up to a sequence number."""

    ack: int = Field(ge=0)


class Introduction(StrictModel):
    """The first message of a client that cannot send headers: its token."""

    token: str


# Publications


class PublishResult(StrictModel):
    """A publication in the journal; `new` is false if it was published before."""

    id: str
    position: int
    new: bool


class PublishResults(StrictModel):
    """The graphs of a file or the items of a feed, each a publication."""

    publications: list[PublishResult]


class Outcome(StrictModel):
    """The outcome of one publication of a bulk request: its position, or the problem."""

    line: int | None = Field(default=None, description="The line of the request, from one")
    number: int | None = Field(
        default=None, description="The number of the CloudEvent in the batch, from one"
    )
    id: str | None = None
    position: int | None = None
    new: bool | None = None
    problem: Problem | None = None


class Outcomes(StrictModel):
    """The outcomes of a bulk request, in the order of the request. `known` counts publications that existed before."""

    published: int
    known: int
    refused: int
    outcomes: list[Outcome]


class PublicationView(StrictModel):
    """A publication. The body is a JSON value, text, or base64 if it is not UTF-8; large bodies are left out."""

    id: str
    position: int
    time: str
    media_type: str
    size: int = Field(description="Size of the body in bytes")
    audience: str | None = Field(default=None, description="The audience label, if it is not public")
    body: JsonValue = None
    body_base64: str | None = None


class PublicationPage(StrictModel):
    """Publications, newest first. Request the next page with `before` set to `next`."""

    publications: list[PublicationView]
    next: int | None


# Subscriptions


State = Literal["active", "paused"]


class SubscriptionText(StrictModel):
    """A text in a subscription language."""

    language: str = Field(
        default="predicates",
        max_length=MAX_LENGTHS["language"],
        description="predicates, xpath, gql or rules",
    )
    text: str = Field(max_length=MAX_LENGTHS["text"])


class NewSubscription(SubscriptionText):
    """A subscription to create."""

    id: str | None = Field(
        default=None, max_length=MAX_LENGTHS["id"], description="Generated if it is left out"
    )
    within: str | None = Field(
        default=None,
        max_length=MAX_LENGTHS["within"],
        description="Batch notifications for up to this time, such as `10 minutes`; null notifies immediately",
    )
    subscriber: str | None = Field(
        default=None,
        max_length=MAX_LENGTHS["subscriber"],
        description="The subscriber; only administrators may name another one",
    )
    state: State | None = Field(default=None, description="`paused` creates it paused")


class Replacement(StrictModel):
    """The new text and delay of a subscription."""

    text: str = Field(max_length=MAX_LENGTHS["text"])
    within: str | None = Field(default=None, max_length=MAX_LENGTHS["within"])


class Change(StrictModel):
    """The members of a subscription to change. Members that are left out stay unchanged."""

    text: str | None = Field(default=None, max_length=MAX_LENGTHS["text"])
    within: str | None = Field(default=None, max_length=MAX_LENGTHS["within"])


class Subscription(StrictModel):
    """A subscription with its state and health.

    `predicates`, `reached_through` and `warnings` are present when the text was compiled: on creation and change.
    """

    id: str
    subscriber: str
    language: str
    text: str
    within: str | None
    state: State
    paused: str | None = Field(default=None, description="When it was paused")
    reason: str | None = Field(default=None, description="Why the service suspended it, if it did")
    predicates: int | None = None
    reached_through: str | None = None
    warnings: list[TextWarning] | None = None
    health: Health


class SubscribeOutcome(StrictModel):
    """The outcome of one subscription of a bulk request: its id, or the problem."""

    line: int = Field(description="The line of the request, from one")
    id: str | None = None
    new: bool | None = Field(default=None, description="False if it existed before")
    warnings: list[TextWarning] | None = Field(
        default=None,
        description="Warnings about the text, if there are any; only the first 1,000 texts are checked",
    )
    problem: Problem | None = None


class SubscribeOutcomes(StrictModel):
    """The outcomes of a bulk request, in the order of the request. `known` counts subscriptions that existed before."""

    subscribed: int
    known: int
    refused: int
    outcomes: list[SubscribeOutcome]


class SubscriptionPage(StrictModel):
    """Subscriptions, ordered by id. Request the next page with `after` set to `next`."""

    subscriptions: list[Subscription]
    next: str | None


class CheckResult(StrictModel):
    """The result of compiling a text without subscribing."""

    language: str
    predicates: int
    reached_through: str
    warnings: list[TextWarning]


class PreviewRequest(SubscriptionText):
    """A text, and how many of the latest publications to examine."""

    last: int | None = Field(
        default=None, ge=1, strict=True, description="Default 100, at most the preview limit"
    )
    subscriber: str | None = Field(
        default=None,
        max_length=500,
        description="Preview as this subscriber; only administrators may name another one",
    )


class PreviewMatch(StrictModel):
    """A publication that would have matched."""

    publication: PublicationView
    because: list[Reason]
    bindings: dict[str, Any] | None
    words: list[str] = Field(description="The first reasons and bindings in plain English")


class Preview(StrictModel):
    """Which of the latest publications would have matched, newest first, and why.

    `complete` is false if a limit of time or size was reached before all requested publications were examined.
    """

    looked_at: int
    complete: bool
    matches: list[PreviewMatch]
    skipped: int = Field(description="Publications that do not fit the current schema; `notes` say why")
    notes: list[str]
    warnings: list[TextWarning]

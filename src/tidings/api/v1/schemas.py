"""What goes over the wire, as types: the OpenAPI and the AsyncAPI documents are made of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from pydantic import AwareDatetime, Base64Bytes, BaseModel, ConfigDict, Field, JsonValue

from tidings import errors
from tidings.service.subscription_lines import MAX_LENGTHS


class StrictModel(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Reason(StrictModel):
    """A predicate that held, the value that made it hold, and where that stands in the publication."""

    predicate: str
    value: bool | int | float | str | None
    at: str


class Publication(StrictModel):
    """What was published: JSON as its value, other texts as texts; what is no UTF-8 as base64."""

    id: str
    media_type: str
    body: JsonValue = None
    body_base64: Base64Bytes | None = None


class NotificationData(StrictModel):
    """What a subscriber is told, under a number of its own sequence: 1, 2, 3, without gaps."""

    subscriber: str
    sequence: int = Field(ge=1)
    kind: str = Field(
        description="`matched`; `entered`, `changed` or `left` for metadata; the change for objects; `withheld` for "
        "what its subscriber may not see any more; `suspended` if the subscription exceeded its budget too often"
    )
    because: list[Reason]
    bindings: dict[str, Any] | None = Field(
        description="What a pattern's variables are bound to, or what changed"
    )
    publication: Publication | None = Field(
        description="Null for what is not in the journal, resources and objects, and for what is too large"
    )


class CloudEvent(StrictModel):
    """A notification as a CloudEvent of version 1.0."""

    specversion: Literal["1.0"]
    id: str
    type: Literal["tidings.notification"]
    source: str = Field(pattern="^/subscriptions/", json_schema_extra={"format": "uri-reference"})
    subject: str = Field(
        default="",
        description="The id of the publication, the resource or the change; absent if it is withheld",
    )
    time: AwareDatetime
    datacontenttype: Literal["application/json"]
    data: NotificationData


class NotificationPage(StrictModel):
    """Notifications, oldest first. The next page begins after `cursor`, also if this one is empty."""

    notifications: list[CloudEvent]
    cursor: int
    last: int
    acknowledged: int


class AckPosition(StrictModel):
    """Up to which number a subscriber has acknowledged, when, and the last number there is."""

    acknowledged: int
    last: int
    time: str | None = None


class Acknowledgement(StrictModel):
    """Everything up to this number is dealt with."""

    ack: int = Field(ge=0)


class Introduction(StrictModel):
    """The first message of those who cannot send a header: the token."""

    token: str


# What the API takes and answers about publications and subscriptions, as types: the OpenAPI document is made of them.


class Place(StrictModel):
    """Where in a text: line and column count from one."""

    line: int
    column: int
    length: int


class TextWarning(StrictModel):
    """A warning about a text that is accepted: it can never match, or it means something else than it seems to."""

    what: str
    place: Place | None = None
    hint: str | None = None


class Problem(BaseModel):
    """Problem Details (RFC 9457), with the facts of the error as members."""

    model_config = ConfigDict(extra="allow")
    type: str = Field(
        description="The kind of problem; `/problems` lists them",
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
        default=None, description="The member of the request that is wrong, a JSON pointer"
    )
    place: Place | None = Field(default=None, description="Where in the text that is wrong")
    where: str | None = None
    received: str | None = None
    accepted: str | None = None
    hint: str | None = None


class PublishResult(StrictModel):
    """A publication that is in the journal; `new` is false if it was there before."""

    id: str
    position: int
    new: bool


class PublishResults(StrictModel):
    """The graphs of a file, or the items of a feed, each a publication."""

    publications: list[PublishResult]


class Outcome(StrictModel):
    """What became of one of many: where it stands, or what is wrong with it."""

    line: int | None = Field(default=None, description="The line it came in, from one")
    number: int | None = Field(default=None, description="Which CloudEvent of the batch it is, from one")
    id: str | None = None
    position: int | None = None
    new: bool | None = None
    problem: Problem | None = None


class Outcomes(StrictModel):
    """What became of many, in the order in which they came."""

    published: int
    known: int
    refused: int
    outcomes: list[Outcome]


class PublicationView(StrictModel):
    """A publication: JSON as its value, other texts as texts, what is no UTF-8 as base64; none of it if it is large."""

    id: str
    position: int
    time: str
    media_type: str
    size: int = Field(description="Bytes of the body")
    audience: str | None = Field(default=None, description="The label, if it is not for everybody")
    body: JsonValue = None
    body_base64: str | None = None


class PublicationPage(StrictModel):
    """Publications, newest first. The next page is `before` the position `next`."""

    publications: list[PublicationView]
    next: int | None


State = Literal["active", "paused"]


class SubscriptionText(StrictModel):
    """A text in a language of subscriptions."""

    language: str = Field(
        default="predicates",
        max_length=MAX_LENGTHS["language"],
        description="predicates, xpath, gql or rules",
    )
    text: str = Field(max_length=MAX_LENGTHS["text"])


class NewSubscription(SubscriptionText):
    """A subscription that is asked for."""

    id: str | None = Field(
        default=None, max_length=MAX_LENGTHS["id"], description="One is made when none is given"
    )
    within: str | None = Field(
        default=None,
        max_length=MAX_LENGTHS["within"],
        description="The delay that is accepted: `10 minutes`; null is at once",
    )
    subscriber: str | None = Field(
        default=None,
        max_length=MAX_LENGTHS["subscriber"],
        description="Whose it is: an administrator names them",
    )
    state: State | None = Field(default=None, description="One may be paused from the beginning")


class Replacement(StrictModel):
    """The text and the delay that a subscription has from now on."""

    text: str = Field(max_length=MAX_LENGTHS["text"])
    within: str | None = Field(default=None, max_length=MAX_LENGTHS["within"])


class Change(StrictModel):
    """What is another from now on; what is not named stays."""

    text: str | None = Field(default=None, max_length=MAX_LENGTHS["text"])
    within: str | None = Field(default=None, max_length=MAX_LENGTHS["within"])


class Health(StrictModel):
    """What a subscription came to so far."""

    matched: int
    last_matched: str | None
    delivered: int
    last_success: str | None
    consecutive_failures: int
    last_error: str | None


class Subscription(StrictModel):
    """A subscription, its state and its health.

    `predicates`, `reached_through` and `warnings` are given when its text was read: when it is made or changed.
    """

    id: str
    subscriber: str
    language: str
    text: str
    within: str | None
    state: State
    paused: str | None = Field(default=None, description="Since when it is paused")
    reason: str | None = Field(default=None, description="Why the service suspended it, if it did")
    predicates: int | None = None
    reached_through: str | None = None
    warnings: list[TextWarning] | None = None
    health: Health


class SubscribeOutcome(StrictModel):
    """What became of one of many: its id, or what is wrong with it."""

    line: int = Field(description="The line it came in, from one")
    id: str | None = None
    new: bool | None = Field(default=None, description="False if it was there before")
    warnings: list[TextWarning] | None = Field(
        default=None,
        description="Warnings about its text, if there are any; the first 1,000 texts are looked through",
    )
    problem: Problem | None = None


class SubscribeOutcomes(StrictModel):
    """What became of many, in the order in which they came."""

    subscribed: int
    known: int
    refused: int
    outcomes: list[SubscribeOutcome]


class SubscriptionPage(StrictModel):
    """Subscriptions in the order of their ids. The next page is `after` the id `next`."""

    subscriptions: list[Subscription]
    next: str | None


class CheckResult(StrictModel):
    """What a text would be as a subscription."""

    language: str
    predicates: int
    reached_through: str
    warnings: list[TextWarning]


class PreviewRequest(SubscriptionText):
    """A text, and how many of the last publications to look at."""

    last: int | None = Field(
        default=None, ge=1, strict=True, description="100 if nothing is said, and no more than the limit"
    )
    subscriber: str | None = Field(
        default=None, max_length=500, description="Who would be told: an administrator may name them"
    )


class Preview(StrictModel):
    """Which of the last publications would have matched, newest first, and why.

    `complete` is false if not all that were asked for could be looked at, within the limits of time and size.
    """

    looked_at: int
    complete: bool
    matches: list[PreviewMatch]
    skipped: int = Field(description="Publications that do not fit the schema of now; `notes` say why")
    notes: list[str]
    warnings: list[TextWarning]


def warnings_of(found: Iterable[errors.TextWarning]) -> list[TextWarning]:
    """Warnings as the API answers them."""
    return [TextWarning.model_validate(warning.facts()) for warning in found]


class PreviewMatch(StrictModel):
    """A publication that would have matched."""

    publication: PublicationView
    because: list[Reason]
    bindings: dict[str, Any] | None
    words: list[str] = Field(description="The first reasons and bindings, as people read them")


Preview.model_rebuild()

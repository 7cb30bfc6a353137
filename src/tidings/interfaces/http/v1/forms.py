"""What the API takes and answers about publications and subscriptions, as types: the OpenAPI document is made of
them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from tidings import errors
from tidings.interfaces.http.v1.shapes import Reason, Shape
from tidings.service.subscription_lines import LONGEST


class Place(Shape):
    """Where in a text: line and column count from one."""

    line: int
    column: int
    length: int


class TextWarning(Shape):
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


class Taken(Shape):
    """A publication that is in the journal; `new` is false if it was there before."""

    id: str
    position: int
    new: bool


class TakenParts(Shape):
    """The graphs of a file, or the items of a feed, each a publication."""

    publications: list[Taken]


class Outcome(Shape):
    """What became of one of many: where it stands, or what is wrong with it."""

    line: int | None = Field(default=None, description="The line it came in, from one")
    number: int | None = Field(default=None, description="Which CloudEvent of the batch it is, from one")
    id: str | None = None
    position: int | None = None
    new: bool | None = None
    problem: Problem | None = None


class Outcomes(Shape):
    """What became of many, in the order in which they came."""

    published: int
    known: int
    refused: int
    outcomes: list[Outcome]


class Published(Shape):
    """A publication: JSON as its value, other texts as texts, what is no UTF-8 as base64; none of it if it is large."""

    id: str
    position: int
    time: str
    media_type: str
    size: int = Field(description="Bytes of the body")
    audience: str | None = Field(default=None, description="The label, if it is not for everybody")
    body: JsonValue = None
    body_base64: str | None = None


class PublicationPage(Shape):
    """Publications, newest first. The next page is `before` the position `next`."""

    publications: list[Published]
    next: int | None


State = Literal["active", "paused"]


class Asked(Shape):
    """A text in a language of subscriptions."""

    language: str = Field(
        default="predicates", max_length=LONGEST["language"], description="predicates, xpath, gql or rules"
    )
    text: str = Field(max_length=LONGEST["text"])


class NewSubscription(Asked):
    """A subscription that is asked for."""

    id: str | None = Field(
        default=None, max_length=LONGEST["id"], description="One is made when none is given"
    )
    within: str | None = Field(
        default=None,
        max_length=LONGEST["within"],
        description="The delay that is accepted: `10 minutes`; null is at once",
    )
    subscriber: str | None = Field(
        default=None,
        max_length=LONGEST["subscriber"],
        description="Whose it is: an administrator names them",
    )
    state: State | None = Field(default=None, description="One may be paused from the beginning")


class Replacement(Shape):
    """The text and the delay that a subscription has from now on."""

    text: str = Field(max_length=LONGEST["text"])
    within: str | None = Field(default=None, max_length=LONGEST["within"])


class Change(Shape):
    """What is another from now on; what is not named stays."""

    text: str | None = Field(default=None, max_length=LONGEST["text"])
    within: str | None = Field(default=None, max_length=LONGEST["within"])


class Health(Shape):
    """What a subscription came to so far."""

    matched: int
    last_matched: str | None
    delivered: int
    last_success: str | None
    consecutive_failures: int
    last_error: str | None


class Subscription(Shape):
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


class SubscribedLine(Shape):
    """What became of one of many: its id, or what is wrong with it."""

    line: int = Field(description="The line it came in, from one")
    id: str | None = None
    new: bool | None = Field(default=None, description="False if it was there before")
    warnings: list[TextWarning] | None = Field(
        default=None,
        description="Warnings about its text, if there are any; the first 1,000 texts are looked through",
    )
    problem: Problem | None = None


class SubscribedLines(Shape):
    """What became of many, in the order in which they came."""

    subscribed: int
    known: int
    refused: int
    outcomes: list[SubscribedLine]


class SubscriptionPage(Shape):
    """Subscriptions in the order of their ids. The next page is `after` the id `next`."""

    subscriptions: list[Subscription]
    next: str | None


class Checked(Shape):
    """What a text would be as a subscription."""

    language: str
    predicates: int
    reached_through: str
    warnings: list[TextWarning]


class PreviewAsked(Asked):
    """A text, and how many of the last publications to look at."""

    last: int | None = Field(
        default=None, ge=1, strict=True, description="100 if nothing is said, and no more than the limit"
    )
    subscriber: str | None = Field(
        default=None, max_length=500, description="Who would be told: an administrator may name them"
    )


class Preview(Shape):
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


class PreviewMatch(Shape):
    """A publication that would have matched."""

    publication: Published
    because: list[Reason]
    bindings: dict[str, Any] | None
    words: list[str] = Field(description="The first reasons and bindings, as people read them")


Preview.model_rebuild()

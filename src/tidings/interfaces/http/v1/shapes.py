"""What goes over the wire, as types: the OpenAPI and the AsyncAPI documents are made of them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import AwareDatetime, Base64Bytes, BaseModel, ConfigDict, Field, JsonValue


class Shape(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Reason(Shape):
    """A predicate that held, the value that made it hold, and where that stands in the publication."""

    predicate: str
    value: bool | int | float | str | None
    at: str


class Publication(Shape):
    """What was published: JSON as its value, other texts as texts; what is no UTF-8 as base64."""

    id: str
    media_type: str
    body: JsonValue = None
    body_base64: Base64Bytes | None = None


class Told(Shape):
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


class CloudEvent(Shape):
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
    data: Told


class NotificationPage(Shape):
    """Notifications, oldest first. The next page begins after `cursor`, also if this one is empty."""

    notifications: list[CloudEvent]
    cursor: int
    last: int
    acknowledged: int


class Standing(Shape):
    """Up to which number a subscriber has acknowledged, when, and the last number there is."""

    acknowledged: int
    last: int
    time: str | None = None


class Acknowledgement(Shape):
    """Everything up to this number is dealt with."""

    ack: int = Field(ge=0)


class Introduction(Shape):
    """The first message of those who cannot send a header: the token."""

    token: str

"""What the API takes and answers about destinations, as types: the OpenAPI document is made of them."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class Given(BaseModel):
    model_config = ConfigDict(extra="forbid")


class NewDestination(Given):
    """Where to deliver what: to a target of a kind, of one subscription or of all."""

    kind: Literal["webhook", "apprise", "kafka"]
    target: str = Field(max_length=4_000)
    subscription: str | None = Field(default=None, max_length=500)
    name: str = Field(default="", max_length=200)


class Changes(Given):
    """What is left out stays as it is."""

    target: str | None = Field(default=None, max_length=4_000)
    name: str | None = Field(default=None, max_length=200)


class ShownHealth(BaseModel):
    """How deliveries go."""

    delivered: int
    last_success: str | None
    consecutive_failures: int
    last_failure: str | None
    last_error: str | None


class ShownDestination(BaseModel):
    """A destination without its secrets: of the target, what may be shown."""

    id: str
    subscriber: str
    subscription: str | None
    kind: str
    target: str
    name: str
    state: Literal["active", "paused", "disabled"]
    reason: str | None
    made: str
    old_secret_until: str | None
    health: ShownHealth
    dead_letters: int


class WithSecret(ShownDestination):
    """The same when a secret was made: it is not told again."""

    secret: str | None


class DestinationPage(BaseModel):
    """Destinations by id; the next page begins after `after`, if there is one."""

    destinations: list[ShownDestination]
    after: str | None


class ShownLetter(BaseModel):
    """The entries `first` to `last` of a subscription that were not taken; `due` is when they are tried again."""

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


class LetterPage(BaseModel):
    letters: list[ShownLetter]
    after: int | None


class Replayed(BaseModel):
    """How many are tried again now."""

    replayed: int


class ShownTest(BaseModel):
    """What came back for a sample."""

    taken: bool
    seconds: float
    status: int | None
    problem: str | None

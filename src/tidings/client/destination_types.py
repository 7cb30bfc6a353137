"""Destinations as a client has them: where a subscriber wants to be told, and what could not be delivered there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from tidings.client.calls import Call, build_params, make_reader

PATH = "/v1/destinations"


@dataclass(frozen=True, slots=True)
class DeliveryHealth:
    """How deliveries to a destination go."""

    delivered: int
    last_success: str | None
    consecutive_failures: int
    last_failure: str | None
    last_error: str | None


@dataclass(frozen=True, slots=True)
class Destination:
    """Where to deliver. `target` is what may be shown of it; `secret` is told when it was made, and never again."""

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
class DestinationPage:
    """Some destinations by id, and the id after which the next page begins, if there is one."""

    destinations: tuple[Destination, ...]
    next: str | None


@dataclass(frozen=True, slots=True)
class DeadLetter:
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


@dataclass(frozen=True, slots=True)
class DeadLetterPage:
    """Some dead letters, oldest first, and the number after which the next page begins, if there is one."""

    letters: tuple[DeadLetter, ...]
    next: int | None


@dataclass(frozen=True, slots=True)
class DestinationTest:
    """What came back for a sample."""

    taken: bool
    seconds: float
    status: int | None
    problem: str | None


def add(
    kind: str, target: str, subscription: str | None, name: str, subscriber: str | None
) -> Call[Destination]:
    given = build_params(kind=kind, target=target, subscription=subscription, name=name)
    return Call("POST", PATH, parse_destination, build_params(subscriber=subscriber), json=given, once=True)


def change(id: str, target: str | None, name: str | None) -> Call[Destination]:
    return Call("PATCH", _place(id), parse_destination, json=build_params(target=target, name=name))


def find(id: str) -> Call[Destination]:
    return Call("GET", _place(id), parse_destination)


def remove(id: str) -> Call[None]:
    return Call("DELETE", _place(id), lambda _: None)


def apply_action(id: str, what: str) -> Call[Destination]:
    """Pause it, resume it, rotate its secret, drop the old one."""
    return Call("POST", f"{_place(id)}/{what}", parse_destination, once=what == "rotate")


def test(id: str) -> Call[DestinationTest]:
    return Call("POST", f"{_place(id)}/test", make_reader(DestinationTest), once=True)


def page(subscriber: str | None, after: str | None) -> Call[DestinationPage]:
    return Call("GET", PATH, _page, build_params(subscriber=subscriber, after=after))


def list_dead_letters(id: str, after: int) -> Call[DeadLetterPage]:
    return Call("GET", f"{_place(id)}/letters", _letters, build_params(after=after))


def replay(id: str, number: int | None) -> Call[int]:
    which = "letters/replay" if number is None else f"letters/{number}/replay"
    return Call("POST", f"{_place(id)}/{which}", lambda answer: int(answer["replayed"]))


def _place(id: str) -> str:
    return f"{PATH}/{quote(id, safe='')}"


_health = make_reader(DeliveryHealth)
_destination = make_reader(Destination)
_letter = make_reader(DeadLetter)


def parse_destination(answer: Mapping[str, Any]) -> Destination:
    return _destination({**answer, "health": _health(answer["health"])})


def _page(answer: Mapping[str, Any]) -> DestinationPage:
    return DestinationPage(tuple(map(parse_destination, answer["destinations"])), answer["after"])


def _letters(answer: Mapping[str, Any]) -> DeadLetterPage:
    return DeadLetterPage(tuple(map(_letter, answer["letters"])), answer["after"])

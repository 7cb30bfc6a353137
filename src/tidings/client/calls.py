"""Calls of the HTTP API as values: the request, and how its response is parsed. Both clients send them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, TypeVar
from urllib.parse import quote

from tidings.client import records
from tidings.client.records import (
    AckPosition,
    CheckResult,
    DeadLetter,
    Destination,
    DestinationTest,
    Feed,
    NotificationPage,
    Page,
    Preview,
    PublishResult,
    SubscribeResult,
    Subscription,
)
from tidings.client.request_body import LINES, Body, encode_body, find_event_id, generate_id
from tidings.errors import TidingsError

T = TypeVar("T")

STREAM = "/v1/notifications/stream"
ACK = "/v1/notifications/ack"
READ_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """A request and the parser of its response. `text` is the subscription text that errors point into."""

    method: str
    path: str
    parse: Callable[[Any], T]
    params: Mapping[str, str] | None = None
    json: Any = None
    content: bytes | None = None
    headers: Mapping[str, str] | None = None
    text: str | None = None
    seconds: float = READ_SECONDS
    once: bool = False
    """Whether the call must not be repeated: what it creates has no id chosen by the client."""


class Unchanged(Enum):
    """The default of arguments that leave a member unchanged, where `None` has a meaning."""

    UNCHANGED = "unchanged"


UNCHANGED = Unchanged.UNCHANGED


def build_params(**values: object) -> dict[str, str]:
    """Return the values that are not `None`, as text."""
    return {name: str(value) for name, value in values.items() if value is not None}


def _item(collection: str, id: str) -> str:
    return f"/v1/{collection}/{quote(id, safe='')}"


# Publications


def publish(
    body: Body, media_type: str, id: str | None, base: str | None, audience: str | None
) -> Call[PublishResult]:
    event_id = find_event_id(body, media_type) if id is None else None
    chosen = id if id is not None else event_id or generate_id("p")
    return Call(
        "POST",
        "/v1/publications",
        lambda answer: records.parse_publish_result(answer, chosen),
        build_params(id=None if event_id else chosen, base=base, audience=audience),
        content=encode_body(body),
        headers={"Content-Type": media_type},
    )


def publish_batch(
    lines: Sequence[bytes], id_field: str, audience: str | None
) -> Call[list[PublishResult | TidingsError]]:
    return Call(
        "POST",
        "/v1/publications",
        records.parse_publish_outcomes,
        build_params(id_field=id_field, audience=audience),
        content=b"\n".join(lines),
        headers={"Content-Type": LINES},
    )


# Subscriptions


def subscribe(
    text: str, language: str, within: str | None, id: str | None, subscriber: str | None
) -> Call[Subscription]:
    chosen = id if id is not None else generate_id("s")
    members = build_params(text=text, language=language, within=within, id=chosen, subscriber=subscriber)
    return Call("POST", "/v1/subscriptions", records.parse_subscription, json=members, text=text)


def subscribe_batch(lines: Sequence[bytes]) -> Call[list[SubscribeResult | TidingsError]]:
    def parse(outcome: Mapping[str, Any]) -> SubscribeResult | TidingsError:
        is_plain = not outcome.get("problem") and not outcome.get("warnings")
        text = None if is_plain else json.loads(lines[outcome["line"] - 1]).get("text")
        return records.parse_subscribe_outcome(outcome, text)

    return Call(
        "POST",
        "/v1/subscriptions",
        lambda answer: list(map(parse, answer["outcomes"])),
        content=b"\n".join(lines),
        headers={"Content-Type": LINES},
    )


def list_subscriptions(
    containing: str | None, language: str | None, state: str | None, subscriber: str | None, after: str
) -> Call[Page[Subscription]]:
    params = build_params(q=containing, language=language, state=state, subscriber=subscriber, after=after)
    parse = records.make_page_parser("subscriptions", records.parse_subscription)
    return Call("GET", "/v1/subscriptions", parse, params)


def read_subscription(id: str) -> Call[Subscription]:
    return Call("GET", _item("subscriptions", id), records.parse_subscription)


def change_subscription(id: str, text: str | Unchanged, within: str | Unchanged | None) -> Call[Subscription]:
    values = {"text": text, "within": within}
    members = {name: value for name, value in values.items() if value is not UNCHANGED}
    marked = text if isinstance(text, str) else None
    return Call("PATCH", _item("subscriptions", id), records.parse_subscription, json=members, text=marked)


def pause_subscription(id: str) -> Call[Subscription]:
    return Call("POST", f"{_item('subscriptions', id)}/pause", records.parse_subscription)


def resume_subscription(id: str) -> Call[Subscription]:
    return Call("POST", f"{_item('subscriptions', id)}/resume", records.parse_subscription)


def unsubscribe(id: str) -> Call[None]:
    return Call("DELETE", _item("subscriptions", id), lambda _: None)


def check(text: str, language: str) -> Call[CheckResult]:
    members = {"text": text, "language": language}
    return Call(
        "POST",
        "/v1/check",
        lambda answer: records.parse_check_result(answer, text),
        json=members,
        text=text,
    )


def preview(text: str, language: str, last: int) -> Call[Preview]:
    members = {"text": text, "language": language, "last": last}
    return Call(
        "POST", "/v1/preview", lambda answer: records.parse_preview(answer, text), json=members, text=text
    )


# Notifications


def read_notifications(
    after: int | None, limit: int, subscription: str | None, subscriber: str | None, wait: float
) -> Call[NotificationPage]:
    params = build_params(
        after=after, limit=limit, subscription=subscription, subscriber=subscriber, wait=wait or None
    )
    parse = records.parse_notification_page
    return Call("GET", "/v1/notifications", parse, params, seconds=READ_SECONDS + wait)


def read_position(subscriber: str | None) -> Call[AckPosition]:
    return Call("GET", ACK, records.parse_position, build_params(subscriber=subscriber))


def acknowledge(upto: int, subscriber: str | None) -> Call[AckPosition]:
    params = build_params(subscriber=subscriber)
    return Call("PUT", ACK, records.parse_position, params, json={"upto": upto})


# Feeds


def list_feeds(subscriber: str | None, after: str) -> Call[Page[Feed]]:
    params = build_params(subscriber=subscriber, after=after)
    return Call("GET", "/v1/feeds", records.make_page_parser("feeds", records.parse_feed), params)


def read_feed(id: str | None, subscriber: str | None) -> Call[Feed]:
    if id is None:
        params = build_params(subscriber=subscriber, limit=1)
        return Call("GET", "/v1/feeds", lambda answer: Feed(None, answer["all"]), params)
    return Call("GET", _item("feeds", id), records.parse_feed, build_params(subscriber=subscriber))


def renew_feed(id: str | None, subscriber: str | None) -> Call[Feed]:
    """Renew an address. If a response is lost, the retry renews it once more; the last address counts."""
    path = "/v1/feeds/renew" if id is None else f"{_item('feeds', id)}/renew"
    return Call("POST", path, records.parse_feed, build_params(subscriber=subscriber))


# Destinations


def add_destination(
    kind: str, target: str, subscription: str | None, name: str, subscriber: str | None
) -> Call[Destination]:
    members = build_params(kind=kind, target=target, subscription=subscription, name=name)
    params = build_params(subscriber=subscriber)
    parse = records.parse_destination
    return Call("POST", "/v1/destinations", parse, params, json=members, once=True)


def list_destinations(subscriber: str | None, after: str) -> Call[Page[Destination]]:
    params = build_params(subscriber=subscriber, after=after)
    parse = records.make_page_parser("destinations", records.parse_destination, "after")
    return Call("GET", "/v1/destinations", parse, params)


def read_destination(id: str) -> Call[Destination]:
    return Call("GET", _item("destinations", id), records.parse_destination)


def change_destination(id: str, target: str | None, name: str | None) -> Call[Destination]:
    members = build_params(target=target, name=name)
    return Call("PATCH", _item("destinations", id), records.parse_destination, json=members)


def act_on_destination(id: str, action: str) -> Call[Destination]:
    """Pause or resume a destination, or rotate its secret."""
    path = f"{_item('destinations', id)}/{action}"
    return Call("POST", path, records.parse_destination, once=action == "rotate")


def test_destination(id: str) -> Call[DestinationTest]:
    return Call("POST", f"{_item('destinations', id)}/test", records.parse_destination_test, once=True)


def remove_destination(id: str) -> Call[None]:
    return Call("DELETE", _item("destinations", id), lambda _: None)


def list_dead_letters(id: str, after: int) -> Call[Page[DeadLetter]]:
    parse = records.make_page_parser("letters", records.parse_dead_letter, "after")
    return Call("GET", f"{_item('destinations', id)}/letters", parse, build_params(after=after))


def replay_dead_letters(id: str, number: int | None) -> Call[int]:
    which = "letters/replay" if number is None else f"letters/{number}/replay"
    return Call("POST", f"{_item('destinations', id)}/{which}", lambda answer: int(answer["replayed"]))

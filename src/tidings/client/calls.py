"""Calls of the HTTP API as values: the request, and how its response is parsed. They are methods of both clients."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
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
from tidings.client.request_body import JSON, LINES, Body, encode_body, find_event_id, generate_id
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
    """Whether the call must not be repeated: its result has no id chosen by the client."""


@dataclass(frozen=True, slots=True)
class Pages(Generic[T]):
    """A list that is read page by page; `name` and `cursor` are the members with the items and the next cursor."""

    path: str
    name: str
    parse: Callable[[Any], T]
    params: Mapping[str, str] | None = None
    cursor: str = "next"
    first: str = ""

    def read(self, after: Any) -> Call[Page[T]]:
        """Return the call that reads the page after a cursor."""

        def parse(answer: Mapping[str, Any]) -> Page[T]:
            return Page(tuple(map(self.parse, answer[self.name])), answer[self.cursor])

        return Call("GET", self.path, parse, {**(self.params or {}), "after": str(after)})


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
    body: Body,
    media_type: str = JSON,
    id: str | None = None,
    base: str | None = None,
    audience: str | None = None,
) -> Call[PublishResult]:
    """Publish a body; it is durable on return. Values are encoded as JSON, bytes and text are sent unchanged.

    Publishing the same id and body again returns the first publication; another body with the same id is an error. The
    id of a CloudEvent is used if there is one; otherwise the client generates one, so that a retry never publishes
    twice. `base` resolves relative IRIs of a graph. With `audience`, a label, only subscribers who were granted it see
    the publication.
    """
    event_id = find_event_id(body, media_type) if id is None else None
    chosen = id if id is not None else event_id or generate_id("p")
    return Call(
        "POST",
        "/v1/publications",
        partial(records.parse_publish_result, id=chosen),
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
    text: str,
    language: str = "predicates",
    within: str | None = None,
    id: str | None = None,
    subscriber: str | None = None,
) -> Call[Subscription]:
    """Subscribe, from the next batch of the stream on. `within`, such as "10 minutes", batches notifications."""
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
    containing: str | None = None,
    language: str | None = None,
    state: str | None = None,
    subscriber: str | None = None,
) -> Pages[Subscription]:
    """Yield subscriptions by id; `containing` is searched in texts and ids."""
    params = build_params(q=containing, language=language, state=state, subscriber=subscriber)
    return Pages("/v1/subscriptions", "subscriptions", records.parse_subscription, params)


def read_subscription(id: str) -> Call[Subscription]:
    """Return a subscription with its state and health."""
    return Call("GET", _item("subscriptions", id), records.parse_subscription)


def change_subscription(
    id: str, text: str | Unchanged = UNCHANGED, within: str | Unchanged | None = UNCHANGED
) -> Call[Subscription]:
    """Change the text or the delay of a subscription. `within=None` notifies immediately."""
    values = {"text": text, "within": within}
    members = {name: value for name, value in values.items() if value is not UNCHANGED}
    marked = text if isinstance(text, str) else None
    return Call("PATCH", _item("subscriptions", id), records.parse_subscription, json=members, text=marked)


def pause_subscription(id: str) -> Call[Subscription]:
    """Stop matching a subscription until it is resumed."""
    return Call("POST", f"{_item('subscriptions', id)}/pause", records.parse_subscription)


def resume_subscription(id: str) -> Call[Subscription]:
    """Continue to match a subscription."""
    return Call("POST", f"{_item('subscriptions', id)}/resume", records.parse_subscription)


def unsubscribe(id: str) -> Call[None]:
    """Delete a subscription. Its notifications stay."""
    return Call("DELETE", _item("subscriptions", id), lambda _: None)


def check(text: str, language: str = "predicates") -> Call[CheckResult]:
    """Compile a text without subscribing; raise the error with its place if it is invalid."""
    members = {"text": text, "language": language}
    parse = partial(records.parse_check_result, text=text)
    return Call("POST", "/v1/check", parse, json=members, text=text)


def preview(text: str, language: str = "predicates", last: int = 100) -> Call[Preview]:
    """Return which of the latest publications a text would have matched, without subscribing."""
    members = {"text": text, "language": language, "last": last}
    return Call("POST", "/v1/preview", partial(records.parse_preview, text=text), json=members, text=text)


# Notifications


def read_notifications(
    after: int | None = None,
    limit: int = 100,
    subscription: str | None = None,
    subscriber: str | None = None,
    wait: float = 0,
) -> Call[NotificationPage]:
    """Return a page of notifications after a cursor, by default after the acknowledged ones.

    If there are none, wait up to `wait` seconds for the first.
    """
    params = build_params(
        after=after, limit=limit, subscription=subscription, subscriber=subscriber, wait=wait or None
    )
    parse = records.parse_notification_page
    return Call("GET", "/v1/notifications", parse, params, seconds=READ_SECONDS + wait)


def read_position(subscriber: str | None = None) -> Call[AckPosition]:
    """Return up to which sequence number everything is acknowledged, and the latest number."""
    return Call("GET", ACK, records.parse_position, build_params(subscriber=subscriber))


def acknowledge(upto: int, subscriber: str | None = None) -> Call[AckPosition]:
    """Acknowledge everything up to a sequence number; durable on return."""
    params = build_params(subscriber=subscriber)
    return Call("PUT", ACK, records.parse_position, params, json={"upto": upto})


# Feeds


def list_feeds(subscriber: str | None = None) -> Pages[Feed]:
    """Yield the feed address of each subscription."""
    return Pages("/v1/feeds", "feeds", records.parse_feed, build_params(subscriber=subscriber))


def read_feed(id: str | None = None, subscriber: str | None = None) -> Call[Feed]:
    """Return the feed address of a subscription, or of the list of all feeds (OPML); create it if needed."""
    if id is None:
        params = build_params(subscriber=subscriber, limit=1)
        return Call("GET", "/v1/feeds", lambda answer: Feed(None, answer["all"]), params)
    return Call("GET", _item("feeds", id), records.parse_feed, build_params(subscriber=subscriber))


def renew_feed(id: str | None = None, subscriber: str | None = None) -> Call[Feed]:
    """Give the feed of a subscription, or the list of all feeds, a new address. The old one stops working.

    If a response is lost, the retry renews it once more; the last address counts.
    """
    path = "/v1/feeds/renew" if id is None else f"{_item('feeds', id)}/renew"
    return Call("POST", path, records.parse_feed, build_params(subscriber=subscriber))


# Destinations


def add_destination(
    kind: str,
    target: str,
    subscription: str | None = None,
    name: str = "",
    subscriber: str | None = None,
) -> Call[Destination]:
    """Add a webhook, apprise or kafka destination for one subscription, or for all of them.

    The response is the only one that contains a webhook's secret. If it is lost, the call is not repeated; use `list`
    to see whether the destination exists.
    """
    members = build_params(kind=kind, target=target, subscription=subscription, name=name)
    params = build_params(subscriber=subscriber)
    parse = records.parse_destination
    return Call("POST", "/v1/destinations", parse, params, json=members, once=True)


def list_destinations(subscriber: str | None = None) -> Pages[Destination]:
    """Yield all destinations, by id."""
    params = build_params(subscriber=subscriber)
    return Pages("/v1/destinations", "destinations", records.parse_destination, params, cursor="after")


def read_destination(id: str) -> Call[Destination]:
    """Return a destination with its health."""
    return Call("GET", _item("destinations", id), records.parse_destination)


def change_destination(id: str, target: str | None = None, name: str | None = None) -> Call[Destination]:
    """Change the target or the name."""
    members = build_params(target=target, name=name)
    return Call("PATCH", _item("destinations", id), records.parse_destination, json=members)


def pause_destination(id: str) -> Call[Destination]:
    """Stop deliveries until the destination is resumed. Nothing is lost."""
    return Call("POST", f"{_item('destinations', id)}/pause", records.parse_destination)


def resume_destination(id: str) -> Call[Destination]:
    """Continue deliveries, also after the service disabled the destination."""
    return Call("POST", f"{_item('destinations', id)}/resume", records.parse_destination)


def rotate_secret(id: str) -> Call[Destination]:
    """Create a new secret, which only this response contains. For a while the old one signs as well."""
    return Call("POST", f"{_item('destinations', id)}/rotate", records.parse_destination, once=True)


def test_destination(id: str) -> Call[DestinationTest]:
    """Send a sample now and return the outcome."""
    return Call("POST", f"{_item('destinations', id)}/test", records.parse_destination_test, once=True)


def remove_destination(id: str) -> Call[None]:
    """Remove a destination and its dead letters."""
    return Call("DELETE", _item("destinations", id), lambda _: None)


def list_dead_letters(id: str) -> Pages[DeadLetter]:
    """Yield undeliverable notifications, oldest first."""
    path = f"{_item('destinations', id)}/letters"
    return Pages(path, "letters", records.parse_dead_letter, cursor="after", first="0")


def replay_dead_letters(id: str, number: int | None = None) -> Call[int]:
    """Deliver one dead letter again, or all of them. Return how many."""
    which = "letters/replay" if number is None else f"letters/{number}/replay"
    return Call("POST", f"{_item('destinations', id)}/{which}", lambda answer: int(answer["replayed"]))

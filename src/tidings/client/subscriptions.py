"""Subscriptions as a client has them: taken, changed, paused, checked before they are taken."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any
from urllib.parse import quote

from tidings.client.calls import Call, build_params, make_reader
from tidings.client.notifications import Content, parse_content
from tidings.client.publications import LINES, batch_lines, generate_id
from tidings.core.arguments import each_is
from tidings.errors import DecodeProblem, TextWarning, TidingsError, error_from, warning_from
from tidings.model import Reason

PATH = "/v1/subscriptions"


class Unchanged(Enum):
    """What is said where nothing is to change."""

    UNCHANGED = "unchanged"


UNCHANGED = Unchanged.UNCHANGED


@dataclass(frozen=True, slots=True)
class Health:
    """What a subscription came to so far. Failures are those in a row."""

    matched: int
    last_matched: str | None
    delivered: int
    last_success: str | None
    consecutive_failures: int
    last_error: str | None


@dataclass(frozen=True, slots=True)
class Subscription:
    """A subscription with its state and its health. `reason` says why the service suspended it. The last three
    are given when its text was read.
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
class SubscriptionPage:
    """Some subscriptions by id, and the id after which the next page begins, if there is one."""

    subscriptions: tuple[Subscription, ...]
    next: str | None


@dataclass(frozen=True, slots=True)
class SubscribeResult:
    """One of many that lives now; `new` is false if it was there before, `warnings` are about its text."""

    id: str
    new: bool
    warnings: tuple[TextWarning, ...] = ()


SubscriptionRequest = str | Mapping[str, Any]
"""A text, or what a line of a file of subscriptions says: `text`, `language`, `id`, `within`, `subscriber`."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What a text would be as a subscription."""

    language: str
    predicates: int
    reached_through: str
    warnings: tuple[TextWarning, ...] = ()


@dataclass(frozen=True, slots=True)
class PreviewMatch:
    """A publication that would have matched, and why; `words` is that as people read it."""

    content: Content
    because: tuple[Reason, ...]
    bindings: dict[str, Any] | None
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Preview:
    """Which of the last publications would have matched, newest first.

    `complete` is false if not all could be looked at that were asked for; `skipped` counts those that do not fit the
    schema of now, and `notes` say why.
    """

    looked_at: int
    complete: bool
    matches: tuple[PreviewMatch, ...]
    notes: tuple[str, ...]
    warnings: tuple[TextWarning, ...] = ()
    skipped: int = 0


def subscribe(
    text: str, language: str, within: str | None, id: str | None, subscriber: str | None
) -> Call[Subscription]:
    """Without an id one is made here: so it can be sent again, and is one subscription."""
    named = id if id is not None else generate_id("s")
    given = build_params(text=text, language=language, within=within, id=named, subscriber=subscriber)
    return Call("POST", PATH, parse_subscription, json=given, text=text)


def batch_subscriptions(
    wanted: Iterable[SubscriptionRequest], subscriber: str | None
) -> Iterator[list[bytes] | DecodeProblem]:
    """Subscriptions as lines, as many as travel together. Each has an id, as above."""
    whose = {} if subscriber is None else {"subscriber": subscriber}
    given = each_is("wanted", wanted, (str, Mapping))
    members = ({"text": one} if isinstance(one, str) else dict(one) for one in given)
    return batch_lines(
        whose | one | ({} if one.get("id") is not None else {"id": generate_id("s")}) for one in members
    )


def subscribe_lines(lines: Sequence[bytes]) -> Call[list[SubscribeResult | TidingsError]]:
    def outcome(told: Mapping[str, Any]) -> SubscribeResult | TidingsError:
        if not told.get("problem") and not told.get("warnings"):
            return SubscribeResult(told["id"], told["new"])
        text = json.loads(lines[told["line"] - 1]).get("text")
        if not told.get("problem"):
            return SubscribeResult(told["id"], told["new"], _warnings(told, text))
        is_text = told["problem"].get("pointer") == "/text" and isinstance(text, str)
        return error_from(told["problem"], text if is_text else None)

    return Call(
        "POST",
        PATH,
        lambda answer: list(map(outcome, answer["outcomes"])),
        content=b"\n".join(lines),
        headers={"Content-Type": LINES},
    )


def change(id: str, text: str | Unchanged, within: str | Unchanged | None) -> Call[Subscription]:
    named = {"text": text, "within": within}
    given = {name: value for name, value in named.items() if value is not UNCHANGED}
    about = text if isinstance(text, str) else None
    return Call("PATCH", _place(id), parse_subscription, json=given, text=about)


def find(id: str) -> Call[Subscription]:
    return Call("GET", _place(id), parse_subscription)


def pause(id: str) -> Call[Subscription]:
    return Call("POST", f"{_place(id)}/pause", parse_subscription)


def resume(id: str) -> Call[Subscription]:
    return Call("POST", f"{_place(id)}/resume", parse_subscription)


def unsubscribe(id: str) -> Call[None]:
    return Call("DELETE", _place(id), lambda _: None)


def page(
    containing: str | None, language: str | None, state: str | None, subscriber: str | None, after: str | None
) -> Call[SubscriptionPage]:
    params = build_params(q=containing, language=language, state=state, subscriber=subscriber, after=after)
    return Call("GET", PATH, _page, params)


def check(text: str, language: str) -> Call[CheckResult]:
    given = {"text": text, "language": language}
    return Call("POST", "/v1/check", lambda answer: _checked(answer, text), json=given, text=text)


def preview(text: str, language: str, last: int) -> Call[Preview]:
    given = {"text": text, "language": language, "last": last}
    return Call("POST", "/v1/preview", lambda answer: _preview(answer, text), json=given, text=text)


def _place(id: str) -> str:
    return f"{PATH}/{quote(id, safe='')}"


_health = make_reader(Health)
_subscription = make_reader(Subscription)


def parse_subscription(answer: Mapping[str, Any]) -> Subscription:
    warnings = _warnings(answer, answer["text"]) if answer.get("warnings") is not None else None
    return _subscription({**answer, "health": _health(answer["health"]), "warnings": warnings})


def _warnings(answer: Mapping[str, Any], text: str) -> tuple[TextWarning, ...]:
    return tuple(warning_from(facts, text) for facts in answer.get("warnings") or ())


_read_checked = make_reader(CheckResult)


def _checked(answer: Mapping[str, Any], text: str) -> CheckResult:
    return _read_checked({**answer, "warnings": _warnings(answer, text)})


def _page(answer: Mapping[str, Any]) -> SubscriptionPage:
    return SubscriptionPage(tuple(map(parse_subscription, answer["subscriptions"])), answer["next"])


def _preview(answer: Mapping[str, Any], text: str) -> Preview:
    matches = tuple(
        PreviewMatch(
            parse_content(one["publication"]),
            tuple(Reason(each["predicate"], each["value"], each["at"]) for each in one["because"]),
            one["bindings"],
            tuple(one["words"]),
        )
        for one in answer["matches"]
    )
    notes, warnings = tuple(answer["notes"]), _warnings(answer, text)
    return Preview(
        answer["looked_at"], answer["complete"], matches, notes, warnings, answer.get("skipped", 0)
    )

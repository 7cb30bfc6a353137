"""Subscription pages: search, create, change, pause, resume, delete."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Query, Request, Response
from fastapi.concurrency import run_in_threadpool

from tidings.api.v1.limits import Limits
from tidings.api.v1.notifications import find_subscriber
from tidings.console.examples import LANGUAGES, Language, list_languages
from tidings.console.pages import HOME, console_router, format_query, redirect_to
from tidings.console.session import (
    NameParameter,
    SubscriberParameter,
    SubscribeVisitor,
    Visitor,
    read_form,
    render_page,
)
from tidings.core import durations
from tidings.errors import InputError
from tidings.feeds.outbound.personal_feeds import PersonalFeeds, locate_feed, renew_location
from tidings.metadata.provider.provider import Provider
from tidings.model import Subscription
from tidings.service.preview import Preview, PreviewBounds, preview_subscription
from tidings.service.subscriptions import SubscriptionCheck, parse_delay, read_health
from tidings.service.tidings import Tidings
from tidings.store.subscriptions.view import RULES, SubscriptionFilter

HERE = "subscriptions"
AT = f"{HOME}/{HERE}"
PAGE = 50
PREVIEWED = 200
"""Latest publications that a preview examines."""

DONE = {
    "subscribed": "Subscribed. Matching begins with the stream's next batch.",
    "changed": "Changed.",
    "paused": "Paused. Nothing is matched until it is resumed.",
    "resumed": "Resumed.",
    "deleted": "Deleted.",
    "renewed": "The feed has a new address; the old one no longer works.",
}
"""Confirmations, by the parameter `done` of the page that follows an action."""

Text = Annotated[str, Query(max_length=20_000)]


@dataclass(frozen=True, slots=True)
class Draft:
    """The form of a subscription; `id` is empty for a new one."""

    subscriber: str
    language: str = LANGUAGES[0].name
    text: str = ""
    within: str = ""
    id: str = ""


def router_for(tidings: Tidings, feeds: PersonalFeeds, limits: Limits) -> APIRouter:
    """Return the pages of subscriptions."""
    router = console_router(HERE)
    pages = SubscriptionPages(tidings, feeds, limits)
    router.add_api_route("", pages.all, methods=["GET"])
    router.add_api_route("", pages.make, methods=["POST"])
    router.add_api_route("/new", pages.new, methods=["GET"])
    router.add_api_route("/renew-list", pages.renew_list, methods=["POST"])
    for act in (pages.pause, pages.resume, pages.delete, pages.renew):
        router.add_api_route(f"/{{id:path}}/{act.__name__}", act, methods=["POST"])
    router.add_api_route("/{id:path}/edit", pages.edit, methods=["GET"])
    router.add_api_route("/{id:path}", pages.one, methods=["GET"])
    router.add_api_route("/{id:path}", pages.change, methods=["POST"])
    return router


class SubscriptionPages:
    """Pages about the visitor's subscriptions; administrators see those of all subscribers."""

    def __init__(self, tidings: Tidings, feeds: PersonalFeeds, limits: Limits) -> None:
        self._tidings, self._store, self._feeds, self._limits = tidings, tidings.store, feeds, limits
        self._subscribing = tidings.subscribing(limits.of_subscriptions)
        self._provider = Provider(tidings.store)

    def all(
        self,
        visitor: SubscribeVisitor,
        search: NameParameter = "",
        subscriber: SubscriberParameter = "",
        after: NameParameter = "",
        done: NameParameter = "",
    ) -> Response:
        whose = visitor.only(subscriber)
        wanted = SubscriptionFilter(after=after, subscriber=whose, word=search.strip() or None)
        found = self._store.subscription_view.page(wanted, PAGE + 1)
        listed, healths = found[:PAGE], read_health(self._store, [each.subscription for each in found[:PAGE]])
        values = {
            "found": [(each, healths.get(each.subscription.id)) for each in listed],
            "more": listed[-1].subscription.id if len(found) > PAGE else None,
            "is_first": not after,
            "search": search,
            "whose": whose if visitor.is_administrator else None,
            "feeds": locate_feed(self._feeds, whose) if whose is not None and listed else None,
            "done": DONE.get(done),
        }
        return render_page("subscriptions.html", visitor, HERE, values)

    def new(
        self,
        visitor: SubscribeVisitor,
        language: NameParameter = "",
        text: Text = "",
        subscriber: SubscriberParameter = "",
    ) -> Response:
        whose = visitor.only(subscriber) or visitor.caller.subscriber or ""
        return self._form(visitor, Draft(whose, language or LANGUAGES[0].name, text))

    def one(self, visitor: SubscribeVisitor, id: str, done: NameParameter = "") -> Response:
        kept = self._subscribing.find(id, visitor.only(None))
        one = kept.subscription
        values = {"kept": kept, "one": one, "health": read_health(self._store, [one])[one.id]}
        has_feed = one.language != RULES
        values |= self._text_facts(one)
        values["feed"] = locate_feed(self._feeds, one.subscriber, one.id) if has_feed else None
        return render_page("subscription.html", visitor, HERE, values | {"done": DONE.get(done)})

    def _text_facts(self, one: Subscription) -> dict[str, Any]:
        """Return the warnings about a text, or why the current schema refuses it."""
        try:
            return {"checked": self._subscribing.check(one.language, one.text), "problem": None}
        except InputError as problem:
            return {"checked": None, "problem": problem}

    def edit(self, visitor: SubscribeVisitor, id: str) -> Response:
        return self._form(visitor, self._draft(visitor, id))

    async def make(self, request: Request, visitor: SubscribeVisitor) -> Response:
        given = await read_form(request, visitor)
        return await run_in_threadpool(self._make, visitor, given)

    async def change(self, id: str, request: Request, visitor: SubscribeVisitor) -> Response:
        given = await read_form(request, visitor)
        return await run_in_threadpool(self._change, visitor, id, given)

    async def pause(self, id: str, request: Request, visitor: SubscribeVisitor) -> Response:
        await read_form(request, visitor)
        await run_in_threadpool(self._subscribing.pause, id, visitor.only(None))
        return _one(id, "paused")

    async def resume(self, id: str, request: Request, visitor: SubscribeVisitor) -> Response:
        await read_form(request, visitor)
        await run_in_threadpool(self._subscribing.resume, id, visitor.only(None))
        return _one(id, "resumed")

    async def renew(self, id: str, request: Request, visitor: SubscribeVisitor) -> Response:
        """Give its feed a new address."""
        await read_form(request, visitor)
        await run_in_threadpool(self._renew, visitor, id)
        return _one(id, "renewed")

    def _renew(self, visitor: Visitor, id: str) -> None:
        renew_location(
            self._feeds, self._subscribing.find(id, visitor.only(None)).subscription.subscriber, id
        )

    async def renew_list(self, request: Request, visitor: SubscribeVisitor) -> Response:
        """Give the list of all feeds a new address."""
        given = await read_form(request, visitor)
        whose = await find_subscriber(visitor.caller, given.get("subscriber") or None)
        await run_in_threadpool(renew_location, self._feeds, whose)
        return redirect_to(f"{AT}{format_query({'done': 'renewed', 'subscriber': given.get('subscriber')})}")

    async def delete(self, id: str, request: Request, visitor: SubscribeVisitor) -> Response:
        await read_form(request, visitor)
        await run_in_threadpool(self._delete, visitor, id)
        return redirect_to(f"{AT}{format_query({'done': 'deleted'})}")

    def _delete(self, visitor: Visitor, id: str) -> None:
        self._subscribing.find(id, visitor.only(None))
        self._subscribing.remove([id], visitor.only(None))

    def _make(self, visitor: Visitor, given: dict[str, str]) -> Response:
        whose = given.get("subscriber", "").strip()
        draft = Draft(
            whose, given.get("language", ""), given.get("text", ""), given.get("within", "").strip()
        )
        try:
            owner = visitor.caller.acting_as(whose or None)
            if given.get("act") == "check":
                return self._checked(visitor, draft)
            wanted = Subscription("", owner, draft.language, draft.text, _seconds(draft))
            made = self._subscribing.subscribe(wanted)
        except InputError as problem:
            return self._form(visitor, draft, problem)
        return _one(made.id, "subscribed")

    def _change(self, visitor: Visitor, id: str, given: dict[str, str]) -> Response:
        before = self._draft(visitor, id)
        draft = Draft(
            before.subscriber, before.language, given.get("text", ""), given.get("within", "").strip(), id
        )
        try:
            if given.get("act") == "check":
                return self._checked(visitor, draft)
            self._subscribing.change(id, draft.text, _seconds(draft), visitor.only(None))
        except InputError as problem:
            return self._form(visitor, draft, problem)
        return _one(id, "changed")

    def _draft(self, visitor: Visitor, id: str) -> Draft:
        one = self._subscribing.find(id, visitor.only(None)).subscription
        within = durations.show(one.within) if one.within else ""
        return Draft(one.subscriber, one.language, one.text, within, one.id)

    def _checked(self, visitor: Visitor, draft: Draft) -> Response:
        """Render the check and preview that the script shows, for browsers without scripts."""
        _seconds(draft)
        checked = self._subscribing.check(draft.language, draft.text)
        found = None if draft.language == RULES else self._previewed(visitor, draft)
        return self._form(visitor, draft, taken=checked, previewed=found)

    def _previewed(self, visitor: Visitor, draft: Draft) -> Preview:
        """Preview as the subscriber, who may not see every publication."""
        limits, owner = self._limits, visitor.caller.acting_as(draft.subscriber or None)
        bounds = PreviewBounds(PREVIEWED, limits.preview_bytes, limits.preview_seconds)
        schema, granted = self._tidings.checked_against(), self._store.audiences.of(owner)
        store, tables = self._store, self._tidings.preview_tables
        return preview_subscription(
            store, tables, self._subscribing, schema, draft.language, draft.text, bounds, granted
        )

    def _form(
        self,
        visitor: Visitor,
        draft: Draft,
        problem: InputError | None = None,
        taken: SubscriptionCheck | None = None,
        previewed: Preview | None = None,
    ) -> Response:
        languages = self._languages()
        values: dict[str, Any] = {"draft": draft, "problem": problem, "languages": languages}
        values |= {"taken": taken, "preview": previewed}
        return render_page("subscription_form.html", visitor, HERE, values, 422 if problem else 200)

    def _languages(self) -> tuple[Language, ...]:
        """Return the languages with the examples that are valid here."""
        has_metadata = bool(self._store.metadata.schema())
        metadata = self._provider.schema if has_metadata else None
        return list_languages(self._subscribing.check, self._tidings.schema(), metadata)


def _seconds(draft: Draft) -> int | None:
    return parse_delay(draft.within or None)


def _one(id: str, done: str) -> Response:
    return redirect_to(f"{AT}/{quote(id)}{format_query({'done': done})}")

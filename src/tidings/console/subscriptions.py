"""Subscription pages: search, create, change, pause, resume, delete."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Query, Response

from tidings.api.limits import Limits
from tidings.api.parameters import subscriber_of
from tidings.console.examples import list_languages
from tidings.console.pages import HOME, console_router, format_query, redirect_to
from tidings.console.session import (
    Form,
    NameParameter,
    SubscriberParameter,
    SubscribeVisitor,
    Visitor,
    render_page,
)
from tidings.core import durations
from tidings.errors import InputError
from tidings.feeds.outbound.personal_feeds import PersonalFeeds, locate_feed, renew_location
from tidings.kinds import LanguageGuide
from tidings.language_hints import list_guides
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
    language: str
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
    router.add_api_route("/{id:path}", pages.show, methods=["GET"])
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
        whose = visitor.select_owner(subscriber)
        selection = SubscriptionFilter(after=after, subscriber=whose, word=search.strip() or None)
        statuses = self._store.subscription_view.page(selection, PAGE + 1)
        listed, healths = (
            statuses[:PAGE],
            read_health(self._store, [each.subscription for each in statuses[:PAGE]]),
        )
        values = {
            "listed": [(each, healths.get(each.subscription.id)) for each in listed],
            "more": listed[-1].subscription.id if len(statuses) > PAGE else None,
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
        whose = visitor.select_owner(subscriber) or visitor.caller.subscriber or ""
        return self._form(visitor, Draft(whose, language or list_guides()[0].name, text))

    def show(self, visitor: SubscribeVisitor, id: str, done: NameParameter = "") -> Response:
        status = self._subscribing.find(id, visitor.select_owner(None))
        subscription = status.subscription
        values = {
            "status": status,
            "subscription": subscription,
            "health": read_health(self._store, [subscription])[subscription.id],
        }
        has_feed = subscription.language != RULES
        values |= self._text_facts(subscription)
        values["feed"] = (
            locate_feed(self._feeds, subscription.subscriber, subscription.id) if has_feed else None
        )
        return render_page("subscription.html", visitor, HERE, values | {"done": DONE.get(done)})

    def _text_facts(self, subscription: Subscription) -> dict[str, Any]:
        """Return the warnings about a text, or why the current schema refuses it."""
        try:
            return {
                "checked": self._subscribing.check(subscription.language, subscription.text),
                "problem": None,
            }
        except InputError as problem:
            return {"checked": None, "problem": problem}

    def edit(self, visitor: SubscribeVisitor, id: str) -> Response:
        return self._form(visitor, self._draft(visitor, id))

    def make(self, visitor: SubscribeVisitor, form: Form) -> Response:
        whose = form.get("subscriber", "").strip()
        draft = Draft(whose, form.get("language", ""), form.get("text", ""), form.get("within", "").strip())
        try:
            owner = visitor.caller.resolve_subscriber(whose or None)
            if form.get("act") == "check":
                return self._check(visitor, draft)
            subscription = Subscription("", owner, draft.language, draft.text, _seconds(draft))
            accepted = self._subscribing.subscribe(subscription)
        except InputError as problem:
            return self._form(visitor, draft, problem)
        return _redirect(accepted.id, "subscribed")

    def change(self, id: str, visitor: SubscribeVisitor, form: Form) -> Response:
        draft = replace(
            self._draft(visitor, id), text=form.get("text", ""), within=form.get("within", "").strip()
        )
        try:
            if form.get("act") == "check":
                return self._check(visitor, draft)
            self._subscribing.change(id, draft.text, _seconds(draft), visitor.select_owner(None))
        except InputError as problem:
            return self._form(visitor, draft, problem)
        return _redirect(id, "changed")

    def pause(self, id: str, visitor: SubscribeVisitor, form: Form) -> Response:
        self._subscribing.pause(id, visitor.select_owner(None))
        return _redirect(id, "paused")

    def resume(self, id: str, visitor: SubscribeVisitor, form: Form) -> Response:
        self._subscribing.resume(id, visitor.select_owner(None))
        return _redirect(id, "resumed")

    def renew(self, id: str, visitor: SubscribeVisitor, form: Form) -> Response:
        """Give its feed a new address."""
        subscription = self._subscribing.find(id, visitor.select_owner(None)).subscription
        renew_location(self._feeds, subscription.subscriber, id)
        return _redirect(id, "renewed")

    def renew_list(self, visitor: SubscribeVisitor, form: Form) -> Response:
        """Give the list of all feeds a new address."""
        renew_location(self._feeds, subscriber_of(visitor.caller, form.get("subscriber") or None))
        return redirect_to(f"{AT}{format_query({'done': 'renewed', 'subscriber': form.get('subscriber')})}")

    def delete(self, id: str, visitor: SubscribeVisitor, form: Form) -> Response:
        self._subscribing.find(id, visitor.select_owner(None))
        self._subscribing.remove([id], visitor.select_owner(None))
        return redirect_to(f"{AT}{format_query({'done': 'deleted'})}")

    def _draft(self, visitor: Visitor, id: str) -> Draft:
        subscription = self._subscribing.find(id, visitor.select_owner(None)).subscription
        within = durations.show(subscription.within) if subscription.within else ""
        return Draft(
            subscription.subscriber, subscription.language, subscription.text, within, subscription.id
        )

    def _check(self, visitor: Visitor, draft: Draft) -> Response:
        """Render the check and preview that the script shows, for browsers without scripts."""
        _seconds(draft)
        checked = self._subscribing.check(draft.language, draft.text)
        preview = None if draft.language == RULES else self._preview(visitor, draft)
        return self._form(visitor, draft, checked=checked, preview=preview)

    def _preview(self, visitor: Visitor, draft: Draft) -> Preview:
        """Preview as the subscriber, who may not see every publication."""
        limits, owner = self._limits, visitor.caller.resolve_subscriber(draft.subscriber or None)
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
        checked: SubscriptionCheck | None = None,
        preview: Preview | None = None,
    ) -> Response:
        values: dict[str, Any] = {"draft": draft, "problem": problem, "languages": self._languages()}
        values |= {"checked": checked, "preview": preview}
        return render_page("subscription_form.html", visitor, HERE, values, 422 if problem else 200)

    def _languages(self) -> tuple[LanguageGuide, ...]:
        """Return the languages with the examples that are valid here."""
        has_metadata = bool(self._store.metadata.schema())
        metadata = self._provider.schema if has_metadata else None
        return list_languages(self._subscribing.check, self._tidings.schema(), metadata)


def _seconds(draft: Draft) -> int | None:
    return parse_delay(draft.within or None)


def _redirect(id: str, done: str) -> Response:
    return redirect_to(f"{AT}/{quote(id)}{format_query({'done': done})}")

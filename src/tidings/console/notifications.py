"""Notification pages: newest first, live, each with its publication and the reasons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Response

from tidings.api.parameters import subscriber_of
from tidings.console.pages import HOME, console_router, format_query, highlight_publication, redirect_to
from tidings.console.session import (
    Form,
    NumberInPath,
    NumberParameter,
    SubscriberParameter,
    SubscribeVisitor,
    Visitor,
    read_number,
    render_page,
)
from tidings.errors import InputError, NotFound
from tidings.feeds.outbound.entries import publication_title
from tidings.model import MATCHED, Notification
from tidings.notification_text import format_reason
from tidings.service.tidings import Tidings

HERE = "notifications"
PAGE = 25
LARGEST = 50_000
"""Largest publication that is read for its title: a list has up to two hundred of them."""
MOST_NEW = 200
"""New notifications that are added to an open page at once; after a longer absence the page is reloaded."""
MOST_KNOWN = 100
"""Subscribers that are suggested to an administrator."""


@dataclass(frozen=True, slots=True)
class NotificationWindow:
    """Notifications of a subscriber, newest first. Sequence numbers have no gaps, so pages need no cursors."""

    subscriber: str
    notifications: list[Notification]
    last: int
    read: int
    """The number up to which they are acknowledged."""

    @property
    def unread(self) -> int:
        return max(0, self.last - self.read)

    @property
    def older(self) -> int | None:
        """The number before which the next page begins, if there is one."""
        return (
            self.notifications[-1].sequence
            if self.notifications and self.notifications[-1].sequence > 1
            else None
        )

    @property
    def newer(self) -> bool:
        return bool(self.notifications) and self.notifications[0].sequence < self.last


def router_for(tidings: Tidings) -> APIRouter:
    """Return the pages of notifications."""
    router = console_router("notifications")
    pages = NotificationPages(tidings)
    router.add_api_route("", pages.all, methods=["GET"])
    router.add_api_route("/new", pages.new, methods=["GET"])
    router.add_api_route("/acknowledge", pages.acknowledge, methods=["POST"])
    router.add_api_route("/{sequence}", pages.show, methods=["GET"])
    router.add_api_route("/{sequence}/inside", pages.inside, methods=["GET"])
    return router


class NotificationPages:
    """Pages and page fragments about notifications."""

    def __init__(self, tidings: Tidings) -> None:
        self._tidings, self._store = tidings, tidings.store

    def all(
        self, visitor: SubscribeVisitor, subscriber: SubscriberParameter = "", before: NumberParameter = 0
    ) -> Response:
        """Show a page of notifications; an administrator chooses the subscriber first."""
        whose = visitor.select_owner(subscriber)
        if whose is None:
            return render_page("whose.html", visitor, HERE, {"known": self._known_subscribers()})
        window = self._window(whose, before)
        return render_page(
            "notifications.html", visitor, HERE, self._values(visitor, window) | {"window": window}
        )

    def new(
        self, visitor: SubscribeVisitor, after: NumberParameter, subscriber: SubscriberParameter = ""
    ) -> Response:
        """Render new notifications for an open page, as a fragment."""
        whose = subscriber_of(visitor.caller, subscriber or None)
        notifications = self._tidings.notifications(whose, after, MOST_NEW)[::-1]
        window = NotificationWindow(
            whose,
            notifications,
            max(after, *(notification.sequence for notification in notifications), 0),
            after,
        )
        return render_page(
            "notification_items.html", visitor, HERE, self._values(visitor, window) | {"window": window}
        )

    def show(
        self, visitor: SubscribeVisitor, sequence: NumberInPath, subscriber: SubscriberParameter = ""
    ) -> Response:
        values = self._read_values(visitor, sequence, subscriber)
        return render_page("notification.html", visitor, HERE, values)

    def inside(
        self, visitor: SubscribeVisitor, sequence: NumberInPath, subscriber: SubscriberParameter = ""
    ) -> Response:
        """Render the details of an item, as a fragment."""
        return render_page(
            "notification_inside.html", visitor, HERE, self._read_values(visitor, sequence, subscriber)
        )

    def acknowledge(self, visitor: SubscribeVisitor, form: Form) -> Response:
        upto = read_number(form, "upto")
        if upto is None:
            raise InputError("a number is missing", where="upto", accepted="the number of a notification")
        whose = subscriber_of(visitor.caller, form.get("subscriber") or None)
        self._store.acknowledgements.acknowledge(whose, upto)
        return redirect_to(f"{HOME}/{HERE}{format_query({'subscriber': form.get('subscriber')})}")

    def _window(self, whose: str, before: int) -> NotificationWindow:
        newest = self._store.notifications.last_sequence(whose)
        upto = min(newest, before - 1) if before else newest
        after = max(0, upto - PAGE)
        notifications = self._tidings.notifications(whose, after, PAGE if before else 2 * PAGE)
        last = max(newest, *(notification.sequence for notification in notifications), 0)
        return NotificationWindow(
            whose, notifications[::-1], last, self._store.acknowledgements.cursor(whose).acknowledged
        )

    def _values(self, visitor: Visitor, window: NotificationWindow) -> dict[str, Any]:
        ids = {each.subscription for each in window.notifications}
        texts = {id: text for id in ids if (text := self._text(window.subscriber, id))}
        whose = window.subscriber if visitor.is_administrator else ""
        return {"texts": texts, "titles": self._titles(window), "whose": whose}

    def _titles(self, window: NotificationWindow) -> dict[int, str]:
        """Return the titles of publications, as in a feed, by the numbers of their notifications."""
        ids = {each.publication for each in window.notifications if each.kind == MATCHED}
        publications = self._store.journal.find_all(ids, LARGEST)
        return {
            each.sequence: publication_title(each, publications.get(each.publication))
            for each in window.notifications
        }

    def _read_values(self, visitor: Visitor, sequence: int, subscriber: str) -> dict[str, Any]:
        whose = subscriber_of(visitor.caller, subscriber or None)
        notifications = self._tidings.notifications(whose, sequence - 1, 1) if sequence > 0 else []
        if not notifications or notifications[0].sequence != sequence:
            raise NotFound("there is no such notification", received=str(sequence))
        notification = notifications[0]
        read = self._store.acknowledgements.cursor(whose).acknowledged
        publication = (
            self._store.journal.find(notification.publication) if notification.kind == MATCHED else None
        )
        return {
            "notification": notification,
            "is_unread": sequence > read,
            "publication": publication,
            "body": highlight_publication(publication, [each.at for each in notification.because])
            if publication
            else None,
            "text": self._text(whose, notification.subscription),
            "reasons": [(format_reason(each), each.at) for each in notification.because],
            "whose": whose if visitor.is_administrator else "",
        }

    def _text(self, subscriber: str, id: str) -> str | None:
        """Return the text of a subscription. The id of a deleted one may belong to another subscriber now."""
        status = self._store.subscription_view.find(id)
        return status.subscription.text if status and status.subscription.subscriber == subscriber else None

    def _known_subscribers(self) -> list[str]:
        """Return some subscribers with notifications or a token, as suggestions."""
        holders = {each.subscriber for each in self._store.tokens.list() if each.subscriber}
        return sorted(holders.union(self._store.notifications.subscribers(MOST_KNOWN)))[:MOST_KNOWN]

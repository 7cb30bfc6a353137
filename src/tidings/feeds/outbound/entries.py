"""Feed entries of notifications, independent of the format: sanitized, with reasons and a stable id."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID, uuid5

from tidings.core.text import escape_html, replace_invalid_characters, shorten
from tidings.errors import PublicationError
from tidings.feeds.outbound import sanitize
from tidings.graphs.syndication.item_graph import instant
from tidings.kinds import PublicationSummary, kind_of
from tidings.model import MATCHED, WITHHELD, Notification, Publication
from tidings.notification_text import (
    binding_rows,
    find_change,
    format_change,
    format_limits,
    format_reason,
    format_reasons,
)
from tidings.store.notifications.subscription_entries import NumberedNotification

NAMESPACE = UUID("5f0e1f0e-6a0b-5c65-9a3c-3f7f1c0f6f52")
"""Namespace of the UUIDs of entries. A change would make every reader show every entry again."""

ROWS, NAMES = 20, 20
"""The maximum of bindings, and of creators and subjects, in an entry."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A feed entry: plain text in `title`, `summary`, `creators` and `subjects`, sanitized HTML in `content`."""

    id: str
    title: str
    link: str | None
    summary: str
    content: str
    published: datetime
    updated: datetime
    creators: tuple[str, ...]
    subjects: tuple[str, ...]
    facts: dict[str, Any]


def urn(*names: str) -> str:
    """Derive a URN from names, the same everywhere."""
    return uuid5(NAMESPACE, json.dumps(names)).urn


def build_entry(listed: NumberedNotification, publication: Publication | None) -> Entry:
    """Build the feed entry of a notification."""
    notification = listed.notification
    summary = _summarize(notification, publication)
    published = datetime.fromisoformat(notification.time)
    # A date in the future would stay on top of the list in every reader until then.
    date = _first_date(summary.dates)
    updated = date if date and date <= published else published
    return Entry(
        id=urn(notification.id),
        title=_title(summary, notification),
        link=sanitize.safe_link(summary.link),
        summary=sanitize.to_line(summary.description or "", sanitize.SUMMARY)
        or _describe_reasons(notification),
        content=_content(summary, notification),
        published=published,
        updated=updated,
        creators=_names(summary.creators),
        subjects=_names(summary.subjects),
        facts=facts_of(notification),
    )


def _summarize(notification: Notification, publication: Publication | None) -> PublicationSummary:
    """Summarize a publication or a changed object; a withheld notification shows nothing."""
    if notification.kind == WITHHELD:
        return PublicationSummary(title=WITHHELD, description="You may not see this publication any more.")
    if find_change(notification) is not None:
        return PublicationSummary(title=_describe_change(notification))
    return summarize_publication(publication if notification.kind == MATCHED else None, _nodes(notification))


def publication_title(notification: Notification, publication: Publication | None) -> str:
    """Return the title of a matched publication in one line; empty without one, or for other notifications."""
    return (
        sanitize.to_line(summarize_publication(publication, _nodes(notification)).title or "")
        if notification.kind == MATCHED
        else ""
    )


def _describe_change(notification: Notification) -> str:
    """Describe a changed object or resource. They are not in the journal, even if a publication has the same id."""
    return escape_html(format_change(notification))


def _nodes(notification: Notification) -> list[str]:
    """Return the bindings of a pattern's variables, in the order of the pattern."""
    return [value for row in _rows(notification) for value in row.values()]


def _rows(notification: Notification) -> list[dict[str, str]]:
    return binding_rows(notification.bindings)[:ROWS]


def _title(summary: PublicationSummary, notification: Notification) -> str:
    reasons, id = escape_html(format_reasons(notification.because)), escape_html(notification.publication)
    return (
        sanitize.to_line(summary.title or "")
        or sanitize.to_line(reasons)
        or sanitize.to_line(f"Publication {id}")
    )


def _describe_reasons(notification: Notification) -> str:
    return sanitize.to_line(escape_html(format_reasons(notification.because)), sanitize.SUMMARY)


def _names(names: Sequence[str]) -> tuple[str, ...]:
    shown = (sanitize.to_line(name, sanitize.NAME) for name in names[:NAMES])
    return tuple(dict.fromkeys(name for name in shown if name))


def _content(summary: PublicationSummary, notification: Notification) -> str:
    """Render the content of the publication and the reasons of the match as HTML."""
    body = sanitize.sanitize_html(summary.content or summary.description or "")
    shown = (shorten(format_reason(one), sanitize.SUMMARY) for one in notification.because)
    reasons = "".join(f"<li>{escape_html(one)}</li>" for one in shown)
    reasons_html = f"<p>Because:</p><ul>{reasons}</ul>" if reasons else ""
    return body + sanitize.sanitize_html(_values(notification) + reasons_html + _bindings(notification))


def _values(notification: Notification) -> str:
    """Render the values of a changed object before and after."""
    changed = find_change(notification) or {}
    old, new = changed.get("before") or {}, changed.get("after") or {}
    names = list(dict.fromkeys((*old, *new)))[:ROWS]
    lines = ((name, _value(old, name), _value(new, name)) for name in names)
    rows = "".join(f"<tr>{''.join(f'<td>{escape_html(cell)}</td>' for cell in line)}</tr>" for line in lines)
    head = "<tr><th></th><th>before</th><th>after</th></tr>"
    limits = f"<p>{escape_html(format_limits(notification))}</p>" if format_limits(notification) else ""
    return (f"<table>{head}{rows}</table>" if rows else "") + limits


def _value(values: dict[str, Any], name: str) -> str:
    """Return a value as text; empty without one."""
    value = values.get(name)
    shown = value if isinstance(value, str) else "" if value is None else json.dumps(value)
    return shorten(shown, sanitize.SUMMARY)


def _bindings(notification: Notification) -> str:
    rows = _rows(notification)
    if not rows:
        return ""
    names = list(dict.fromkeys(name for row in rows for name in row))
    head = "".join(f"<th>?{escape_html(name)}</th>" for name in names)
    lines = ("".join(f"<td>{_cell(row, name)}</td>" for name in names) for row in rows)
    omitted = len(binding_rows(notification.bindings)) - len(rows)
    remark = (notification.bindings or {}).get("note") or (f"and {omitted:,} more" if omitted else "")
    note = f"<p>{escape_html(remark)}</p>" if remark else ""
    return f"<table><tr>{head}</tr>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>{note}"


def _cell(row: dict[str, str], name: str) -> str:
    return escape_html(shorten(row.get(name, ""), sanitize.SUMMARY))


def facts_of(notification: Notification) -> dict[str, Any]:
    """Return the notification for programs, like `tidings notifications --json` without the subscriber.

    Long texts are cut.
    """
    reasons = [
        {"predicate": reason.predicate, "value": reason.value, "at": reason.at}
        for reason in notification.because
    ]
    facts = {
        "notification": notification.id,
        "sequence": notification.sequence,
        "kind": notification.kind,
        "subscription": notification.subscription,
        "publication": notification.publication,
        "because": reasons,
        "bindings": notification.bindings,
    }
    clean: dict[str, Any] = _clean(facts)
    return clean


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return replace_invalid_characters(shorten(value, sanitize.SUMMARY))
    if isinstance(value, dict):
        return {_clean(name): _clean(inner) for name, inner in value.items()}
    return [_clean(inner) for inner in value] if isinstance(value, list | tuple) else value


def summarize_publication(publication: Publication | None, about: Sequence[str] = ()) -> PublicationSummary:
    """Summarize a publication; `about` names resources that the match is about.

    Each kind of publications finds title, link, text and date; missing ones are left out. The
    summary is empty for a publication that is not in the journal, because the stream reads a folder, and for one
    that today's limits would reject.
    """
    if publication is None:
        return PublicationSummary()
    try:
        return kind_of(publication.media_type).summarize(publication, about)
    except PublicationError:
        return PublicationSummary()


def _first_date(texts: Iterable[str]) -> datetime | None:
    """Return the first of the texts that is a date."""
    return next((date for text in texts if (date := instant(text))), None)

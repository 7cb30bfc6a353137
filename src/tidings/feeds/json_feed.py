"""JSON Feed 1.1."""

from __future__ import annotations

import json
from typing import Any

from tidings.feeds.entries import Entry
from tidings.feeds.feed import AUTHOR, Feed, rfc3339

VERSION = "https://jsonfeed.org/version/1.1"


def json_feed(feed: Feed) -> bytes:
    links = feed.links
    made: dict[str, Any] = {
        "version": VERSION,
        "title": feed.title,
        "home_page_url": links.home,
        "feed_url": links.self,
        "description": feed.description,
        "authors": [{"name": AUTHOR}],
        "hubs": [{"type": "WebSub", "url": links.hub}],
    }
    made |= {"next_url": links.prev_archive} if links.prev_archive else {}
    made["items"] = [_item(entry) for entry in feed.entries]
    return json.dumps(made, ensure_ascii=False, indent=1).encode()


def _item(entry: Entry) -> dict[str, Any]:
    made = {
        "id": entry.id,
        "url": entry.link,
        "title": entry.title,
        "summary": entry.summary,
        "content_html": entry.content,
        "date_published": rfc3339(entry.published),
        "date_modified": rfc3339(entry.updated),
        "authors": [{"name": name} for name in entry.creators],
        "tags": list(entry.subjects),
        "_tidings": entry.facts,
    }
    return {name: value for name, value in made.items() if value}

"""Guess the media type of a pasted text."""

from __future__ import annotations

from collections.abc import Mapping

from tidings.kinds import JSON, kinds


def list_titles() -> Mapping[str, str]:
    """Return the media types that a form offers, with their names for people."""
    return {media_type: title for kind in kinds() for media_type, title in kind.titles.items()}


def sniff_media_type(text: str) -> str:
    """Guess the media type of a text. The built-in kinds are asked last, events last of all: they accept anything."""
    begins = text.removeprefix("\ufeff").lstrip()
    found = (kind.sniff(begins) for kind in reversed(kinds()))
    return next((media_type for media_type in found if media_type), JSON)

"""HTML that is built from parts: what is no HTML already is escaped, so that nothing in metadata can be a tag,
or turn the text around it.
"""

from __future__ import annotations

from html import escape

from tidings.bidi import visible


class Html(str):
    """A piece of HTML."""

    __slots__ = ()


_ALONE = frozenset({"meta", "link"})


def tag(name: str, /, *parts: str | None, **attributes: str | None) -> Html:
    """An element. Attributes that are Python's words have an underscore behind them: `class_`."""
    said = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    inside = joined(*parts)
    return Html(f"<{name}{said}>" if name in _ALONE else f"<{name}{said}>{inside}</{name}>")


def joined(*parts: str | None) -> Html:
    """Pieces one after the other."""
    return Html(
        "".join(
            part if isinstance(part, Html) else escape(visible(part)) for part in parts if part is not None
        )
    )


def page(title: str, style: str, *parts: str) -> Html:
    """A whole page with a stylesheet and no script."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        tag("link", rel="stylesheet", href=style),
    )
    return joined(Html("<!DOCTYPE html>\n"), tag("html", head, tag("body", *parts), lang="en"), "\n")

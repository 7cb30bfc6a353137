"""HTML that is built from parts: what is no HTML already is escaped, so that nothing in metadata can be a tag,
or turn the text around it.
"""

from __future__ import annotations

from html import escape

from tidings.core.text import escape_bidi


class Html(str):
    """A piece of HTML."""

    __slots__ = ()


_VOID_ELEMENTS = frozenset({"meta", "link"})


def html_element(name: str, /, *parts: str | None, **attributes: str | None) -> Html:
    """An element. Attributes that are Python's words have an underscore behind them: `class_`."""
    said = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    inside = join_html(*parts)
    return Html(f"<{name}{said}>" if name in _VOID_ELEMENTS else f"<{name}{said}>{inside}</{name}>")


def join_html(*parts: str | None) -> Html:
    """Pieces one after the other."""
    return Html(
        "".join(
            part if isinstance(part, Html) else escape(escape_bidi(part))
            for part in parts
            if part is not None
        )
    )


def html_page(title: str, style: str, *parts: str) -> Html:
    """A whole page with a stylesheet and no script."""
    head = html_element(
        "head",
        html_element("meta", charset="utf-8"),
        html_element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        html_element("meta", name="color-scheme", content="light dark"),
        html_element("title", title),
        html_element("link", rel="stylesheet", href=style),
    )
    return join_html(
        Html("<!DOCTYPE html>\n"), html_element("html", head, html_element("body", *parts), lang="en"), "\n"
    )

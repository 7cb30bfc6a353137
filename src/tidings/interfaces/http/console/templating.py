"""Templates to pages. Everything that is put into one is escaped, and nothing in it turns the text around it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from tidings import durations
from tidings.bidi import visible
from tidings.counts import plural
from tidings.interfaces.http.console.pretty import underlined
from tidings.reasons import bound_rows, change_of, in_words, show_change, show_limits, show_reason
from tidings.values import show


class Typed(Markup):
    """What stands in a field of a form: it is sent back as it is, and turns nothing outside of its field."""


def _harmless(value: object) -> object:
    """Whatever a template shows goes through here."""
    if not isinstance(value, str) or isinstance(value, Typed):
        return value
    return Markup(visible(value)) if isinstance(value, Markup) else visible(value)


def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("tidings.interfaces.http.console"),
        autoescape=True,
        finalize=_harmless,
        undefined=StrictUndefined,  # a name that is mistyped in a template is an error, not nothing
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"duration": durations.show, "moment": moment, "capital": capital, "query": query}
    made.filters["typed"] = Typed.escape
    made.globals |= {
        "between": between,
        "bound_rows": bound_rows,
        "change_of": change_of,
        "in_words": in_words,
        "plural": plural,
        "show_change": show_change,
        "show_limits": show_limits,
        "show_reason": show_reason,
        "show_value": show,
        "underlined": underlined,
    }
    return made


def rendered(name: str, values: Mapping[str, Any]) -> str:
    """The page of a template."""
    return _made.get_template(name).render(values)


def moment(instant: str) -> str:
    """`2026-11-17 02:50:42` of an instant; the whole of it is in the element's `datetime`."""
    return instant[:19].replace("T", " ")


def between(one: str, other: str) -> str:
    """`5 minutes`: how long it was from an instant to another."""
    passed = datetime.fromisoformat(other) - datetime.fromisoformat(one)
    return durations.about(passed.total_seconds())


def capital(text: str) -> str:
    """What errors say, as a sentence."""
    return text[:1].upper() + text[1:]


def query(values: Mapping[str, object]) -> str:
    """`?name=value` of what is there; nothing of nothing."""
    given = {name: value for name, value in values.items() if value not in (None, "")}
    return f"?{urlencode(given)}" if given else ""


_made = _environment()

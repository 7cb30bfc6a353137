"""The pages on which people look around in metadata. They work without scripts."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote, urlencode

from tidings.api.html import Html, html_element, html_page, join_html
from tidings.core.text import plural
from tidings.errors import TidingsError
from tidings.metadata.queries.browser import (
    ClassSummary,
    InstancePage,
    Link,
    ResourceView,
    SuggestedRule,
    class_tree,
    display_value,
)
from tidings.metadata.resources import Ref, Value

CLASSES, STYLE = "/browse", "/browse/style.css"
CSS = Path(__file__).with_name("browsing.css").read_text()


def classes_page(classes: tuple[ClassSummary, ...]) -> Html:
    rows = [
        html_element(
            "tr",
            html_element("td", html_element("span", class_link(cls.name), class_=f"depth-{min(depth, 12)}")),
            html_element("td", f"{cls.all:,}", class_="number"),
            html_element("td", f"{cls.own:,}", class_="number quiet"),
        )
        for depth, cls in class_tree(classes)
    ]
    total = plural(sum(cls.own for cls in classes), "resource")
    lead = html_element("p", f"{plural(len(classes), 'class')}, {total}.", class_="quiet")
    return _page(
        "Classes",
        (),
        html_element("h1", "Classes"),
        lead,
        _table(("Class", "Resources", "Its own"), rows, "counts"),
    )


def class_page(found: InstancePage, picked: SuggestedRule, is_first: bool) -> Html:
    cls = found.of
    rows = [
        html_element(
            "tr", html_element("td", resource_link(each.uri)), html_element("td", class_link(each.cls))
        )
        for each in found.found
    ]
    above = join_html("Below ", *_listed(map(class_link, cls.parents)), ". ") if cls.parents else None
    own = f", {cls.own:,} of them its own" if cls.own != cls.all else ""
    return _page(
        cls.name,
        (),
        html_element("h1", cls.name),
        html_element("p", above, f"{plural(cls.all, 'resource')}{own}.", class_="quiet"),
        _table(("Resource", "Class"), rows)
        if rows
        else html_element("p", "Nothing here." if is_first else "No more."),
        _pages(class_address(cls.name), {}, found.more, is_first),
        _cache_box(cls.name, picked),
    )


def resource_page(seen: ResourceView, picked: SuggestedRule, is_first: bool) -> Html:
    resource = seen.resource
    values = [
        html_element(
            "tr", html_element("th", name, scope="row"), html_element("td", *_listed(map(_value, literals)))
        )
        for name, each in resource.values.items()
        if (literals := [value for value in each if not isinstance(value, Ref)])
    ]
    here = {"uri": resource.uri}
    return _page(
        resource.uri,
        (class_link(resource.cls),),
        html_element("h1", _broken(resource.uri)),
        html_element(
            "p",
            "A ",
            class_link(resource.cls),
            " of the document ",
            html_element("code", seen.document),
            class_="quiet",
        ),
        html_element("h2", "Values"),
        html_element("table", html_element("tbody", *values))
        if values
        else html_element("p", "None.", class_="quiet"),
        html_element("h2", "Refers to"),
        _links(seen.references, "→") if seen.references else html_element("p", "Nothing.", class_="quiet"),
        html_element("h2", "Is referred to by"),
        _links(seen.referrers, "←") if seen.referrers else html_element("p", "Nothing.", class_="quiet"),
        _pages("/browse/resource", here, seen.more, is_first),
        _cache_box(resource.uri, picked),
    )


def problem_page(problem: TidingsError) -> Html:
    facts = [join_html("Accepted: ", problem.accepted)] if problem.accepted else []
    return _page(
        problem.what,
        (),
        html_element("h1", problem.what[:1].upper() + problem.what[1:]),
        html_element("p", html_element("code", problem.received)) if problem.received else "",
        *(html_element("p", fact, class_="quiet") for fact in facts),
        html_element("p", problem.hint[:1].upper() + problem.hint[1:]) if problem.hint else "",
    )


def class_address(name: str) -> str:
    return f"/browse/class/{quote(name, safe='')}"


def class_link(name: str) -> Html:
    return html_element("a", name, href=class_address(name))


def resource_link(uri: str) -> Html:
    """A resource is shown here; what its URI is an address of is somebody else's."""
    return html_element("a", _broken(uri), href=f"/browse/resource?{urlencode({'uri': uri})}")


def _page(title: str, way: Iterable[Html], *parts: str) -> Html:
    start = html_element("a", "Metadata", href=CLASSES)
    header = html_element("header", html_element("nav", *_listed((start, *way), " / ")))
    return html_page(f"{title} – Tidings", STYLE, header, html_element("main", *parts))


def _table(heads: Iterable[str], rows: Iterable[Html], kind: str | None = None) -> Html:
    head = html_element("tr", *(html_element("th", each, scope="col") for each in heads))
    return html_element("table", html_element("thead", head), html_element("tbody", *rows), class_=kind)


def _links(links: Iterable[Link], arrow: str) -> Html:
    rows = (
        html_element(
            "tr",
            html_element("th", each.property, scope="row"),
            html_element(
                "td", html_element("span", each.reference.value, class_=f"kind {each.reference.value}")
            ),
            html_element(
                "td", Html(f'<span aria-hidden="true" class="quiet">{arrow}</span> '), resource_link(each.uri)
            ),
            html_element(
                "td", class_link(each.cls) if each.cls else html_element("em", "not there"), _nowhere(each)
            ),
        )
        for each in links
    )
    return html_element("table", html_element("tbody", *rows), class_="links")


def _nowhere(link: Link) -> Html | None:
    return html_element("small", "of another class: leads nowhere") if link.cls and not link.leads else None


def _value(value: Value) -> str:
    return "" if isinstance(value, Ref) else display_value(value)


def _pages(address: str, given: dict[str, str], more: str | None, is_first: bool) -> Html:
    """The way to the first page and to the next one."""
    start = address + (f"?{urlencode(given)}" if given else "")
    links = [] if is_first else [html_element("a", "first page", href=start)]
    if more is not None:
        links.append(
            html_element("a", "next page", href=f"{address}?{urlencode(given | {'after': more})}", rel="next")
        )
    return html_element("p", *_listed(links, " · "), class_="pages") if links else Html("")


def _cache_box(what: str, picked: SuggestedRule) -> Html:
    command = f"tidings provider pick {shlex.quote(what)} --as NAME"
    return html_element(
        "section",
        html_element("h2", "Cache this"),
        html_element("p", "The rule that registers it, as it stands in the file of a repository's rules:"),
        html_element("pre", html_element("code", f"{picked.name}: {picked.text}")),
        html_element("p", "Or add it at this provider:"),
        html_element("pre", html_element("code", command)),
        class_="cache",
    )


def _broken(uri: str) -> Html:
    """A URI that may be broken behind its slashes where a line is too short for it."""
    parts = uri.replace("#", "\n#").replace("/", "/\n").split("\n")
    return join_html(*(piece for part in parts for piece in (part, Html("<wbr>"))))


def _listed(parts: Iterable[str], between: str = ", ") -> list[str]:
    found: list[str] = []
    for part in parts:
        found += (between, part) if found else (part,)
    return found

"""The pages on which people look around in metadata. They work without scripts."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote, urlencode

from tidings.browsing import ClassSeen, Instances, Link, Picked, ResourceSeen, shown, tree
from tidings.counts import plural
from tidings.errors import TidingsError
from tidings.interfaces.http.html import Html, joined, page, tag
from tidings.metadata.resources import Ref, Value

CLASSES, STYLE = "/browse", "/browse/style.css"
CSS = Path(__file__).with_name("browsing.css").read_text()


def classes_page(classes: tuple[ClassSeen, ...]) -> Html:
    rows = [
        tag(
            "tr",
            tag("td", tag("span", class_link(cls.name), class_=f"depth-{min(depth, 12)}")),
            tag("td", f"{cls.all:,}", class_="number"),
            tag("td", f"{cls.own:,}", class_="number quiet"),
        )
        for depth, cls in tree(classes)
    ]
    total = plural(sum(cls.own for cls in classes), "resource")
    lead = tag("p", f"{plural(len(classes), 'class')}, {total}.", class_="quiet")
    return _page(
        "Classes", (), tag("h1", "Classes"), lead, _table(("Class", "Resources", "Its own"), rows, "counts")
    )


def class_page(found: Instances, picked: Picked, is_first: bool) -> Html:
    cls = found.of
    rows = [
        tag("tr", tag("td", resource_link(each.uri)), tag("td", class_link(each.cls))) for each in found.found
    ]
    above = joined("Below ", *_listed(map(class_link, cls.parents)), ". ") if cls.parents else None
    own = f", {cls.own:,} of them its own" if cls.own != cls.all else ""
    return _page(
        cls.name,
        (),
        tag("h1", cls.name),
        tag("p", above, f"{plural(cls.all, 'resource')}{own}.", class_="quiet"),
        _table(("Resource", "Class"), rows)
        if rows
        else tag("p", "Nothing here." if is_first else "No more."),
        _pages(class_address(cls.name), {}, found.more, is_first),
        _cache_box(cls.name, picked),
    )


def resource_page(seen: ResourceSeen, picked: Picked, is_first: bool) -> Html:
    resource = seen.resource
    values = [
        tag("tr", tag("th", name, scope="row"), tag("td", *_listed(map(_value, literals))))
        for name, each in resource.values.items()
        if (literals := [value for value in each if not isinstance(value, Ref)])
    ]
    here = {"uri": resource.uri}
    return _page(
        resource.uri,
        (class_link(resource.cls),),
        tag("h1", _broken(resource.uri)),
        tag(
            "p",
            "A ",
            class_link(resource.cls),
            " of the document ",
            tag("code", seen.document),
            class_="quiet",
        ),
        tag("h2", "Values"),
        tag("table", tag("tbody", *values)) if values else tag("p", "None.", class_="quiet"),
        tag("h2", "Refers to"),
        _links(seen.references, "→") if seen.references else tag("p", "Nothing.", class_="quiet"),
        tag("h2", "Is referred to by"),
        _links(seen.referrers, "←") if seen.referrers else tag("p", "Nothing.", class_="quiet"),
        _pages("/browse/resource", here, seen.more, is_first),
        _cache_box(resource.uri, picked),
    )


def problem_page(problem: TidingsError) -> Html:
    facts = [joined("Accepted: ", problem.accepted)] if problem.accepted else []
    return _page(
        problem.what,
        (),
        tag("h1", problem.what[:1].upper() + problem.what[1:]),
        tag("p", tag("code", problem.received)) if problem.received else "",
        *(tag("p", fact, class_="quiet") for fact in facts),
        tag("p", problem.hint[:1].upper() + problem.hint[1:]) if problem.hint else "",
    )


def class_address(name: str) -> str:
    return f"/browse/class/{quote(name, safe='')}"


def class_link(name: str) -> Html:
    return tag("a", name, href=class_address(name))


def resource_link(uri: str) -> Html:
    """A resource is shown here; what its URI is an address of is somebody else's."""
    return tag("a", _broken(uri), href=f"/browse/resource?{urlencode({'uri': uri})}")


def _page(title: str, way: Iterable[Html], *parts: str) -> Html:
    start = tag("a", "Metadata", href=CLASSES)
    header = tag("header", tag("nav", *_listed((start, *way), " / ")))
    return page(f"{title} – Tidings", STYLE, header, tag("main", *parts))


def _table(heads: Iterable[str], rows: Iterable[Html], kind: str | None = None) -> Html:
    head = tag("tr", *(tag("th", each, scope="col") for each in heads))
    return tag("table", tag("thead", head), tag("tbody", *rows), class_=kind)


def _links(links: Iterable[Link], arrow: str) -> Html:
    rows = (
        tag(
            "tr",
            tag("th", each.property, scope="row"),
            tag("td", tag("span", each.reference.value, class_=f"kind {each.reference.value}")),
            tag(
                "td", Html(f'<span aria-hidden="true" class="quiet">{arrow}</span> '), resource_link(each.uri)
            ),
            tag("td", class_link(each.cls) if each.cls else tag("em", "not there"), _nowhere(each)),
        )
        for each in links
    )
    return tag("table", tag("tbody", *rows), class_="links")


def _nowhere(link: Link) -> Html | None:
    return tag("small", "of another class: leads nowhere") if link.cls and not link.leads else None


def _value(value: Value) -> str:
    return "" if isinstance(value, Ref) else shown(value)


def _pages(address: str, given: dict[str, str], more: str | None, is_first: bool) -> Html:
    """The way to the first page and to the next one."""
    start = address + (f"?{urlencode(given)}" if given else "")
    links = [] if is_first else [tag("a", "first page", href=start)]
    if more is not None:
        links.append(
            tag("a", "next page", href=f"{address}?{urlencode(given | {'after': more})}", rel="next")
        )
    return tag("p", *_listed(links, " · "), class_="pages") if links else Html("")


def _cache_box(what: str, picked: Picked) -> Html:
    command = f"tidings provider pick {shlex.quote(what)} --as NAME"
    return tag(
        "section",
        tag("h2", "Cache this"),
        tag("p", "The rule that registers it, as it stands in the file of a repository's rules:"),
        tag("pre", tag("code", f"{picked.name}: {picked.text}")),
        tag("p", "Or add it at this provider:"),
        tag("pre", tag("code", command)),
        class_="cache",
    )


def _broken(uri: str) -> Html:
    """A URI that may be broken behind its slashes where a line is too short for it."""
    parts = uri.replace("#", "\n#").replace("/", "/\n").split("\n")
    return joined(*(piece for part in parts for piece in (part, Html("<wbr>"))))


def _listed(parts: Iterable[str], between: str = ", ") -> list[str]:
    found: list[str] = []
    for part in parts:
        found += (between, part) if found else (part,)
    return found

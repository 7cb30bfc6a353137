"""`provider browse` and `provider pick`: looking around in metadata, and rules for what was found."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidings.cli import output
from tidings.cli.metadata.rules import rule
from tidings.cli.options import DEFAULT_HOME, HomeOption, JsonOption, StoreOption, open_tidings
from tidings.core.text import plural
from tidings.errors import InputError

if TYPE_CHECKING:
    from tidings.metadata.queries.browser import Browser, ClassSummary, InstancePage, Link, ResourceView

AfterOption = Annotated[
    str, typer.Option("--after", metavar="MARK", help="Where a page begins, as the one before it says.")
]
LimitOption = Annotated[
    int, typer.Option("--limit", min=1, max=1_000, metavar="N", help="How many on a page.")
]


def browse(
    what: Annotated[
        str, typer.Argument(metavar="CLASS|URI", help="What to look at; without it, all classes.")
    ] = "",
    after: AfterOption = "",
    limit: LimitOption = 50,
    home: HomeOption = DEFAULT_HOME,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Look around: classes with their counts, the resources of a class, a resource with references to and from it.

    [dim]Examples[/]
      tidings provider browse
      tidings provider browse CycleProvider
      tidings provider browse http://example.org/doc.rdf#host
    """
    with _browser(home, store) as browser:
        if not what:
            _show_classes(browser.classes(), as_json)
        elif browser.is_class(what):
            _show_instances(browser.instances(what, after, limit), as_json)
        else:
            _show_resource(browser.resource(what, after, limit), as_json)


def pick(
    what: Annotated[
        str, typer.Argument(metavar="CLASS|URI", help="What should be cached.", show_default=False)
    ],
    subscriber: Annotated[
        str | None,
        typer.Option("--as", metavar="NAME", help="The subscriber; the rule is added.", show_default=False),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="RULE", help="What the rule is called.", show_default=False),
    ] = None,
    home: HomeOption = DEFAULT_HOME,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write the rule that registers all resources of a class, or one resource; with [cyan]--as[/], add it.

    [dim]Examples[/]
      tidings provider pick http://example.org/doc.rdf#host
      tidings provider pick CycleProvider --as ana --name providers
    """
    if name is not None and subscriber is None:
        raise InputError(
            "a name is for a rule that is added", where="--name", hint="say for whom with --as NAME"
        )
    with _browser(home, store) as browser:
        picked = browser.pick(what)
    if subscriber is not None:
        rule(name or picked.name, picked.text, subscriber, home=home, store=store, as_json=as_json)
    elif as_json:
        output.print_json({"name": picked.name, "text": picked.text})
    else:
        output.print_line(picked.text)


@contextmanager
def _browser(home: Path, store: str | None) -> Iterator[Browser]:
    from tidings.metadata.queries.browser import Browser

    with open_tidings(home, store) as tidings:
        yield Browser(tidings.store)


def _show_classes(classes: tuple[ClassSummary, ...], as_json: bool) -> None:
    from tidings.metadata.queries.browser import class_to_json, class_tree

    if as_json:
        for each in classes:
            output.print_json(class_to_json(each))
        return
    for depth, cls in class_tree(classes):
        own = f", {cls.own:,} its own" if cls.own != cls.all else ""
        output.print_line(("  " * depth + cls.name, "bold cyan"), plural(cls.all, "resource") + own)


def _show_instances(page: InstancePage, as_json: bool) -> None:
    for each in page.found:
        if as_json:
            output.print_json({"uri": each.uri, "class": each.cls})
        else:
            output.print_line((each.uri, "bold cyan"), (each.cls, "dim"))
    if not page.found:
        output.print_note("nothing")
    _show_more(page.of.name, page.more)


def _show_resource(seen: ResourceView, as_json: bool) -> None:
    from tidings.metadata.queries.browser import display_value, view_to_json
    from tidings.metadata.resources import Ref

    if as_json:
        output.print_json(view_to_json(seen))
        return
    output.print_line((seen.resource.uri, "bold cyan"), (seen.resource.cls, "dim"))
    for name, values in seen.resource.values.items():
        said = [display_value(value) for value in values if not isinstance(value, Ref)]
        if said:
            output.print_line(f"  {name}", ", ".join(said))
    _show_links("->", seen.references)
    _show_links("<-", seen.referrers)
    _show_more(seen.resource.uri, seen.more)


def _show_links(arrow: str, links: tuple[Link, ...]) -> None:
    for each in links:
        cls = each.cls or "not there"
        nowhere = [("leads nowhere: another class", "yellow")] if each.cls and not each.leads else []
        strength = (each.reference.value, "bold" if each.reference.value == "strong" else "dim")
        output.print_line(f"  {each.property}", strength, arrow, (each.uri, "cyan"), (cls, "dim"), *nowhere)


def _show_more(what: str, more: str | None) -> None:
    if more is not None:
        output.print_note(f"more: tidings provider browse '{what}' --after '{more}'")

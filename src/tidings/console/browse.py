"""Browse pages: event schema, taxonomies, reference tables, object model and rule graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from markupsafe import Markup

from tidings.console.pages import console_router
from tidings.console.session import AnyVisitor, Visitor, render_page
from tidings.core.drawing.picture import Picture
from tidings.core.drawing.svg import render_svg_fragment
from tidings.errors import InputError, NotFound
from tidings.graphs.taxonomy import SUBCLASS, Taxonomy, merged
from tidings.graphs.taxonomy_files import taxonomy_in
from tidings.metadata.filter import rule_picture
from tidings.objects.model import model_picture
from tidings.objects.readers.model_loader import read_model
from tidings.objects.sources import SourceRegistry
from tidings.service.tidings import Tidings

MOST = 2_000
"""Lines of a tree that are shown."""
DEEPEST = 8
"""Largest indentation of a line."""


@dataclass(frozen=True, slots=True)
class Branch:
    """A line of a tree, and a note beside it."""

    depth: int
    name: str
    beside: str = ""

    @property
    def indent(self) -> int:
        return min(self.depth, DEEPEST)


def walk_tree(parents: Mapping[str, Iterable[str]]) -> Iterator[tuple[int, str]]:
    """Yield names with their depths. A name with several parents appears below each, its children only once."""
    below: dict[str, list[str]] = {name: [] for name in parents}
    for name, above in parents.items():
        for parent in above:
            below.setdefault(parent, []).append(name)
    waiting = [(0, name) for name in sorted(below, reverse=True) if not parents.get(name)]
    while waiting:
        depth, name = waiting.pop()
        yield depth, name
        waiting += ((depth + 1, parent) for parent in sorted(below.pop(name, []), reverse=True))


def list_taxonomy_classes(taxonomy: Taxonomy) -> list[Branch]:
    """Return the classes of a taxonomy with their numbers of instances."""
    parents: dict[str, list[str]] = {term.text: [] for term in taxonomy.classes}
    for edge in taxonomy.statements:
        if edge.property.text == SUBCLASS:
            parents[edge.subject.text].append(edge.object.text)
    counts: dict[str, int] = {}
    for classes in taxonomy.types.values():
        for ancestor in classes:
            counts[ancestor.text] = counts.get(ancestor.text, 0) + 1
    branches = (Branch(depth, name, str(counts.get(name, ""))) for depth, name in walk_tree(parents))
    return [branch for branch, _ in zip(branches, range(MOST), strict=False)]


HERE = "browse"

Name = Annotated[str, Query(max_length=500)]


def router_for(tidings: Tidings) -> APIRouter:
    """Return the browse pages."""
    router = console_router("browse")
    for made in (
        ReferencePages(tidings).routes(),
        DiagramPages(tidings).routes(),
    ):
        for path, answer in made.items():
            router.add_api_route(path, answer, methods=["GET"])
    return router


class ReferencePages:
    """The start page, and the pages of the event schema, taxonomies and reference tables."""

    def __init__(self, tidings: Tidings) -> None:
        self._tidings = tidings

    def routes(self) -> dict[str, Callable[..., Response]]:
        return {
            "": self.all,
            "/schema": self.schema,
            "/taxonomies": self.taxonomies,
            "/references": self.references,
        }

    def all(self, visitor: AnyVisitor) -> Response:
        schema, store = self._tidings.schema(), self._tidings.store
        values = {
            "event_types": len(schema.event_types),
            "attributes": len(schema.attributes),
            "taxonomies": len(store.taxonomies.load()),
            "references": len(self._tidings.references()),
            "resources": sum(store.metadata_browsing.counts().values()),
            "sources": len(store.object_sources.load()),
            "rules": len(_rules(self._tidings, visitor)),
        }
        return render_page("browse.html", visitor, HERE, values)

    def schema(self, visitor: AnyVisitor) -> Response:
        schema = self._tidings.schema()
        trees_of = {
            name: [Branch(*each) for each in islice(walk_tree(domain.below), MOST)]
            for name, domain in schema.domains.items()
        }
        return render_page("schema.html", visitor, HERE, {"schema": schema, "trees": trees_of})

    def taxonomies(self, visitor: AnyVisitor) -> Response:
        files = self._tidings.store.taxonomies.load()
        whole = merged(*(taxonomy_in(file.body, file.media_type) for file in files))
        values = {"loaded": self._tidings.taxonomies(), "branches": list_taxonomy_classes(whole)}
        return render_page("taxonomies.html", visitor, HERE, values)

    def references(self, visitor: AnyVisitor) -> Response:
        return render_page("references.html", visitor, HERE, {"references": self._tidings.references()})


class DiagramPages:
    """Diagrams of the object model and of rules. A model is read once while the service runs."""

    def __init__(self, tidings: Tidings) -> None:
        self._tidings, self._read = tidings, cache(read_model)

    def routes(self) -> dict[str, Callable[..., Response]]:
        return {"/model": self.model, "/rules": self.rules}

    def model(
        self, visitor: AnyVisitor, source: Name = "", cls: Annotated[str, Query(alias="class")] = ""
    ) -> Response:
        """Show the model of a source, or one class with its neighbours."""
        sources = SourceRegistry(self._tidings.store)
        names = [each.name for each in sources.list_sources()]
        values: dict[str, Any] = {
            "sources": names,
            "source": source,
            "cls": cls,
            "classes": [],
            "drawn": None,
        }
        if names:
            chosen = sources.select(source or names[0])
            model = self._read(chosen.model).model
            values |= {"source": chosen.name, "classes": list(model.classes)}
            values |= _draw_picture(lambda: model_picture.build_model_picture(model, [cls] if cls else []))
        return render_page("model.html", visitor, HERE, {"problem": None, **values})

    def rules(self, visitor: AnyVisitor, rule: Name = "") -> Response:
        """Show all rules of the visitor, or one of them."""
        names = _rules(self._tidings, visitor)
        values: dict[str, Any] = {"rules": names, "rule": rule, "drawn": None}
        if rule and rule not in names:  # including rules of others
            raise NotFound("there is no such rule", received=rule)
        if names:
            shown_rules = [rule] if rule else names
            values |= _draw_picture(lambda: rule_picture.build_rule_picture(self._tidings.store, shown_rules))
        return render_page("rules.html", visitor, HERE, {"problem": None, **values})


def _draw_picture(picture: Callable[[], Picture]) -> dict[str, Any]:
    """Draw a picture; if it would be too large, return the error, shown above the choice of a part."""
    try:
        return {"drawn": Markup(render_svg_fragment(picture()))}  # its texts were escaped there
    except InputError as problem:
        return {"problem": problem}


def _rules(tidings: Tidings, visitor: Visitor) -> list[str]:
    """Return the names of the rules that the visitor may see."""
    return [each.name for each in tidings.store.metadata.rules() if visitor.caller.may_act_for(each.owner)]

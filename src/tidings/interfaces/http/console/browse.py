"""Looking around: the event schema, taxonomies, reference tables, metadata, the model of objects, the rules."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import islice
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from markupsafe import Markup

from tidings.browsing import PAGE, Browser, shown, tree
from tidings.errors import Absent, InputError
from tidings.interfaces import model_picture, rule_picture
from tidings.interfaces.drawing.picture import Picture
from tidings.interfaces.drawing.svg import drawn_bare
from tidings.interfaces.http.console import trees
from tidings.interfaces.http.console.answering import pages_at
from tidings.interfaces.http.console.visiting import Visiting, Visitor, page
from tidings.metadata.resources import Ref
from tidings.objects.model_files import read_model
from tidings.publications.taxonomy_files import taxonomy_in
from tidings.service import Tidings
from tidings.service.sources import Sources
from tidings.taxonomies import merged

HERE = "browse"

After = Annotated[str, Query(max_length=1_100)]
Uri = Annotated[str, Query(min_length=1, max_length=500)]
Name = Annotated[str, Query(max_length=500)]


def router_for(tidings: Tidings) -> APIRouter:
    """The pages for looking around."""
    router = pages_at("browse")
    for made in (Known(tidings).routes(), Metadata(tidings).routes(), Pictures(tidings).routes()):
        for path, answer in made.items():
            router.add_api_route(path, answer, methods=["GET"])
    return router


class Known:
    """What matching knows: the event schema, taxonomies, reference tables; and what there is to look at."""

    def __init__(self, tidings: Tidings) -> None:
        self._tidings = tidings

    def routes(self) -> dict[str, Callable[..., Response]]:
        return {
            "": self.all,
            "/schema": self.schema,
            "/taxonomies": self.taxonomies,
            "/references": self.references,
        }

    def all(self, visitor: Visiting) -> Response:
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
        return page("browse.html", visitor, HERE, values)

    def schema(self, visitor: Visiting) -> Response:
        schema = self._tidings.schema()
        trees_of = {
            name: [trees.Branch(*each) for each in islice(trees.tree(domain.below), trees.MOST)]
            for name, domain in schema.domains.items()
        }
        return page("schema.html", visitor, HERE, {"schema": schema, "trees": trees_of})

    def taxonomies(self, visitor: Visiting) -> Response:
        files = self._tidings.store.taxonomies.load()
        whole = merged(*(taxonomy_in(file.body, file.media_type) for file in files))
        values = {"loaded": self._tidings.taxonomies(), "branches": trees.classes_of(whole)}
        return page("taxonomies.html", visitor, HERE, values)

    def references(self, visitor: Visiting) -> Response:
        return page("references.html", visitor, HERE, {"references": self._tidings.references()})


class Metadata:
    """Classes and resources."""

    def __init__(self, tidings: Tidings) -> None:
        self._browser = Browser(tidings.store)

    def routes(self) -> dict[str, Callable[..., Response]]:
        return {
            "/metadata": self.classes,
            "/metadata/class/{name}": self.instances,
            "/metadata/resource": self.resource,
        }

    def classes(self, visitor: Visiting) -> Response:
        lines = [(min(depth, trees.DEEPEST), each) for depth, each in tree(self._browser.classes())]
        return page("metadata.html", visitor, HERE, {"lines": lines})

    def instances(self, visitor: Visiting, name: str, after: After = "") -> Response:
        found = self._browser.instances(name, after, PAGE)
        values = {"found": found, "picked": self._browser.pick(name), "is_first": not after}
        return page("metadata_class.html", visitor, HERE, values)

    def resource(self, visitor: Visiting, uri: Uri, after: After = "") -> Response:
        seen = self._browser.resource(uri, after, PAGE)
        literals = {
            name: said
            for name, values in seen.resource.values.items()
            if (said := [shown(value) for value in values if not isinstance(value, Ref)])
        }
        values = {
            "seen": seen,
            "literals": literals,
            "picked": self._browser.pick(uri),
            "is_first": not after,
        }
        return page("metadata_resource.html", visitor, HERE, values)


class Pictures:
    """The model of objects and the rules, drawn. A model is read once while the service runs."""

    def __init__(self, tidings: Tidings) -> None:
        self._tidings, self._read = tidings, cache(read_model)

    def routes(self) -> dict[str, Callable[..., Response]]:
        return {"/model": self.model, "/rules": self.rules}

    def model(
        self, visitor: Visiting, source: Name = "", cls: Annotated[str, Query(alias="class")] = ""
    ) -> Response:
        """The model of a source, or of a class of it with what it is joined to."""
        sources = Sources(self._tidings.store)
        names = [each.name for each in sources.all()]
        values: dict[str, Any] = {
            "sources": names,
            "source": source,
            "cls": cls,
            "classes": [],
            "drawn": None,
        }
        if names:
            chosen = sources.chosen(source or names[0])
            model = self._read(chosen.model).model
            values |= {"source": chosen.name, "classes": list(model.classes)}
            values |= _drawn(lambda: model_picture.picture_of(model, [cls] if cls else []))
        return page("model.html", visitor, HERE, {"problem": None, **values})

    def rules(self, visitor: Visiting, rule: Name = "") -> Response:
        """All rules that are the visitor's, or one of them."""
        names = _rules(self._tidings, visitor)
        values: dict[str, Any] = {"rules": names, "rule": rule, "drawn": None}
        if rule and rule not in names:  # also if it is somebody else's
            raise Absent("there is no such rule", received=rule)
        if names:
            wanted = [rule] if rule else names
            values |= _drawn(lambda: rule_picture.picture_of(self._tidings.store, wanted))
        return page("rules.html", visitor, HERE, {"problem": None, **values})


def _drawn(picture: Callable[[], Picture]) -> dict[str, Any]:
    """What is too much for one picture is said above the choice of a part of it."""
    try:
        return {"drawn": Markup(drawn_bare(picture()))}  # what is drawn was escaped there
    except InputError as problem:
        return {"problem": problem}


def _rules(tidings: Tidings, visitor: Visitor) -> list[str]:
    """The names of the rules that are the visitor's to see."""
    return [each.name for each in tidings.store.metadata.rules() if visitor.caller.stands_for(each.owner)]

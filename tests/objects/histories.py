"""Random changes of objects in a database, and what each of them should lead to by definition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import strategies as st

from tests.objects.applying import Applying, References
from tests.objects.databases import Database
from tidings.objects.model.class_model import Association, ChangeKind, End
from tidings.objects.model.relational_view import quote_name
from tidings.objects.model.table_mapping import ForeignKey, LinkTable, MappedModel
from tidings.objects.notices import ObjectChange
from tidings.objects.propagation import (
    UNLIMITED,
    Change,
    Limits,
    Object,
    ObjectGraph,
    ObjectLink,
    PropagationResult,
    Watch,
    find_changed_end,
    propagate_change,
)


def create_tables(placed: MappedModel, key_type: str) -> Iterator[str]:
    """The tables of a model, some perhaps with several classes; what belongs to an object goes with it."""
    for name, columns in _columns_of_tables(placed, key_type).items():
        yield f"CREATE TABLE {quote_name(name)} ({', '.join(dict.fromkeys(columns))})"
    for each in placed.model.associations:
        link = placed.link(each)
        if isinstance(link, LinkTable):
            source, target = (
                f"{quote_name(column)} {key_type} {_refers(placed, each.at(end))}"
                for column, end in ((link.source, End.SOURCE), (link.target, End.TARGET))
            )
            yield f"CREATE TABLE {quote_name(link.name)} ({source}, {target})"


def _columns_of_tables(placed: MappedModel, key_type: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name in sorted(placed.tables, key=lambda each: len(list(placed.model.lineage(each)))):
        table, kept = placed.tables[name], placed.tables[name].discriminator
        if table.name not in found:
            found[table.name] = [f"{quote_name(table.key)} {key_type} PRIMARY KEY{_parent(placed, name)}"]
        found[table.name] += (f"{quote_name(column)} TEXT" for column in table.columns.values())
        if kept is not None:
            found[kept.table or table.name].append(f"{quote_name(kept.column)} TEXT")
        for each in placed.model.associations:
            link = placed.link(each)
            if isinstance(link, ForeignKey) and each.at(link.owner) == name:
                found[table.name].append(f"{quote_name(link.column)} {key_type}")
    return found


def _parent(placed: MappedModel, name: str) -> str:
    above = placed.model.classes[name].parent
    return "" if above is None else f" {_refers(placed, above)}"


def _refers(placed: MappedModel, cls: str) -> str:
    table = placed.tables[cls]
    return f"REFERENCES {quote_name(table.name)} ({quote_name(table.key)}) ON DELETE CASCADE"


@dataclass(frozen=True)
class Expected:
    """A change, the class of its object, and what follows from it."""

    change: Change
    cls: str
    propagation: PropagationResult


@dataclass
class History:
    """Objects as the definition has them; what happens to them is applied to others by `applying`."""

    placed: MappedModel
    applying: Applying
    keys: list[Any]
    limits: Limits = UNLIMITED
    graph: ObjectGraph = field(init=False)
    watches: frozenset[Watch] = frozenset()
    values: dict[tuple[Object, str], str | None] = field(default_factory=dict)
    expected: list[Expected] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.graph = ObjectGraph(self.placed.model)

    def step(self, draw: st.DrawFn) -> None:
        """One change, or a few for a reference that leads elsewhere."""
        self.expected = []
        if len(self.graph.classes) < FEW:
            return self.insert(draw)
        does = (
            self.update,
            self.link,
            self.watch,
            self.insert,
            self.update,
            self.link,
            self.unlink,
            self.delete,
        )
        draw(st.sampled_from(does))(draw)

    def happens(self, change: Change, graph: ObjectGraph) -> None:
        found = propagate_change(graph, self.watches, change, self.limits)
        self.expected.append(Expected(change, graph.classes[change.object], found))

    def some(self, draw: st.DrawFn, cls: str) -> Object | None:
        found = [each for each in self.graph.classes if self.graph.is_a(each, cls)]
        return draw(st.sampled_from(found)) if found else None

    def references(self, cls: str) -> list[tuple[Association, ForeignKey]]:
        """Associations whose column is in the table of a class."""
        links = ((each, self.placed.link(each)) for each in self.placed.model.associations)
        return [
            (each, link)
            for each, link in links
            if isinstance(link, ForeignKey) and each.at(link.owner) == cls
        ]

    def insert(self, draw: st.DrawFn) -> None:
        model = self.placed.model
        cls = draw(st.sampled_from(list(model.classes)))
        one = Object(model.family(cls), self.keys.pop())
        links, values, references = set(self.graph.links), dict[str, str | None](), References()
        for each in reversed(list(model.lineage(cls))):
            for attribute in each.attributes:
                values[attribute.name] = self.values[one, attribute.name] = draw(VALUES)
            for association, link in self.references(each.name):
                other = self.some(draw, association.at(link.owner.other)) if draw(st.booleans()) else None
                references[association] = other
                links |= {joined(association, link.owner, one, other)} if other else set()
        self.applying.insert(cls, one, values, references)
        self.graph = ObjectGraph(model, {**self.graph.classes, one: cls}, frozenset(links))
        self.happens(Change(ChangeKind.INSERT, one), self.graph)

    def update(self, draw: st.DrawFn) -> None:
        """Some values of one row, some of them to what they were."""
        rows = [
            (one, cls)
            for one, name in self.graph.classes.items()
            for cls in self.placed.model.lineage(name)
            if cls.attributes or self.references(cls.name)
        ]
        if not rows:
            return
        one, cls = draw(st.sampled_from(rows))
        values, references, changed = dict[str, str | None](), References(), set[str]()
        before, links, gone, new = self.graph, set(self.graph.links), list[ObjectLink](), list[ObjectLink]()
        for name in draw(some_of([each.name for each in cls.attributes])):
            value = values[name] = draw(VALUES)
            changed |= {name} if self.values[one, name] != value else set()
            self.values[one, name] = value
        for association, link in self.references(cls.name):
            if not draw(st.booleans()):
                continue
            other = self.some(draw, association.at(link.owner.other)) if draw(st.booleans()) else None
            references[association] = other
            old = {each for each in links if each.association == association and each.at(link.owner) == one}
            now = {joined(association, link.owner, one, other)} if other else set()
            links = (links - old) | now
            if association.propagates is None:
                changed |= {association.name} if old != now else set()
            else:
                gone, new = gone + list(old - now), new + list(now - old)
        if not values and not references:
            return
        self.applying.update(cls.name, one, values, references)
        self.graph = replace(self.graph, links=frozenset(links))
        if changed:
            self.happens(Change(ChangeKind.UPDATE, one, frozenset(changed)), self.graph)
        self.linked(gone, before, ChangeKind.UNLINK)
        self.linked(new, self.graph, ChangeKind.LINK)

    def linked(self, links: list[ObjectLink], graph: ObjectGraph, kind: ChangeKind) -> None:
        for link in links:
            end = find_changed_end(link.association, kind)
            if end is not None:
                self.happens(Change(kind, link.at(end)), graph)

    def delete(self, draw: st.DrawFn) -> None:
        """An object that no column refers to, from its topmost row or from its lowest one on."""
        referring = {
            each.at(link.owner.other)
            for each in self.graph.links
            if isinstance(link := self.placed.link(each.association), ForeignKey)
        }
        free = [each for each in self.graph.classes if each not in referring]
        if not free:
            return
        one = draw(st.sampled_from(free))
        self.happens(Change(ChangeKind.DELETE, one), self.graph)
        self.applying.delete(self.graph.classes[one], one, draw(st.booleans()))
        left = {each: cls for each, cls in self.graph.classes.items() if each != one}
        links = frozenset(each for each in self.graph.links if one not in (each.source, each.target))
        self.graph = ObjectGraph(self.placed.model, left, links)

    def link(self, draw: st.DrawFn) -> None:
        """Two objects in a table of links."""
        tables = [
            each for each in self.placed.model.associations if isinstance(self.placed.link(each), LinkTable)
        ]
        if not tables:
            return
        association = draw(st.sampled_from(tables))
        source, target = self.some(draw, association.source), self.some(draw, association.target)
        if source is None or target is None or ObjectLink(association, source, target) in self.graph.links:
            return
        new, before = ObjectLink(association, source, target), self.graph
        there = sorted(
            (each for each in self.graph.links if each.association == association),
            key=lambda each: (str(each.source), str(each.target)),
        )
        old = draw(st.none() | st.sampled_from(there)) if there else None
        self.applying.link(new, old)
        self.graph = replace(before, links=before.links - {old} | {new})
        self.linked([old] if old else [], before, ChangeKind.UNLINK)
        self.linked([new], self.graph, ChangeKind.LINK)

    def unlink(self, draw: st.DrawFn) -> None:
        there = [
            each for each in self.graph.links if isinstance(self.placed.link(each.association), LinkTable)
        ]
        if not there:
            return
        there.sort(key=lambda each: (each.association.name, str(each.source), str(each.target)))
        old, before = draw(st.sampled_from(there)), self.graph
        self.applying.unlink(old)
        self.graph = replace(before, links=before.links - {old})
        self.linked([old], before, ChangeKind.UNLINK)

    def labels(self) -> dict[Object, str]:
        """By which value people know each object; its key if that is nothing. Keys are texts."""
        labels = ((one, self.placed.model.label_of(cls)) for one, cls in self.graph.classes.items())
        return {
            Object(one.family, str(one.key)): (label and self.values[one, label]) or str(one.key)
            for one, label in labels
        }

    def watch(self, draw: st.DrawFn) -> None:
        """An object or a class; the object may be called by any class of its family."""
        model = self.placed.model
        subscribers = [each for each, cls in self.graph.classes.items() if model.is_subscriber(cls)]
        if not subscribers:
            return
        who = draw(st.sampled_from(subscribers))
        cls = draw(st.sampled_from(list(model.classes)))
        one = self.some(draw, cls) if draw(st.booleans()) else None
        watch = Watch(who, cls, one and one.key)
        self.watches |= {watch}
        self.applying.watch(watch, self.graph.classes[who])


VALUES = st.sampled_from([None, "0", "1"])
FEW = 5
"""Histories begin with some objects: between one or two, nothing happens."""


def some_of(names: list[str]) -> st.SearchStrategy[list[str]]:
    """At least one, if there is one: what sets nothing is no update."""
    return st.lists(st.sampled_from(names), min_size=1, unique=True) if names else st.just([])


def joined(association: Association, owner: End, one: Object, other: Object) -> ObjectLink:
    return ObjectLink(association, one, other) if owner is End.SOURCE else ObjectLink(association, other, one)


def outbox(database: Database, key: type) -> list[Expected]:
    """What the triggers wrote, as the definition says it; the outbox is empty then."""
    found = database.site.changes(most=100)
    for table in ("reached", "steps", "hits", "cuts"):  # as sets, rows that are there twice would not be seen
        rows = sum(
            len(getattr(each.propagation, "truncations" if table == "cuts" else table)) for each in found
        )
        assert database.run(f"SELECT count(*) FROM tidings_{table}") == [(rows,)]
    assert database.site.forget(each.id for each in found) == len(found)
    for table in ("changes", "reached", "steps", "hits", "cuts"):
        assert database.run(f"SELECT count(*) FROM tidings_{table}") == [(0,)], (
            "with a change goes what followed"
        )
    return as_expected(found, key)


def as_expected(found: Iterable[ObjectChange], key: type) -> list[Expected]:
    """Keys as the history has them, not as texts."""
    return [Expected(_change(each.change, key), each.cls, _told(each.propagation, key)) for each in found]


def _change(change: Change, key: type) -> Change:
    return replace(change, object=_typed(change.object, key))


def _told(told: PropagationResult, key: type) -> PropagationResult:
    return replace(
        told,
        reached=frozenset(_typed(each, key) for each in told.reached),
        steps=frozenset(
            replace(each, origin=_typed(each.origin, key), to=_typed(each.to, key)) for each in told.steps
        ),
        hits=frozenset(
            replace(each, subscriber=_typed(each.subscriber, key), object=_typed(each.object, key))
            for each in told.hits
        ),
    )


def _typed(one: Object, key: type) -> Object:
    return Object(one.family, key(one.key))

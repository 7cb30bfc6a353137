"""Random changes of objects in a database, and their expected effects by definition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import strategies as st

from tests.objects.change_targets import ChangeTarget, References
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


def create_tables(mapped: MappedModel, key_type: str) -> Iterator[str]:
    """Generate the tables of a model, some perhaps with several classes, with cascading deletes."""
    for name, columns in _columns_of_tables(mapped, key_type).items():
        yield f"CREATE TABLE {quote_name(name)} ({', '.join(dict.fromkeys(columns))})"
    for each in mapped.model.associations:
        link = mapped.link(each)
        if isinstance(link, LinkTable):
            source_column, target_column = (
                f"{quote_name(column)} {key_type} {_refers(mapped, each.at(end))}"
                for column, end in ((link.source, End.SOURCE), (link.target, End.TARGET))
            )
            yield f"CREATE TABLE {quote_name(link.name)} ({source_column}, {target_column})"


def _columns_of_tables(mapped: MappedModel, key_type: str) -> dict[str, list[str]]:
    columns_by_table: dict[str, list[str]] = {}
    for name in sorted(mapped.tables, key=lambda each: len(list(mapped.model.lineage(each)))):
        table, discriminator = mapped.tables[name], mapped.tables[name].discriminator
        if table.name not in columns_by_table:
            columns_by_table[table.name] = [
                f"{quote_name(table.key)} {key_type} PRIMARY KEY{_parent(mapped, name)}"
            ]
        columns_by_table[table.name] += (f"{quote_name(column)} TEXT" for column in table.columns.values())
        if discriminator is not None:
            columns_by_table[discriminator.table or table.name].append(
                f"{quote_name(discriminator.column)} TEXT"
            )
        for each in mapped.model.associations:
            link = mapped.link(each)
            if isinstance(link, ForeignKey) and each.at(link.owner) == name:
                columns_by_table[table.name].append(f"{quote_name(link.column)} {key_type}")
    return columns_by_table


def _parent(mapped: MappedModel, name: str) -> str:
    above = mapped.model.classes[name].parent
    return "" if above is None else f" {_refers(mapped, above)}"


def _refers(mapped: MappedModel, cls: str) -> str:
    table = mapped.tables[cls]
    return f"REFERENCES {quote_name(table.name)} ({quote_name(table.key)}) ON DELETE CASCADE"


@dataclass(frozen=True)
class Expected:
    """A change, the class of its object, and its effects."""

    change: Change
    cls: str
    propagation: PropagationResult


@dataclass
class History:
    """Objects as the definition has them; their changes are applied to `target` as well."""

    mapped: MappedModel
    target: ChangeTarget
    keys: list[Any]
    limits: Limits = UNLIMITED
    graph: ObjectGraph = field(init=False)
    watches: frozenset[Watch] = frozenset()
    values: dict[tuple[Object, str], str | None] = field(default_factory=dict)
    expected: list[Expected] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.graph = ObjectGraph(self.mapped.model)

    def step(self, draw: st.DrawFn) -> None:
        """Apply one change, or a few for a reference that is redirected."""
        self.expected = []
        if len(self.graph.classes) < MIN_OBJECTS:
            return self.insert(draw)
        operations = (
            self.update,
            self.link,
            self.watch,
            self.insert,
            self.update,
            self.link,
            self.unlink,
            self.delete,
        )
        draw(st.sampled_from(operations))(draw)

    def expect_change(self, change: Change, graph: ObjectGraph) -> None:
        result = propagate_change(graph, self.watches, change, self.limits)
        self.expected.append(Expected(change, graph.classes[change.object], result))

    def draw_object(self, draw: st.DrawFn, cls: str) -> Object | None:
        instances = [each for each in self.graph.classes if self.graph.is_a(each, cls)]
        return draw(st.sampled_from(instances)) if instances else None

    def references(self, cls: str) -> list[tuple[Association, ForeignKey]]:
        """Return the associations whose column is in the table of a class."""
        links = ((each, self.mapped.link(each)) for each in self.mapped.model.associations)
        return [
            (each, link)
            for each, link in links
            if isinstance(link, ForeignKey) and each.at(link.owner) == cls
        ]

    def insert(self, draw: st.DrawFn) -> None:
        model = self.mapped.model
        cls = draw(st.sampled_from(list(model.classes)))
        instance = Object(model.family(cls), self.keys.pop())
        links, values, references = set(self.graph.links), dict[str, str | None](), References()
        for each in reversed(list(model.lineage(cls))):
            for attribute in each.attributes:
                values[attribute.name] = self.values[instance, attribute.name] = draw(VALUES)
            for association, link in self.references(each.name):
                other = (
                    self.draw_object(draw, association.at(link.owner.other)) if draw(st.booleans()) else None
                )
                references[association] = other
                links |= {link_between(association, link.owner, instance, other)} if other else set()
        self.target.insert(cls, instance, values, references)
        self.graph = ObjectGraph(model, {**self.graph.classes, instance: cls}, frozenset(links))
        self.expect_change(Change(ChangeKind.INSERT, instance), self.graph)

    def update(self, draw: st.DrawFn) -> None:
        """Update some values of one row, some of them to their present value."""
        rows = [
            (instance, cls)
            for instance, name in self.graph.classes.items()
            for cls in self.mapped.model.lineage(name)
            if cls.attributes or self.references(cls.name)
        ]
        if not rows:
            return
        instance, cls = draw(st.sampled_from(rows))
        values, references, changed = dict[str, str | None](), References(), set[str]()
        before, links, removed, new = (
            self.graph,
            set(self.graph.links),
            list[ObjectLink](),
            list[ObjectLink](),
        )
        for name in draw(nonempty_subset([each.name for each in cls.attributes])):
            value = values[name] = draw(VALUES)
            changed |= {name} if self.values[instance, name] != value else set()
            self.values[instance, name] = value
        for association, link in self.references(cls.name):
            if not draw(st.booleans()):
                continue
            other = self.draw_object(draw, association.at(link.owner.other)) if draw(st.booleans()) else None
            references[association] = other
            old = {
                each for each in links if each.association == association and each.at(link.owner) == instance
            }
            now = {link_between(association, link.owner, instance, other)} if other else set()
            links = (links - old) | now
            if association.propagates is None:
                changed |= {association.name} if old != now else set()
            else:
                removed, new = removed + list(old - now), new + list(now - old)
        if not values and not references:
            return
        self.target.update(cls.name, instance, values, references)
        self.graph = replace(self.graph, links=frozenset(links))
        if changed:
            self.expect_change(Change(ChangeKind.UPDATE, instance, frozenset(changed)), self.graph)
        self.expect_links(removed, before, ChangeKind.UNLINK)
        self.expect_links(new, self.graph, ChangeKind.LINK)

    def expect_links(self, links: list[ObjectLink], graph: ObjectGraph, kind: ChangeKind) -> None:
        for link in links:
            end = find_changed_end(link.association, kind)
            if end is not None:
                self.expect_change(Change(kind, link.at(end)), graph)

    def delete(self, draw: st.DrawFn) -> None:
        """Delete an object without references to it, from its topmost row or from its lowest one."""
        referring = {
            each.at(link.owner.other)
            for each in self.graph.links
            if isinstance(link := self.mapped.link(each.association), ForeignKey)
        }
        free = [each for each in self.graph.classes if each not in referring]
        if not free:
            return
        instance = draw(st.sampled_from(free))
        self.expect_change(Change(ChangeKind.DELETE, instance), self.graph)
        self.target.delete(self.graph.classes[instance], instance, draw(st.booleans()))
        remaining = {each: cls for each, cls in self.graph.classes.items() if each != instance}
        links = frozenset(each for each in self.graph.links if instance not in (each.source, each.target))
        self.graph = ObjectGraph(self.mapped.model, remaining, links)

    def link(self, draw: st.DrawFn) -> None:
        """Link two objects in a table of links."""
        tables = [
            each for each in self.mapped.model.associations if isinstance(self.mapped.link(each), LinkTable)
        ]
        if not tables:
            return
        association = draw(st.sampled_from(tables))
        source, target = (
            self.draw_object(draw, association.source),
            self.draw_object(draw, association.target),
        )
        if source is None or target is None or ObjectLink(association, source, target) in self.graph.links:
            return
        new, before = ObjectLink(association, source, target), self.graph
        candidates = sorted(
            (each for each in self.graph.links if each.association == association),
            key=lambda each: (str(each.source), str(each.target)),
        )
        old = draw(st.none() | st.sampled_from(candidates)) if candidates else None
        self.target.link(new, old)
        self.graph = replace(before, links=before.links - {old} | {new})
        self.expect_links([old] if old else [], before, ChangeKind.UNLINK)
        self.expect_links([new], self.graph, ChangeKind.LINK)

    def unlink(self, draw: st.DrawFn) -> None:
        candidates = [
            each for each in self.graph.links if isinstance(self.mapped.link(each.association), LinkTable)
        ]
        if not candidates:
            return
        candidates.sort(key=lambda each: (each.association.name, str(each.source), str(each.target)))
        old, before = draw(st.sampled_from(candidates)), self.graph
        self.target.unlink(old)
        self.graph = replace(before, links=before.links - {old})
        self.expect_links([old], before, ChangeKind.UNLINK)

    def labels(self) -> dict[Object, str]:
        """Return the label of each object, or its key if the label is empty. Keys are texts."""
        labels = ((instance, self.mapped.model.label_of(cls)) for instance, cls in self.graph.classes.items())
        return {
            Object(instance.family, str(instance.key)): (label and self.values[instance, label])
            or str(instance.key)
            for instance, label in labels
        }

    def watch(self, draw: st.DrawFn) -> None:
        """Watch an object or a class; the object may be named by any class of its family."""
        model = self.mapped.model
        subscribers = [each for each, cls in self.graph.classes.items() if model.is_subscriber(cls)]
        if not subscribers:
            return
        subscriber = draw(st.sampled_from(subscribers))
        cls = draw(st.sampled_from(list(model.classes)))
        instance = self.draw_object(draw, cls) if draw(st.booleans()) else None
        watch = Watch(subscriber, cls, instance and instance.key)
        self.watches |= {watch}
        self.target.watch(watch, self.graph.classes[subscriber])


VALUES = st.sampled_from([None, "0", "1"])
MIN_OBJECTS = 5
"""Histories begin with some objects: few of them have no interesting changes."""


def nonempty_subset(names: list[str]) -> st.SearchStrategy[list[str]]:
    """Draw at least one name, if there is one: an update without values is none."""
    return st.lists(st.sampled_from(names), min_size=1, unique=True) if names else st.just([])


def link_between(association: Association, owner: End, instance: Object, other: Object) -> ObjectLink:
    return (
        ObjectLink(association, instance, other)
        if owner is End.SOURCE
        else ObjectLink(association, other, instance)
    )


def take_outbox(database: Database, key: type) -> list[Expected]:
    """Return the changes that the triggers wrote, and delete them from the outbox."""
    changes = database.site.changes(limit=100)
    for table in ("reached", "steps", "hits", "cuts"):  # sets would hide duplicate rows
        rows = sum(
            len(getattr(each.propagation, "truncations" if table == "cuts" else table)) for each in changes
        )
        assert database.run(f"SELECT count(*) FROM tidings_{table}") == [(rows,)]
    assert database.site.delete_changes(each.id for each in changes) == len(changes)
    for table in ("changes", "reached", "steps", "hits", "cuts"):
        assert database.run(f"SELECT count(*) FROM tidings_{table}") == [(0,)], (
            "the effects are deleted with their change"
        )
    return to_expected(changes, key)


def to_expected(changes: Iterable[ObjectChange], key: type) -> list[Expected]:
    """Convert changes to expected ones, with keys of the type of the history."""
    return [
        Expected(_convert_change(each.change, key), each.cls, _convert_propagation(each.propagation, key))
        for each in changes
    ]


def _convert_change(change: Change, key: type) -> Change:
    return replace(change, object=_convert_object(change.object, key))


def _convert_propagation(propagation: PropagationResult, key: type) -> PropagationResult:
    return replace(
        propagation,
        reached=frozenset(_convert_object(each, key) for each in propagation.reached),
        steps=frozenset(
            replace(each, origin=_convert_object(each.origin, key), to=_convert_object(each.to, key))
            for each in propagation.steps
        ),
        hits=frozenset(
            replace(
                each,
                subscriber=_convert_object(each.subscriber, key),
                object=_convert_object(each.object, key),
            )
            for each in propagation.hits
        ),
    )


def _convert_object(instance: Object, key: type) -> Object:
    return Object(instance.family, key(instance.key))

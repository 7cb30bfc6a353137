"""Random models as declarative classes, and random histories as operations of a session."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st
from sqlalchemy import Column, ForeignKey, String, Table
from sqlalchemy.orm import DeclarativeBase, Session, mapped_column, relationship

from tests.objects.change_targets import References, Values
from tests.support.strategies.models import tags
from tidings.objects.model.class_model import Association, End, Model
from tidings.objects.model.notation import find_owning_end
from tidings.objects.propagation import Object, ObjectLink, Watch
from tidings.objects.readers.sqlalchemy_marks import association as association_mark
from tidings.objects.readers.sqlalchemy_marks import implicit, propagates, stored, subscriber

KINDS = {"polymorphic_on": "kind"}


def declare_model(
    model: Model, key_type: Any, in_one_table: Collection[str]
) -> tuple[type[DeclarativeBase], dict[str, Any]]:
    """Return a declarative base and the classes of a model.

    Some subclasses share the table of their parent. The third association is the relationship `r2` of its source, and
    the column `c2` if it is stored in one.
    """
    base = type("Base", (DeclarativeBase,), {})
    classes: dict[str, Any] = {}
    for name in sorted(model.classes, key=lambda each: len(list(model.lineage(each)))):
        classes[name] = _class(model, name, key_type, base, classes, in_one_table)
    for number, each in enumerate(model.associations):
        setattr(classes[each.source], f"r{number}", _relationship(base, classes, number, each, key_type))
    return base, classes


def _class(
    model: Model,
    name: str,
    key_type: Any,
    base: Any,
    classes: dict[str, Any],
    in_one_table: Collection[str],
) -> Any:
    cls, parent = model.classes[name], classes.get(model.classes[name].parent or "")
    members: dict[str, Any] = {"__mapper_args__": {"polymorphic_identity": name}}
    if parent is None:
        members |= {"kind": mapped_column(String), "__mapper_args__": {"polymorphic_identity": name, **KINDS}}
    if parent is None or name not in in_one_table:
        above = () if parent is None else (ForeignKey(parent.__table__.c.id, ondelete="CASCADE"),)
        members |= {"__tablename__": name.lower(), "id": mapped_column(key_type, *above, primary_key=True)}
    members |= {each.name: mapped_column(String) for each in cls.attributes}
    for number, association in enumerate(model.associations):
        if _owner(association) is not None and association.at(_owner(association) or End.SOURCE) == name:
            members[f"c{number}"] = mapped_column(key_type)
    declared = type(name, (parent or base,), members)
    label = {} if cls.label is None else {"label": cls.label}
    if cls.subscriber:
        return subscriber(**label)(declared)
    return stored(label=cls.label)(declared) if cls.label is not None else declared


def _owner(association: Association) -> End | None:
    return find_owning_end(association.source_cardinality, association.target_cardinality)


def _relationship(base: Any, classes: dict[str, Any], number: int, each: Association, key_type: Any) -> Any:
    owner, info = _owner(each), _marks(each)
    ends = {end: classes[each.at(end)] for end in End}
    key = {end: cls.__table__.c.id for end, cls in ends.items()}
    if owner is not None:
        column = ends[owner].__table__.c[f"c{number}"]
        on, remote = column == key[owner.other], key[owner.other] if owner is End.SOURCE else column
        return relationship(
            ends[End.TARGET], primaryjoin=on, foreign_keys=[column], remote_side=[remote], info=info
        )
    a, b = (
        Column(word, key_type, ForeignKey(key[end], ondelete="CASCADE"))
        for word, end in zip("ab", End, strict=True)
    )
    Table(f"link{number}", base.metadata, a, b)
    return relationship(
        ends[End.TARGET],
        secondary=a.table,
        primaryjoin=a == key[End.SOURCE],
        secondaryjoin=b == key[End.TARGET],
        passive_deletes=number % 2 == 0,
        info=info,
    )


def _marks(each: Association) -> dict[Any, Any]:
    marks = association_mark(name=each.name)
    if each.implicit is not None:
        marks |= implicit(**tags(each.implicit))
    if each.propagates is not None:
        marks |= propagates(**tags(each.propagates))
    return marks


@dataclass
class Program:
    """Applies changes as a program.

    They are made by relationships or columns, in savepoints or not, each in its own flush.
    """

    session: Session
    classes: dict[str, Any]
    model: Model
    draw: st.DrawFn
    watches: set[Watch] = field(default_factory=set)

    def insert(self, cls: str, instance: Object, values: Values, references: References) -> None:
        created = self.classes[cls](id=instance.key, **values)
        self.session.add(created)
        self._set_references(created, instance, references)
        self._flush()

    def update(self, cls: str, instance: Object, values: Values, references: References) -> None:
        loaded = self._get(instance)
        if self.draw(st.booleans()):  # then SQLAlchemy does not know the previous values
            self.session.expire(loaded, list(values))
        for name, value in values.items():
            setattr(loaded, name, value)
        self._set_references(loaded, instance, references)
        self._flush()

    def _set_references(self, owner_instance: Any, instance: Object, references: References) -> None:
        """Set references of an object.

        SQLAlchemy does not write a self-reference, unless it is set by its column.
        """
        for association, other in references.items():
            number, owner = self._find_association(association)
            is_cycle = other == instance or getattr(owner_instance, f"c{number}") == instance.key
            if is_cycle or self.draw(st.booleans()):
                setattr(owner_instance, f"c{number}", other and other.key)
            elif owner is End.SOURCE:
                setattr(owner_instance, f"r{number}", other and self._get(other))
            else:
                self._move(owner_instance, number, association, other)

    def _move(self, member: Any, number: int, association: Association, other: Object | None) -> None:
        """Move an object from its present holder to the new one."""
        before = getattr(member, f"c{number}")
        if before is not None:
            holder = self.session.get(self.classes[association.source], before)
            getattr(holder, f"r{number}").remove(member)
        if other is not None:
            holder = self._get(other)
            getattr(holder, f"r{number}").append(member)

    def delete(self, cls: str, instance: Object, lowest_first: bool) -> None:
        self.session.delete(self._get(instance))
        self._flush()

    def link(self, new: ObjectLink, replaced: ObjectLink | None) -> None:
        if replaced is not None:
            self._unlink(replaced)
        source, target, name = self._ends(new)
        getattr(source, name).append(target)
        self._flush()

    def unlink(self, old: ObjectLink) -> None:
        self._unlink(old)
        self._flush()

    def _unlink(self, old: ObjectLink) -> None:
        source, target, name = self._ends(old)
        getattr(source, name).remove(target)

    def watch(self, watch: Watch, cls: str) -> None:
        self.watches.add(watch)

    def _ends(self, link: ObjectLink) -> tuple[Any, Any, str]:
        """Return both objects, and the relationship between them."""
        number, _ = self._find_association(link.association)
        return self._get(link.source), self._get(link.target), f"r{number}"

    def _find_association(self, association: Association) -> tuple[int, End | None]:
        """Return the number of an association in the model, whose order the declaration changes."""
        names = [each.name for each in self.model.associations]
        number = names.index(association.name)
        return number, _owner(self.model.associations[number])

    def _get(self, instance: Object) -> Any:
        """Load an object; SQLAlchemy returns it as an instance of its actual class."""
        return self.session.get(self.classes[instance.family], instance.key)

    def _flush(self) -> None:
        if self.draw(st.booleans()):
            with self.session.begin_nested():
                pass
        self.session.flush()
        self.session.expire_all()  # collections do not follow changes made by columns

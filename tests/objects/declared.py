"""Random models as declarative classes of SQLAlchemy, and random histories as what a program does with a session."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st
from sqlalchemy import Column, ForeignKey, String, Table
from sqlalchemy.orm import DeclarativeBase, Session, mapped_column, relationship

from tests.objects.applying import References, Values
from tests.support.strategies.models import tags
from tidings.objects.model.class_model import Association, End, Model
from tidings.objects.model.notation import find_owning_end
from tidings.objects.propagation import Object, ObjectLink, Watch
from tidings.objects.readers.sqlalchemy_marks import association as plain
from tidings.objects.readers.sqlalchemy_marks import implicit, propagates, stored, subscriber

KINDS = {"polymorphic_on": "kind"}


def declared(
    model: Model, key_type: Any, in_one_table: Collection[str]
) -> tuple[type[DeclarativeBase], dict[str, Any]]:
    """A declarative base and the classes of a model; some of those below others have their parent's table.

    An association `a` that is the third one is the relationship `r2` of its source, and the column `c2` if it is one.
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
    said: dict[str, Any] = {"__mapper_args__": {"polymorphic_identity": name}}
    if parent is None:
        said |= {"kind": mapped_column(String), "__mapper_args__": {"polymorphic_identity": name, **KINDS}}
    if parent is None or name not in in_one_table:
        above = () if parent is None else (ForeignKey(parent.__table__.c.id, ondelete="CASCADE"),)
        said |= {"__tablename__": name.lower(), "id": mapped_column(key_type, *above, primary_key=True)}
    said |= {each.name: mapped_column(String) for each in cls.attributes}
    for number, association in enumerate(model.associations):
        if _owner(association) is not None and association.at(_owner(association) or End.SOURCE) == name:
            said[f"c{number}"] = mapped_column(key_type)
    made = type(name, (parent or base,), said)
    label = {} if cls.label is None else {"label": cls.label}
    if cls.subscriber:
        return subscriber(**label)(made)
    return stored(label=cls.label)(made) if cls.label is not None else made


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
    made = plain(name=each.name)
    if each.implicit is not None:
        made |= implicit(**tags(each.implicit))
    if each.propagates is not None:
        made |= propagates(**tags(each.propagates))
    return made


@dataclass
class Program:
    """Changes as a program makes them: by relationships or by columns, in savepoints or not, each in its own flush."""

    session: Session
    classes: dict[str, Any]
    model: Model
    draw: st.DrawFn
    watches: set[Watch] = field(default_factory=set)

    def insert(self, cls: str, one: Object, values: Values, references: References) -> None:
        made = self.classes[cls](id=one.key, **values)
        self.session.add(made)
        self._lead(made, one, references)
        self._done()

    def update(self, cls: str, one: Object, values: Values, references: References) -> None:
        found = self._get(one)
        if self.draw(st.booleans()):  # then SQLAlchemy does not know what the values were
            self.session.expire(found, list(values))
        for name, value in values.items():
            setattr(found, name, value)
        self._lead(found, one, references)
        self._done()

    def _lead(self, made: Any, one: Object, references: References) -> None:
        """An object that leads to itself, or did, is a circle that SQLAlchemy does not write, unless by its column."""
        for association, other in references.items():
            number, owner = self._place(association)
            is_circle = other == one or getattr(made, f"c{number}") == one.key
            if is_circle or self.draw(st.booleans()):
                setattr(made, f"c{number}", other and other.key)
            elif owner is End.SOURCE:
                setattr(made, f"r{number}", other and self._get(other))
            else:
                self._take(made, number, association, other)

    def _take(self, made: Any, number: int, association: Association, other: Object | None) -> None:
        """From the one who has it to the one who gets it."""
        before = getattr(made, f"c{number}")
        if before is not None:
            holder = self.session.get(self.classes[association.source], before)
            getattr(holder, f"r{number}").remove(made)
        if other is not None:
            holder = self._get(other)
            getattr(holder, f"r{number}").append(made)

    def delete(self, cls: str, one: Object, from_the_lowest: bool) -> None:
        self.session.delete(self._get(one))
        self._done()

    def link(self, new: ObjectLink, instead_of: ObjectLink | None) -> None:
        if instead_of is not None:
            self._unlink(instead_of)
        source, target, name = self._ends(new)
        getattr(source, name).append(target)
        self._done()

    def unlink(self, old: ObjectLink) -> None:
        self._unlink(old)
        self._done()

    def _unlink(self, old: ObjectLink) -> None:
        source, target, name = self._ends(old)
        getattr(source, name).remove(target)

    def watch(self, watch: Watch, cls: str) -> None:
        self.watches.add(watch)

    def _ends(self, link: ObjectLink) -> tuple[Any, Any, str]:
        """Both objects, and the relationship between them."""
        number, _ = self._place(link.association)
        return self._get(link.source), self._get(link.target), f"r{number}"

    def _place(self, association: Association) -> tuple[int, End | None]:
        """Which one it was in the model before it was declared, in another order."""
        names = [each.name for each in self.model.associations]
        number = names.index(association.name)
        return number, _owner(self.model.associations[number])

    def _get(self, one: Object) -> Any:
        """Of a class below the family it is one of that class."""
        return self.session.get(self.classes[one.family], one.key)

    def _done(self) -> None:
        if self.draw(st.booleans()):
            with self.session.begin_nested():
                pass
        self.session.flush()
        self.session.expire_all()  # collections do not know of what was done by columns

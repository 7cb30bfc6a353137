"""Reader of models in PlantUML class diagrams.

    class Student <<subscriber>> { name : String }
    Student "*" -- "*" Course : attends <<implicit>> >
    LearningMaterial "*" --> "*" Course : usedIn <<propagates {attributes = title, kinds = update link}>>

An association leads in the reading direction of its label (`>`, `<`), else where its arrow points, else from left to
right.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tidings.core.suggest import join_words, printable
from tidings.errors import Place
from tidings.objects.model.class_model import Cardinality
from tidings.objects.model.draft import (
    Draft,
    DraftAssociation,
    DraftAttribute,
    DraftClass,
    DraftEnd,
    DraftMark,
    DraftMarks,
    Finding,
    SourceText,
)
from tidings.objects.model.notation import (
    CARDINALITY_FORMS,
    STEREOTYPE_NAMES,
    normalize_stereotype,
    normalize_type,
    parse_arrowhead,
    parse_cardinality,
    suggest_stereotype,
)
from tidings.objects.model.table_mapping import MappedModel, map_by_convention
from tidings.objects.model.validation import validate_draft
from tidings.objects.readers.plantuml_parser import parse_diagram
from tidings.objects.readers.plantuml_tree import Declaration, Diagram, Member, Relationship, Stereotype, Word

_ARROW = re.compile(r"(?P<left>[^-.=]*)(?P<line>.*[-.=])(?P<right>[^-.=\]]*)", re.DOTALL)
_HIDDEN = re.compile(r"\[[^\]]*hidden[^\]]*\]")
_STYLE = re.compile(r"\[[^\]]*\]")
_ABOVE = frozenset(("<|", "|>", "^", "<||", "||>", "<|:", ":|>"))
_POINTS = frozenset(("<", ">", "<<", ">>"))
_INSIDE = "+"
_ROLE = re.compile(r"[-+#~]?\s*([^\W\d]\w*)")
_ARRAY = re.compile(r"\s*\[[^\]]*\]\s*$")


def read_plantuml(text: str) -> MappedModel:
    """Read the model of a diagram, and map it to tables by convention."""
    draft = draft_plantuml(text)
    return map_by_convention(draft, validate_draft(draft))


def draft_plantuml(text: str) -> Draft:
    """Read a diagram into a draft, not yet validated."""
    return _DraftBuilder(parse_diagram(text)).build()


@dataclass(frozen=True, slots=True)
class _Arrow:
    """The heads and the style of a line."""

    left: str
    right: str
    is_dotted: bool
    is_hidden: bool

    @property
    def is_inheritance(self) -> bool:
        return (self.left in _ABOVE) is not (self.right in _ABOVE)

    @property
    def is_dependency(self) -> bool:
        """Whether the line is dotted, without diamonds or crow's feet: one class uses the other, nothing is stored."""
        return self.is_dotted and {self.left, self.right} <= _POINTS | {""}

    @property
    def points_left(self) -> bool:
        return self.left in _POINTS and self.right not in _POINTS


class _DraftBuilder:
    def __init__(self, diagram: Diagram) -> None:
        self.diagram = diagram
        self.findings = [
            Finding(
                self._place(problem.at),
                problem.what,
                printable(problem.at.text),
                problem.accepted,
                problem.hint,
            )
            for problem in diagram.problems
        ]
        self.classes: dict[str, DraftClass] = {}
        self.packages: dict[str, tuple[str, ...]] = {}

    def build(self) -> Draft:
        for declaration in self.diagram.declarations:
            self._add_declaration(declaration)
        for member in self.diagram.members:
            self._add_member(member)
        associations = tuple(
            association
            for relationship in self.diagram.relationships
            for association in self._add_relationship(relationship)
        )
        is_whole = not self.diagram.problems
        return Draft(tuple(self.classes.values()), associations, tuple(self.findings), is_whole)

    def _place(self, word: Word) -> Place:
        return Place.at(self.diagram.text, word.start, word.end)

    def _class_name(self, word: Word) -> SourceText:
        return SourceText(_without_package(word.text), self._place(word))

    def _add_declaration(self, declaration: Declaration) -> None:
        """Add a class, or to a class: PlantUML allows several declarations of one class."""
        name = self._class_name(declaration.name)
        if self.packages.setdefault(name.text, declaration.packages) != declaration.packages:
            hint = "names of classes are unique in a model, whatever their packages"
            self.findings.append(
                Finding(name.at, "duplicate class name, in another package", printable(name.text), hint=hint)
            )
        declared = self.classes.get(name.text, DraftClass(name))
        parents = [self._class_name(each) for each in declaration.extends if not self._is_other(each)]
        marks = (*declared.marks, *self._marks(declaration.stereotypes))
        self.classes[name.text] = replace(declared, parents=(*declared.parents, *parents), marks=marks)

    def _is_other(self, word: Word) -> bool:
        """Return whether a word names an interface, an enumeration or a note."""
        name = _without_package(word.text)
        return name in self.diagram.others and name not in self.classes

    def _add_member(self, member: Member) -> None:
        owner = _without_package(member.owner.text)
        if self._is_other(member.owner):
            return
        if owner not in self.classes:
            self._add_undeclared(member.owner)
            return
        cls = self.classes[owner]
        written = member.type and _ARRAY.sub("", member.type)
        name = SourceText(member.name.text, self._place(member.name))
        attribute = DraftAttribute(name, normalize_type(written), tuple(self._marks(member.stereotypes)))
        self.classes[owner] = replace(cls, attributes=(*cls.attributes, attribute))

    def _add_undeclared(self, word: Word) -> None:
        hint = f"add a line: class {printable(_without_package(word.text))}"
        self.findings.append(
            Finding(self._place(word), "this class is not declared", printable(word.text), hint=hint)
        )

    def _add_relationship(self, relationship: Relationship) -> Iterator[DraftAssociation]:
        arrow = _parse_arrow(relationship.arrow.text)
        marks = tuple(self._marks(relationship.stereotypes))
        has_other = self._is_other(relationship.left) or self._is_other(relationship.right)
        stored = not (arrow.is_dependency or has_other or _INSIDE in (arrow.left, arrow.right))
        if arrow.is_hidden or (not stored and not marks):
            return
        if arrow.is_inheritance:
            self._add_parent(relationship, arrow, marks)
        elif not stored:
            message, hint = "this line is not an association", "an association is drawn -- or -->"
            self.findings.append(
                Finding(self._place(relationship.arrow), message, relationship.arrow.text, hint=hint)
            )
        else:
            yield self._build_association(relationship, arrow, marks)

    def _add_parent(self, relationship: Relationship, arrow: _Arrow, marks: DraftMarks) -> None:
        parent, child = relationship.left, relationship.right
        if arrow.right in _ABOVE:
            parent, child = child, parent
        for mark in marks:
            self.findings.append(Finding(mark.at, "a mark of an association, not of inheritance", mark.name))
        if arrow.is_dotted:
            message, hint = "only interfaces are realized", "inheritance between classes is drawn <|--"
            self.findings.append(
                Finding(self._place(relationship.arrow), message, relationship.arrow.text, hint=hint)
            )
        elif _without_package(child.text) not in self.classes:
            self._add_undeclared(child)
        else:
            cls = self.classes[_without_package(child.text)]
            if _without_package(parent.text) not in {each.text for each in cls.parents}:
                self.classes[cls.name.text] = replace(cls, parents=(*cls.parents, self._class_name(parent)))

    def _build_association(
        self, relationship: Relationship, arrow: _Arrow, marks: DraftMarks
    ) -> DraftAssociation:
        left = self._build_end(relationship.left, relationship.left_text, arrow.left)
        right = self._build_end(relationship.right, relationship.right_text, arrow.right)
        leftwards = relationship.reads == "<" if relationship.reads else arrow.points_left
        source, target = (right, left) if leftwards else (left, right)
        label = relationship.label
        name = " ".join(label.text.replace("\\n", " ").split()) if label else None
        return DraftAssociation(name, self._place(label or relationship.arrow), source, target, marks)

    def _build_end(self, cls: Word, text: Word | None, head: str) -> DraftEnd:
        cardinality, role = self._parse_end_text(text) if text else (None, None)
        return DraftEnd(self._class_name(cls), cardinality or parse_arrowhead(head), role)

    def _parse_end_text(self, word: Word) -> tuple[Cardinality | None, str | None]:
        """Parse the text beside an end: `"1"`, `"0..*"`, `"teacher"`, `"1 teacher"`."""
        cardinality = parse_cardinality(word.text)
        parts = word.text.replace("\\n", " ").split()
        if cardinality or not parts:
            return cardinality, None
        for index in (0, len(parts) - 1):
            role = _ROLE.fullmatch(" ".join(parts[:index] + parts[index + 1 :]))
            cardinality = parse_cardinality(parts[index])
            if cardinality and role:
                return cardinality, role[1]
        role = _ROLE.fullmatch(word.text.strip())
        if role is None:
            message, accepted = (
                "neither a cardinality nor a role",
                f"{CARDINALITY_FORMS}; a role is a word beside it",
            )
            self.findings.append(Finding(self._place(word), message, printable(word.text), accepted))
        return None, role[1] if role else None

    def _marks(self, stereotypes: tuple[Stereotype, ...]) -> Iterator[DraftMark]:
        for stereotype in stereotypes:
            name = "stored" if not stereotype.name.text else normalize_stereotype(stereotype.name.text)
            if name is not None:
                tags = {
                    key.text: SourceText(value.text, self._place(value)) for key, value in stereotype.tags
                }
                place = (
                    stereotype.name if stereotype.name.text or not stereotype.tags else stereotype.tags[0][0]
                )
                yield DraftMark(name, self._place(place), tags)
            else:
                self._check_foreign(stereotype)

    def _check_foreign(self, stereotype: Stereotype) -> None:
        """Ignore a stereotype of another profile, unless it looks like one of ours."""
        suggestion = suggest_stereotype(stereotype.name.text)
        if suggestion or stereotype.tags:
            hint = f"did you mean '{suggestion}'?" if suggestion else None
            message, accepted = "unknown mark", join_words(STEREOTYPE_NAMES)
            place = self._place(stereotype.name)
            self.findings.append(Finding(place, message, printable(stereotype.name.text), accepted, hint))


def _without_package(name: str) -> str:
    """Return the last part of a qualified name: `university.Course` is Course."""
    return re.split(r"\.|::", name)[-1] if re.fullmatch(r"[\w.:]+", name) else name


def _parse_arrow(arrow: str) -> _Arrow:
    is_hidden, plain = bool(_HIDDEN.search(arrow)), _STYLE.sub("", arrow)
    match = _ARROW.fullmatch(plain)
    assert match, "the grammar has no other arrows"
    return _Arrow(match["left"], match["right"], "." in match["line"], is_hidden)

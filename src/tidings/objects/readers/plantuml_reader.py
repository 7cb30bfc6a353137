"""Models from class diagrams of PlantUML.

    class Student <<subscriber>> { name : String }
    Student "*" -- "*" Course : attends <<implicit>> >
    LearningMaterial "*" --> "*" Course : usedIn <<propagates {attributes = title, kinds = update link}>>

An association leads where its label is read to (`>`, `<`), else where its arrow points, else from left to right.
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
from tidings.objects.model.problems import Finding
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
    """The model of a diagram, placed by convention."""
    made = draft_plantuml(text)
    return map_by_convention(made, validate_draft(made))


def draft_plantuml(text: str) -> Draft:
    """What a diagram says, not yet checked."""
    return _DraftBuilder(parse_diagram(text)).draft()


@dataclass(frozen=True, slots=True)
class _Arrow:
    """The ends of a line as they are drawn."""

    left: str
    right: str
    is_dotted: bool
    is_hidden: bool

    @property
    def is_inheritance(self) -> bool:
        return (self.left in _ABOVE) is not (self.right in _ABOVE)

    @property
    def is_dependency(self) -> bool:
        """A dotted line without diamonds or crow's feet: one class uses the other, and nothing is stored."""
        return self.is_dotted and {self.left, self.right} <= _POINTS | {""}

    @property
    def points_left(self) -> bool:
        return self.left in _POINTS and self.right not in _POINTS


class _DraftBuilder:
    def __init__(self, diagram: Diagram) -> None:
        self.diagram = diagram
        self.findings = [
            Finding(self._place(each.at), each.what, printable(each.at.text), each.accepted, each.hint)
            for each in diagram.puzzles
        ]
        self.classes: dict[str, DraftClass] = {}
        self.packages: dict[str, tuple[str, ...]] = {}

    def draft(self) -> Draft:
        for declared in self.diagram.declared:
            self._declare(declared)
        for member in self.diagram.members:
            self._add_member(member)
        associations = tuple(made for each in self.diagram.related for made in self._relate(each))
        is_whole = not self.diagram.puzzles
        return Draft(tuple(self.classes.values()), associations, tuple(self.findings), is_whole)

    def _place(self, word: Word) -> Place:
        return Place.at(self.diagram.text, word.start, word.end)

    def _said(self, word: Word) -> SourceText:
        return SourceText(_simple(word.text), self._place(word))

    def _declare(self, declared: Declaration) -> None:
        """A class may be declared in several pieces, as PlantUML has it."""
        said = self._said(declared.name)
        if self.packages.setdefault(said.text, declared.within) != declared.within:
            what, hint = "there is a class of this name already", "classes are known by their names alone"
            self.findings.append(
                Finding(said.at, f"{what}, in another package", printable(said.text), hint=hint)
            )
        before = self.classes.get(said.text, DraftClass(said))
        parents = [self._said(each) for each in declared.extends if not self._is_other(each)]
        marks = (*before.marks, *self._marks(declared.stereotypes))
        self.classes[said.text] = replace(before, parents=(*before.parents, *parents), marks=marks)

    def _is_other(self, word: Word) -> bool:
        """Whether it is an interface, an enumeration or a note."""
        return _simple(word.text) in self.diagram.others and _simple(word.text) not in self.classes

    def _add_member(self, member: Member) -> None:
        owner = _simple(member.owner.text)
        if self._is_other(member.owner):
            return
        if owner not in self.classes:
            self._undeclared(member.owner)
            return
        cls = self.classes[owner]
        written = member.type and _ARRAY.sub("", member.type)
        name = SourceText(member.name.text, self._place(member.name))
        made = DraftAttribute(name, normalize_type(written), tuple(self._marks(member.stereotypes)))
        self.classes[owner] = replace(cls, attributes=(*cls.attributes, made))

    def _undeclared(self, word: Word) -> None:
        what = "this class is declared nowhere"
        hint = f"a line of its own: class {printable(_simple(word.text))}"
        self.findings.append(Finding(self._place(word), what, printable(word.text), hint=hint))

    def _relate(self, related: Relationship) -> Iterator[DraftAssociation]:
        arrow = _drawn(related.arrow.text)
        marks = tuple(self._marks(related.stereotypes))
        is_beside = self._is_other(related.left) or self._is_other(related.right)
        stored = not (arrow.is_dependency or is_beside or _INSIDE in (arrow.left, arrow.right))
        if arrow.is_hidden or (not stored and not marks):
            return
        if arrow.is_inheritance:
            self._inherit(related, arrow, marks)
        elif not stored:
            what, hint = "this line stands for nothing that is stored", "an association is drawn -- or -->"
            self.findings.append(Finding(self._place(related.arrow), what, related.arrow.text, hint=hint))
        else:
            yield self._association(related, arrow, marks)

    def _inherit(self, related: Relationship, arrow: _Arrow, marks: DraftMarks) -> None:
        up, down = related.left, related.right
        if arrow.right in _ABOVE:
            up, down = down, up
        for each in marks:
            self.findings.append(Finding(each.at, "a mark of an association, not of inheritance", each.name))
        if arrow.is_dotted:
            what, hint = "only interfaces are realized", "inheritance between classes is drawn <|--"
            self.findings.append(Finding(self._place(related.arrow), what, related.arrow.text, hint=hint))
        elif _simple(down.text) not in self.classes:
            self._undeclared(down)
        else:
            cls = self.classes[_simple(down.text)]
            if _simple(up.text) not in {each.text for each in cls.parents}:
                self.classes[cls.name.text] = replace(cls, parents=(*cls.parents, self._said(up)))

    def _association(self, related: Relationship, arrow: _Arrow, marks: DraftMarks) -> DraftAssociation:
        left = self._end(related.left, related.left_said, arrow.left)
        right = self._end(related.right, related.right_said, arrow.right)
        leftwards = related.reads == "<" if related.reads else arrow.points_left
        source, target = (right, left) if leftwards else (left, right)
        label = related.label
        name = " ".join(label.text.replace("\\n", " ").split()) if label else None
        return DraftAssociation(name, self._place(label or related.arrow), source, target, marks)

    def _end(self, cls: Word, said: Word | None, head: str) -> DraftEnd:
        cardinality, role = self._beside(said) if said else (None, None)
        return DraftEnd(self._said(cls), cardinality or parse_arrowhead(head), role)

    def _beside(self, said: Word) -> tuple[Cardinality | None, str | None]:
        """`"1"`, `"0..*"`, `"teacher"`, `"1 teacher"`: what is written beside an end."""
        found = parse_cardinality(said.text)
        parts = said.text.replace("\\n", " ").split()
        if found or not parts:
            return found, None
        for at in (0, len(parts) - 1):
            role = _ROLE.fullmatch(" ".join(parts[:at] + parts[at + 1 :]))
            read = parse_cardinality(parts[at])
            if read and role:
                return read, role[1]
        role = _ROLE.fullmatch(said.text.strip())
        if role is None:
            what, accepted = (
                "neither a cardinality nor a role",
                f"{CARDINALITY_FORMS}; a role is a word beside it",
            )
            self.findings.append(Finding(self._place(said), what, printable(said.text), accepted))
        return None, role[1] if role else None

    def _marks(self, stereotypes: tuple[Stereotype, ...]) -> Iterator[DraftMark]:
        for each in stereotypes:
            name = "stored" if not each.name.text else normalize_stereotype(each.name.text)
            if name is not None:
                tags = {key.text: SourceText(value.text, self._place(value)) for key, value in each.tags}
                at = each.name if each.name.text or not each.tags else each.tags[0][0]
                yield DraftMark(name, self._place(at), tags)
            else:
                self._foreign(each)

    def _foreign(self, stereotype: Stereotype) -> None:
        """Somebody else's stereotype is left alone, unless it looks like one of ours."""
        meant = suggest_stereotype(stereotype.name.text)
        if meant or stereotype.tags:
            hint = f"did you mean '{meant}'?" if meant else None
            what, known = "no mark of this name", join_words(STEREOTYPE_NAMES)
            place = self._place(stereotype.name)
            self.findings.append(Finding(place, what, printable(stereotype.name.text), known, hint))


def _simple(name: str) -> str:
    """A class is known by its name alone: `university.Course` is Course."""
    return re.split(r"\.|::", name)[-1] if re.fullmatch(r"[\w.:]+", name) else name


def _drawn(arrow: str) -> _Arrow:
    is_hidden, plain = bool(_HIDDEN.search(arrow)), _STYLE.sub("", arrow)
    found = _ARROW.fullmatch(plain)
    assert found, "the grammar has no other arrows"
    return _Arrow(found["left"], found["right"], "." in found["line"], is_hidden)

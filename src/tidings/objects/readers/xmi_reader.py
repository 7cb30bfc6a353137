"""Models from XMI 2.x, as UML tools export it, with the stereotypes of a profile.

    <packagedElement xmi:type="uml:Association" xmi:id="a" name="attends" memberEnd="a1 a2">...
    <Tidings:implicit xmi:id="i" base_Association="a"/>

A stereotype counts by its name, whatever namespace a tool gives the profile. An association leads to the end that is
navigable; if both or none are, from its first end to its last, which is how UML says that its name is read, unless a
tool is known to write it otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tidings.core.suggest import join_words, printable
from tidings.documents.xml_elements import Element
from tidings.objects.model.class_model import ANY_CARDINALITY, Cardinality
from tidings.objects.model.draft import (
    Draft,
    DraftAssociation,
    DraftAttribute,
    DraftClass,
    DraftEnd,
    DraftMark,
    DraftMarks,
    SourceText,
    find_mark,
)
from tidings.objects.model.notation import (
    CARDINALITY_FORMS,
    STEREOTYPE_NAMES,
    normalize_stereotype,
    normalize_type,
    parse_cardinality,
    suggest_stereotype,
)
from tidings.objects.model.problems import Finding
from tidings.objects.model.table_mapping import MappedModel, map_by_convention
from tidings.objects.model.validation import validate_draft
from tidings.objects.readers.xmi_document import (
    format_location,
    get_reference_name,
    get_value,
    get_xmi_attribute,
    list_extension_stereotypes,
    list_extension_tags,
    list_references,
    list_tagged_values,
    read_document,
)

_FROM, _TO = "EAID_src", "EAID_dst"
"""Enterprise Architect names the ends of an association so, whichever it writes first."""

_PAPYRUS = "org.eclipse.papyrus"
"""Papyrus annotates its associations, and writes the end of the target first, against the order that UML has."""


def read_xmi(body: bytes) -> MappedModel:
    """The model of a document, placed by convention."""
    made = draft_xmi(body)
    return map_by_convention(made, validate_draft(made))


def draft_xmi(body: bytes) -> Draft:
    """What a document says, not yet checked."""
    return _DraftBuilder(body).draft()


class _DraftBuilder:
    def __init__(self, body: bytes) -> None:
        self.document = read_document(body)
        self.findings: list[Finding] = []
        self.ends = {end for each in self.document.associations for end in list_references(each, "memberEnd")}
        self.marks: dict[str, list[DraftMark]] = {}
        self.generalized: dict[str, list[Element]] = {}
        for each in self.document.generalizations:
            for id in dict.fromkeys(list_references(each, "specific")):
                self.generalized.setdefault(id, []).append(each)

    def draft(self) -> Draft:
        for element, bases in self.document.applied:
            self._apply(element, bases)
        for id, extension in self.document.extended:
            self._extend(id, extension)
        for each in self.document.refused:
            hint = "a class between the two, with an association to each"
            self._refuse(each, "an association that is a class, too", get_value(each, "name"), hint=hint)
        classes = tuple(map(self._class, self.document.classes))
        associations = tuple(made for each in self.document.associations for made in self._association(each))
        return Draft(classes, associations, tuple(self.findings))

    def _refuse(
        self,
        element: Element,
        what: str,
        received: str | None = None,
        accepted: str | None = None,
        hint: str | None = None,
    ) -> None:
        shown = None if received is None else printable(received)
        self.findings.append(Finding(format_location(element), what, shown, accepted, hint))

    def _apply(self, element: Element, bases: tuple[str, ...]) -> None:
        name = normalize_stereotype(element.name)
        if name is None:
            self._foreign(element, element.name)
            return
        tags = {
            key: SourceText(said, format_location(element))
            for key, said in list_tagged_values(element, bases)
        }
        for id in (each for base in bases for each in list_references(element, base)):
            if id not in self.document.by_id:
                self._refuse(element, f"{name} is applied to what is not there", id)
            self.marks.setdefault(id, []).append(DraftMark(name, format_location(element), tags))

    def _extend(self, id: str, extension: Element) -> None:
        """What a tool's own words apply. It may have written it down as UML has it, too: then that counts."""
        tags = {
            key: SourceText(said, format_location(extension)) for key, said in list_extension_tags(extension)
        }
        for element, said in list_extension_stereotypes(extension):
            written = self._named(said)
            name = normalize_stereotype(written)
            if name is None:
                self._foreign(element, written)
            elif name not in {each.name for each in self.marks.get(id, ())}:
                self.marks.setdefault(id, []).append(DraftMark(name, format_location(element), tags))

    def _foreign(self, element: Element, name: str) -> None:
        """Somebody else's stereotype is left alone, unless it looks like one of ours or is of our profile."""
        meant = suggest_stereotype(name)
        if meant or "tidings" in element.namespace.lower():
            hint = f"did you mean '{meant}'?" if meant else None
            self._refuse(element, "no mark of this name", name, join_words(STEREOTYPE_NAMES), hint)

    def _marks(self, element: Element) -> DraftMarks:
        return tuple(self.marks.get(get_xmi_attribute(element, "id") or "", ()))

    def _class(self, element: Element) -> DraftClass:
        owned = [each for each in element.children if each.name in ("ownedAttribute", "attribute")]
        plain = [each for each in owned if self._is_attribute(each)]
        parents = tuple(self._parents(element))
        key = next((each for each in plain if get_value(each, "isID") == "true"), None)
        marks = self._marks(element)
        marks = (
            marks
            if key is None
            else _with_key(marks, SourceText(get_value(key, "name") or "", format_location(key)))
        )
        name = SourceText(get_value(element, "name") or "", format_location(element))
        return DraftClass(name, tuple(map(self._attribute, plain)), parents, marks)

    def _is_attribute(self, element: Element) -> bool:
        is_end = list_references(element, "association") or get_xmi_attribute(element, "id") in self.ends
        return not is_end and get_value(element, "isStatic") != "true"

    def _attribute(self, element: Element) -> DraftAttribute:
        said = SourceText(get_value(element, "name") or "", format_location(element))
        types = list_references(element, "type")
        written = get_reference_name(element, "type") or (self._named(types[0]) if types else None)
        return DraftAttribute(said, normalize_type(written), self._marks(element))

    def _named(self, id: str) -> str:
        """The name of a type: of the document, or the end of the address of one in a library."""
        found = self.document.by_id.get(id)
        return (found and get_value(found, "name")) or id.rpartition("#")[2]

    def _parents(self, element: Element) -> Iterator[SourceText]:
        for each in element.children:
            if each.name == "generalization":
                yield from (self._type(id, each) for id in list_references(each, "general"))
        for each in self.generalized.get(get_xmi_attribute(element, "id") or "", ()):
            yield from (self._type(id, each) for id in list_references(each, "general"))

    def _type(self, id: str, element: Element) -> SourceText:
        """The class of an id; if it is none, the word is refused later as the name of none."""
        return SourceText(self._named(id), format_location(element))

    def _association(self, element: Element) -> Iterator[DraftAssociation]:
        ends = self._ends(element)
        if len(ends) != 2:
            hint = "an association between three classes is a class with three associations"
            received = f"{len(ends)} ends" if len(ends) != 1 else "1 end"
            self._refuse(element, "an association has two ends", received, "2", hint)
            return
        untyped = [each for each in ends if not list_references(each, "type")]
        for each in untyped:
            self._refuse(each, "nothing says of which class the objects at this end are")
        if not untyped:
            source, target = self._in_order(element, ends)
            name = get_value(element, "name") or None
            yield DraftAssociation(
                name, format_location(element), self._end(source), self._end(target), self._marks(element)
            )

    def _ends(self, element: Element) -> list[Element]:
        owned = [each for each in element.children if each.name == "ownedEnd"]
        ids = list(dict.fromkeys(list_references(element, "memberEnd")))
        if not ids:
            return owned
        for id in ids:
            if id not in self.document.by_id:
                self._refuse(element, "an end that is not there", id)
        return [self.document.by_id[id] for id in ids if id in self.document.by_id]

    def _in_order(self, element: Element, ends: Sequence[Element]) -> Sequence[Element]:
        """Source and target."""
        first, last = (get_xmi_attribute(each, "id") or "" for each in ends)
        if {first[: len(_FROM)], last[: len(_TO)]} == {_FROM, _TO}:
            return ends if first.startswith(_FROM) else ends[::-1]
        if any(each.attributes.get("source") == _PAPYRUS for each in element.children):
            return ends[::-1]
        navigable = [self._is_navigable(element, each) for each in ends]
        return ends[::-1] if navigable == [True, False] else ends

    def _is_navigable(self, association: Element, end: Element) -> bool:
        id = get_xmi_attribute(end, "id") or ""
        owner = self.document.owner.get(id)
        is_owned = owner is None or owner is association
        said = (
            id in list_references(association, "navigableOwnedEnd") or get_value(end, "isNavigable") == "true"
        )
        return said or not is_owned

    def _end(self, element: Element) -> DraftEnd:
        cls = self._type(list_references(element, "type")[0], element)
        return DraftEnd(cls, self._cardinality(element), get_value(element, "name") or None)

    def _cardinality(self, element: Element) -> Cardinality:
        """Without a word it is one: UML says so."""
        lower, upper = _bound(element, "lower", "0"), _bound(element, "upper", "*")
        found = parse_cardinality(f"{lower}..{upper}")
        if found is None:
            self._refuse(element, "not a cardinality", f"{lower}..{upper}", CARDINALITY_FORMS)
        return found or ANY_CARDINALITY


def _with_key(marks: DraftMarks, key: SourceText) -> DraftMarks:
    """An attribute that is an id is the key, unless a tagged value says another one."""
    if any("key" in each.tags for each in marks):
        return marks
    stored = find_mark(marks, "stored") or DraftMark("stored", key.at)
    return (
        *(each for each in marks if each is not stored),
        replace(stored, tags={**stored.tags, "key": key}),
    )


def _bound(element: Element, which: str, empty: str) -> str:
    """`<lowerValue value="0"/>`, `lower="0"`. A value that is the default of its kind is not written by all tools."""
    if which in element.attributes:
        return element.attributes[which]
    found = next((each for each in element.children if each.name in (f"{which}Value", which)), None)
    said = "1" if found is None else found.attributes.get("value", found.text) or empty
    return empty if said == "*" else said  # StarUML's * begins at *

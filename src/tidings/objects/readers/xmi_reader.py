"""Reader of models in XMI 2.x, as UML tools export it, with the stereotypes of a profile.

    <packagedElement xmi:type="uml:Association" xmi:id="a" name="attends" memberEnd="a1 a2">...
    <Tidings:implicit xmi:id="i" base_Association="a"/>

Stereotypes are recognized by name, whatever namespace a tool gives the profile. An association leads to its navigable
end; if both or none are navigable, from its first end to its last, the reading direction of UML, except for tools that
are known to write them in another order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tidings.core.suggest import join_words, printable
from tidings.documents.xml_decoder import XmlElement
from tidings.objects.model.class_model import ANY_CARDINALITY, Cardinality
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
"""Enterprise Architect marks source and target by these prefixes of ids, whichever it writes first."""

_PAPYRUS = "org.eclipse.papyrus"
"""Papyrus annotates its associations with this, and writes the target first, against the order of UML."""


def read_xmi(body: bytes) -> MappedModel:
    """Read the model of a document, and map it to tables by convention."""
    draft = draft_xmi(body)
    return map_by_convention(draft, validate_draft(draft))


def draft_xmi(body: bytes) -> Draft:
    """Read a document into a draft, not yet validated."""
    return _DraftBuilder(body).build()


class _DraftBuilder:
    def __init__(self, body: bytes) -> None:
        self.document = read_document(body)
        self.findings: list[Finding] = []
        self.ends = {
            end
            for generalization in self.document.associations
            for end in list_references(generalization, "memberEnd")
        }
        self.marks: dict[str, list[DraftMark]] = {}
        self.generalizations: dict[str, list[XmlElement]] = {}
        for generalization in self.document.generalizations:
            for id in dict.fromkeys(list_references(generalization, "specific")):
                self.generalizations.setdefault(id, []).append(generalization)

    def build(self) -> Draft:
        for element, bases in self.document.stereotypes:
            self._add_stereotype(element, bases)
        for id, extension in self.document.extensions:
            self._add_extension(id, extension)
        for association_class in self.document.association_classes:
            hint = "model a class between the two, with an association to each"
            self._add_finding(
                association_class,
                "association classes are not supported",
                get_value(association_class, "name"),
                hint=hint,
            )
        classes = tuple(map(self._build_class, self.document.classes))
        associations = tuple(
            association
            for element in self.document.associations
            for association in self._build_association(element)
        )
        return Draft(classes, associations, tuple(self.findings))

    def _add_finding(
        self,
        element: XmlElement,
        message: str,
        received: str | None = None,
        accepted: str | None = None,
        hint: str | None = None,
    ) -> None:
        shown = None if received is None else printable(received)
        self.findings.append(Finding(format_location(element), message, shown, accepted, hint))

    def _add_stereotype(self, element: XmlElement, bases: tuple[str, ...]) -> None:
        name = normalize_stereotype(element.name)
        if name is None:
            self._check_foreign(element, element.name)
            return
        tags = {
            key: SourceText(value, format_location(element))
            for key, value in list_tagged_values(element, bases)
        }
        for id in (each for base in bases for each in list_references(element, base)):
            if id not in self.document.by_id:
                self._add_finding(element, f"{name} is applied to an element that does not exist", id)
            self.marks.setdefault(id, []).append(DraftMark(name, format_location(element), tags))

    def _add_extension(self, id: str, extension: XmlElement) -> None:
        """Add the stereotypes in a tool's extension, unless the tool wrote them in the standard way, too."""
        tags = {
            key: SourceText(value, format_location(extension))
            for key, value in list_extension_tags(extension)
        }
        for element, reference in list_extension_stereotypes(extension):
            written = self._get_name(reference)
            name = normalize_stereotype(written)
            if name is None:
                self._check_foreign(element, written)
            elif name not in {each.name for each in self.marks.get(id, ())}:
                self.marks.setdefault(id, []).append(DraftMark(name, format_location(element), tags))

    def _check_foreign(self, element: XmlElement, name: str) -> None:
        """Ignore a stereotype of another profile, unless it looks like one of ours."""
        suggestion = suggest_stereotype(name)
        if suggestion or "tidings" in element.namespace.lower():
            hint = f"did you mean '{suggestion}'?" if suggestion else None
            self._add_finding(element, "unknown mark", name, join_words(STEREOTYPE_NAMES), hint)

    def _marks(self, element: XmlElement) -> DraftMarks:
        return tuple(self.marks.get(get_xmi_attribute(element, "id") or "", ()))

    def _build_class(self, element: XmlElement) -> DraftClass:
        owned = [each for each in element.children if each.name in ("ownedAttribute", "attribute")]
        attributes = [each for each in owned if self._is_attribute(each)]
        key = next((each for each in attributes if get_value(each, "isID") == "true"), None)
        marks = self._marks(element)
        if key is not None:
            marks = _with_key(marks, _name_text(key))
        return DraftClass(
            _name_text(element),
            tuple(map(self._build_attribute, attributes)),
            tuple(self._parents(element)),
            marks,
        )

    def _is_attribute(self, element: XmlElement) -> bool:
        is_end = list_references(element, "association") or get_xmi_attribute(element, "id") in self.ends
        return not is_end and get_value(element, "isStatic") != "true"

    def _build_attribute(self, element: XmlElement) -> DraftAttribute:
        types = list_references(element, "type")
        written = get_reference_name(element, "type") or (self._get_name(types[0]) if types else None)
        return DraftAttribute(_name_text(element), normalize_type(written), self._marks(element))

    def _get_name(self, id: str) -> str:
        """Return the name of an element of the document, or the fragment of the URL of one in a library."""
        element = self.document.by_id.get(id)
        return (element and get_value(element, "name")) or id.rpartition("#")[2]

    def _parents(self, element: XmlElement) -> Iterator[SourceText]:
        for generalization in element.children:
            if generalization.name == "generalization":
                yield from (
                    self._class_name(id, generalization) for id in list_references(generalization, "general")
                )
        for generalization in self.generalizations.get(get_xmi_attribute(element, "id") or "", ()):
            yield from (
                self._class_name(id, generalization) for id in list_references(generalization, "general")
            )

    def _class_name(self, id: str, element: XmlElement) -> SourceText:
        """Return the name of the class with an id; validation rejects it if there is no such class."""
        return SourceText(self._get_name(id), format_location(element))

    def _build_association(self, element: XmlElement) -> Iterator[DraftAssociation]:
        ends = self._ends(element)
        if len(ends) != 2:
            hint = "model an association between three classes as a class with three associations"
            received = f"{len(ends)} ends" if len(ends) != 1 else "1 end"
            self._add_finding(element, "an association has two ends", received, "2", hint)
            return
        untyped = [end for end in ends if not list_references(end, "type")]
        for end in untyped:
            self._add_finding(end, "this end has no class")
        if not untyped:
            source, target = self._order_ends(element, ends)
            yield DraftAssociation(
                get_value(element, "name") or None,
                format_location(element),
                self._build_end(source),
                self._build_end(target),
                self._marks(element),
            )

    def _ends(self, element: XmlElement) -> list[XmlElement]:
        owned = [each for each in element.children if each.name == "ownedEnd"]
        ids = list(dict.fromkeys(list_references(element, "memberEnd")))
        if not ids:
            return owned
        for id in ids:
            if id not in self.document.by_id:
                self._add_finding(element, "an end of the association does not exist", id)
        return [self.document.by_id[id] for id in ids if id in self.document.by_id]

    def _order_ends(self, element: XmlElement, ends: Sequence[XmlElement]) -> Sequence[XmlElement]:
        """Return source and target."""
        first, last = (get_xmi_attribute(each, "id") or "" for each in ends)
        if {first[: len(_FROM)], last[: len(_TO)]} == {_FROM, _TO}:
            return ends if first.startswith(_FROM) else ends[::-1]
        if any(each.attributes.get("source") == _PAPYRUS for each in element.children):
            return ends[::-1]
        navigable = [self._is_navigable(element, each) for each in ends]
        return ends[::-1] if navigable == [True, False] else ends

    def _is_navigable(self, association: XmlElement, end: XmlElement) -> bool:
        id = get_xmi_attribute(end, "id") or ""
        owner = self.document.owner.get(id)
        is_owned = owner is None or owner is association
        is_marked = (
            id in list_references(association, "navigableOwnedEnd") or get_value(end, "isNavigable") == "true"
        )
        return is_marked or not is_owned

    def _build_end(self, element: XmlElement) -> DraftEnd:
        cls = self._class_name(list_references(element, "type")[0], element)
        return DraftEnd(cls, self._cardinality(element), get_value(element, "name") or None)

    def _cardinality(self, element: XmlElement) -> Cardinality:
        """Parse the cardinality of an end; the default of UML is one."""
        lower, upper = _bound(element, "lower", "0"), _bound(element, "upper", "*")
        cardinality = parse_cardinality(f"{lower}..{upper}")
        if cardinality is None:
            self._add_finding(element, "not a cardinality", f"{lower}..{upper}", CARDINALITY_FORMS)
        return cardinality or ANY_CARDINALITY


def _name_text(element: XmlElement) -> SourceText:
    return SourceText(get_value(element, "name") or "", format_location(element))


def _with_key(marks: DraftMarks, key: SourceText) -> DraftMarks:
    """Make an attribute with `isID` the key, unless a tagged value sets another one."""
    if any("key" in each.tags for each in marks):
        return marks
    stored = find_mark(marks, "stored") or DraftMark("stored", key.at)
    return (
        *(each for each in marks if each is not stored),
        replace(stored, tags={**stored.tags, "key": key}),
    )


def _bound(element: XmlElement, which: str, empty: str) -> str:
    """Return a bound: `<lowerValue value="0"/>`, `lower="0"`. Some tools omit the value if it is the default."""
    if which in element.attributes:
        return element.attributes[which]
    child = next((each for each in element.children if each.name in (f"{which}Value", which)), None)
    value = "1" if child is None else child.attributes.get("value", child.text) or empty
    return empty if value == "*" else value  # StarUML writes *..* for any number

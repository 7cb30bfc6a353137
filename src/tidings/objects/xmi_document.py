"""An XMI 2.x document by its ids. Tools differ in namespaces, and in what is an attribute and what an element."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tidings.objects.problems import Finding, ModelError
from tidings.publications.xml_lines import Element, read_elements
from tidings.schema.names import safe

_LEFT_OUT = frozenset(("Profile", "Stereotype"))


@dataclass(slots=True)
class Document:
    """The elements of a model by id, who owns each, and the stereotypes that are applied to them."""

    by_id: dict[str, Element] = field(default_factory=dict)
    owner: dict[str, Element] = field(default_factory=dict)
    classes: list[Element] = field(default_factory=list)
    associations: list[Element] = field(default_factory=list)
    generalizations: list[Element] = field(default_factory=list)
    refused: list[Element] = field(default_factory=list)
    applied: list[tuple[Element, tuple[str, ...]]] = field(default_factory=list)
    extended: list[tuple[str, Element]] = field(default_factory=list)
    """What tools say of an element, by its id, in words of their own."""


def read_document(body: bytes) -> Document:
    """The document in the bytes; XMI 1.x is another format, and refused."""
    root = read_elements(body)
    if "xmi.version" in root.attributes:
        received = f"XMI {safe(root.attributes['xmi.version'])}"
        raise ModelError(
            [Finding(spot(root), "not XMI 2.x", received, "2.0 or newer", "export it as XMI 2.1")]
        )
    document = Document()
    _take(document, root, None)
    return document


def _take(document: Document, element: Element, owner: Element | None) -> None:
    """Vendors' extensions repeat the model in their own words: left out, but for stereotypes that some have there. A
    profile's classes are no classes."""
    if element.name == "Extension" and "XMI" in element.namespace.upper():
        said = None if owner is None else xmi(owner, "id")
        document.extended += [] if said is None else [(said, element)]
        return
    bases = tuple(key for key in element.attributes if key.startswith("base_"))
    bases += tuple(child.name for child in element.children if child.name.startswith("base_"))
    if bases:
        document.applied.append((element, bases))
        return
    id = xmi(element, "id")
    if id is not None:
        document.by_id.setdefault(id, element)
        if owner is not None:
            document.owner.setdefault(id, owner)
    kind = uml(element)
    if kind in _LEFT_OUT:
        return
    _sort(document, element, kind)
    for child in element.children:
        _take(document, child, element)


def _sort(document: Document, element: Element, kind: str | None) -> None:
    if kind == "Class":
        document.classes.append(element)
    elif kind == "Association":
        document.associations.append(element)
    elif kind == "Generalization" and element.name != "generalization":
        document.generalizations.append(element)
    elif kind == "AssociationClass":
        document.refused.append(element)


def spot(element: Element) -> str:
    return f"line {element.line}"


def xmi(element: Element, name: str) -> str | None:
    """An attribute of XMI's (or of XML Schema's) namespace: `xmi:id`, `xmi:type`, `xsi:type`."""
    found = (
        value
        for key, value in element.attributes.items()
        if key.startswith("{") and key.rpartition("}")[2] == name
    )
    return next(found, None)


def uml(element: Element) -> str | None:
    """`Class` of `<packagedElement xmi:type="uml:Class">` and of `<uml:Class>`."""
    said = xmi(element, "type")
    if said is not None:
        return said.rpartition(":")[2]
    return element.name if "UML" in element.namespace.upper() else None


def references(element: Element, name: str) -> list[str]:
    """Ids that an element refers to, as an attribute or as elements; of what lies elsewhere, its address."""
    found = element.attributes.get(name, "").split()
    for child in element.children:
        if child.name == name:
            said = xmi(child, "idref") or child.attributes.get("href") or xmi(child, "id")
            found += [said] if said else []
    return found


def value(element: Element, name: str) -> str | None:
    """A value, as an attribute or as elements of its own; several are parted by blanks."""
    if name in element.attributes:
        return element.attributes[name]
    found = [_content(child) for child in element.children if child.name == name]
    return " ".join(found) if found else None


def _content(element: Element) -> str:
    return element.text or element.attributes.get("value") or xmi(element, "idref") or ""


STEREOTYPES = ("stereotype", "appliedStereotype")
"""`<stereotype value="implicit"/>` is StarUML's, `<appliedStereotype xmi:value="..."/>` Visual Paradigm's."""


def extended_by(extension: Element) -> Iterator[tuple[Element, str]]:
    """Stereotypes in an extension: each by its name, or by the id of what defines it."""
    for child in extension.children:
        said = child.attributes.get("value") or xmi(child, "value")
        if child.name in STEREOTYPES and said:
            yield child, said


def extended_tags(extension: Element) -> Iterator[tuple[str, str]]:
    """`<tag kinds="update link"/>`, as StarUML has them beside a stereotype."""
    for child in extension.children:
        if child.name == "tag":
            yield from (
                (key, said.replace(",", " ").strip()) for key, said in child.attributes.items() if said
            )


def referred(element: Element, name: str) -> str | None:
    """How MagicDraw calls what a reference leads to, since its address says nothing: `...::datatypes::long`."""
    for child in (each for each in element.children if each.name == name):
        for extension in child.children:
            for each in extension.children:
                if each.attributes.get("referentPath"):
                    return each.attributes["referentPath"].rpartition("::")[2]
    return None


def tagged(element: Element, bases: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """The tagged values of an applied stereotype; tools write those that nobody filled in as empty."""
    names = [key for key in element.attributes if not key.startswith("{")]
    names += [child.name for child in element.children]
    for name in dict.fromkeys(names):
        said = (value(element, name) or "").replace(",", " ").strip()
        if name not in bases and said:
            yield name, said

"""An XMI 2.x document by its ids. Tools differ in namespaces, and in what is an attribute and what an element."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tidings.core.suggest import printable
from tidings.documents.xml_elements import Element, read_elements
from tidings.objects.model.problems import Finding, ModelError

_LEFT_OUT = frozenset(("Profile", "Stereotype"))


@dataclass(slots=True)
class XmiDocument:
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


def read_document(body: bytes) -> XmiDocument:
    """The document in the bytes; XMI 1.x is another format, and refused."""
    root = read_elements(body)
    if "xmi.version" in root.attributes:
        received = f"XMI {printable(root.attributes['xmi.version'])}"
        raise ModelError(
            [Finding(format_location(root), "not XMI 2.x", received, "2.0 or newer", "export it as XMI 2.1")]
        )
    document = XmiDocument()
    _take(document, root, None)
    return document


def _take(document: XmiDocument, element: Element, owner: Element | None) -> None:
    """Vendors' extensions repeat the model in their own words: left out, but for stereotypes that some have there. A
    profile's classes are no classes."""
    if element.name == "Extension" and "XMI" in element.namespace.upper():
        said = None if owner is None else get_xmi_attribute(owner, "id")
        document.extended += [] if said is None else [(said, element)]
        return
    bases = tuple(key for key in element.attributes if key.startswith("base_"))
    bases += tuple(child.name for child in element.children if child.name.startswith("base_"))
    if bases:
        document.applied.append((element, bases))
        return
    id = get_xmi_attribute(element, "id")
    if id is not None:
        document.by_id.setdefault(id, element)
        if owner is not None:
            document.owner.setdefault(id, owner)
    kind = get_uml_type(element)
    if kind in _LEFT_OUT:
        return
    _sort(document, element, kind)
    for child in element.children:
        _take(document, child, element)


def _sort(document: XmiDocument, element: Element, kind: str | None) -> None:
    if kind == "Class":
        document.classes.append(element)
    elif kind == "Association":
        document.associations.append(element)
    elif kind == "Generalization" and element.name != "generalization":
        document.generalizations.append(element)
    elif kind == "AssociationClass":
        document.refused.append(element)


def format_location(element: Element) -> str:
    return f"line {element.line}"


def get_xmi_attribute(element: Element, name: str) -> str | None:
    """An attribute of XMI's (or of XML Schema's) namespace: `xmi:id`, `xmi:type`, `xsi:type`."""
    found = (
        value
        for key, value in element.attributes.items()
        if key.startswith("{") and key.rpartition("}")[2] == name
    )
    return next(found, None)


def get_uml_type(element: Element) -> str | None:
    """`Class` of `<packagedElement xmi:type="uml:Class">` and of `<uml:Class>`."""
    said = get_xmi_attribute(element, "type")
    if said is not None:
        return said.rpartition(":")[2]
    return element.name if "UML" in element.namespace.upper() else None


def list_references(element: Element, name: str) -> list[str]:
    """Ids that an element refers to, as an attribute or as elements; of what lies elsewhere, its address."""
    found = element.attributes.get(name, "").split()
    for child in element.children:
        if child.name == name:
            said = (
                get_xmi_attribute(child, "idref")
                or child.attributes.get("href")
                or get_xmi_attribute(child, "id")
            )
            found += [said] if said else []
    return found


def get_value(element: Element, name: str) -> str | None:
    """A value, as an attribute or as elements of its own; several are parted by blanks."""
    if name in element.attributes:
        return element.attributes[name]
    found = [_content(child) for child in element.children if child.name == name]
    return " ".join(found) if found else None


def _content(element: Element) -> str:
    return element.text or element.attributes.get("value") or get_xmi_attribute(element, "idref") or ""


STEREOTYPE_ELEMENTS = ("stereotype", "appliedStereotype")
"""`<stereotype value="implicit"/>` is StarUML's, `<appliedStereotype xmi:value="..."/>` Visual Paradigm's."""


def list_extension_stereotypes(extension: Element) -> Iterator[tuple[Element, str]]:
    """Stereotypes in an extension: each by its name, or by the id of what defines it."""
    for child in extension.children:
        said = child.attributes.get("value") or get_xmi_attribute(child, "value")
        if child.name in STEREOTYPE_ELEMENTS and said:
            yield child, said


def list_extension_tags(extension: Element) -> Iterator[tuple[str, str]]:
    """`<tag kinds="update link"/>`, as StarUML has them beside a stereotype."""
    for child in extension.children:
        if child.name == "tag":
            yield from (
                (key, said.replace(",", " ").strip()) for key, said in child.attributes.items() if said
            )


def get_reference_name(element: Element, name: str) -> str | None:
    """How MagicDraw calls what a reference leads to, since its address says nothing: `...::datatypes::long`."""
    for child in (each for each in element.children if each.name == name):
        for extension in child.children:
            for each in extension.children:
                if each.attributes.get("referentPath"):
                    return each.attributes["referentPath"].rpartition("::")[2]
    return None


def list_tagged_values(element: Element, bases: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """The tagged values of an applied stereotype; tools write those that nobody filled in as empty."""
    names = [key for key in element.attributes if not key.startswith("{")]
    names += [child.name for child in element.children]
    for name in dict.fromkeys(names):
        said = (get_value(element, name) or "").replace(",", " ").strip()
        if name not in bases and said:
            yield name, said

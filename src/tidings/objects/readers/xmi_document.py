"""XMI 2.x documents by id. Tools differ in namespaces, and in the choice between attributes and elements."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tidings.core.suggest import printable
from tidings.documents.xml_decoder import XmlElement, read_elements
from tidings.objects.model.draft import Finding, ModelError

_IGNORED = frozenset(("Profile", "Stereotype"))


@dataclass(slots=True)
class XmiDocument:
    """Elements of a model by id, their owners, and the stereotypes applied to them."""

    by_id: dict[str, XmlElement] = field(default_factory=dict)
    owner: dict[str, XmlElement] = field(default_factory=dict)
    classes: list[XmlElement] = field(default_factory=list)
    associations: list[XmlElement] = field(default_factory=list)
    generalizations: list[XmlElement] = field(default_factory=list)
    association_classes: list[XmlElement] = field(default_factory=list)
    stereotypes: list[tuple[XmlElement, tuple[str, ...]]] = field(default_factory=list)
    extensions: list[tuple[str, XmlElement]] = field(default_factory=list)
    """Extensions of tools to an element, with its id."""


def read_document(body: bytes) -> XmiDocument:
    """Read a document; XMI 1.x is another format and rejected."""
    root = read_elements(body)
    if "xmi.version" in root.attributes:
        received = f"XMI {printable(root.attributes['xmi.version'])}"
        raise ModelError(
            [Finding(format_location(root), "not XMI 2.x", received, "2.0 or newer", "export it as XMI 2.1")]
        )
    document = XmiDocument()
    _add_element(document, root, None)
    return document


def _add_element(document: XmiDocument, element: XmlElement, owner: XmlElement | None) -> None:
    """Add an element and its children.

    Vendors' extensions repeat the model in their own vocabulary: only the stereotypes that some of them have there are
    used. The classes of a profile are not classes of the model.
    """
    if element.name == "Extension" and "XMI" in element.namespace.upper():
        owner_id = None if owner is None else get_xmi_attribute(owner, "id")
        document.extensions += [] if owner_id is None else [(owner_id, element)]
        return
    bases = tuple(key for key in element.attributes if key.startswith("base_"))
    bases += tuple(child.name for child in element.children if child.name.startswith("base_"))
    if bases:
        document.stereotypes.append((element, bases))
        return
    id = get_xmi_attribute(element, "id")
    if id is not None:
        document.by_id.setdefault(id, element)
        if owner is not None:
            document.owner.setdefault(id, owner)
    kind = get_uml_type(element)
    if kind in _IGNORED:
        return
    _classify(document, element, kind)
    for child in element.children:
        _add_element(document, child, element)


def _classify(document: XmiDocument, element: XmlElement, kind: str | None) -> None:
    if kind == "Class":
        document.classes.append(element)
    elif kind == "Association":
        document.associations.append(element)
    elif kind == "Generalization" and element.name != "generalization":
        document.generalizations.append(element)
    elif kind == "AssociationClass":
        document.association_classes.append(element)


def format_location(element: XmlElement) -> str:
    return f"line {element.line}"


def get_xmi_attribute(element: XmlElement, name: str) -> str | None:
    """Return an attribute of the XMI or XML Schema namespace: `xmi:id`, `xmi:type`, `xsi:type`."""
    values = (
        value
        for key, value in element.attributes.items()
        if key.startswith("{") and key.rpartition("}")[2] == name
    )
    return next(values, None)


def get_uml_type(element: XmlElement) -> str | None:
    """Return `Class` for `<packagedElement xmi:type="uml:Class">` and for `<uml:Class>`."""
    type = get_xmi_attribute(element, "type")
    if type is not None:
        return type.rpartition(":")[2]
    return element.name if "UML" in element.namespace.upper() else None


def list_references(element: XmlElement, name: str) -> list[str]:
    """List the ids that an element refers to, in an attribute or in child elements; for other documents, URLs."""
    references = element.attributes.get(name, "").split()
    for child in element.children:
        if child.name == name:
            reference = (
                get_xmi_attribute(child, "idref")
                or child.attributes.get("href")
                or get_xmi_attribute(child, "id")
            )
            references += [reference] if reference else []
    return references


def get_value(element: XmlElement, name: str) -> str | None:
    """Return a value, from an attribute or from child elements, joined by blanks."""
    if name in element.attributes:
        return element.attributes[name]
    values = [_content(child) for child in element.children if child.name == name]
    return " ".join(values) if values else None


def _content(element: XmlElement) -> str:
    return element.text or element.attributes.get("value") or get_xmi_attribute(element, "idref") or ""


STEREOTYPE_ELEMENTS = ("stereotype", "appliedStereotype")
"""StarUML writes `<stereotype value="implicit"/>`, Visual Paradigm `<appliedStereotype xmi:value="..."/>`."""


def list_extension_stereotypes(extension: XmlElement) -> Iterator[tuple[XmlElement, str]]:
    """Yield the stereotypes in an extension: each by its name, or by the id of its definition."""
    for child in extension.children:
        value = child.attributes.get("value") or get_xmi_attribute(child, "value")
        if child.name in STEREOTYPE_ELEMENTS and value:
            yield child, value


def list_extension_tags(extension: XmlElement) -> Iterator[tuple[str, str]]:
    """Yield tagged values in an extension: StarUML writes `<tag kinds="update link"/>` beside a stereotype."""
    for child in extension.children:
        if child.name == "tag":
            yield from (
                (key, value.replace(",", " ").strip()) for key, value in child.attributes.items() if value
            )


def get_reference_name(element: XmlElement, name: str) -> str | None:
    """Return the name that MagicDraw gives for a reference, whose URL does not contain it: `...::datatypes::long`."""
    for child in (node for node in element.children if node.name == name):
        for extension in child.children:
            for node in extension.children:
                if node.attributes.get("referentPath"):
                    return node.attributes["referentPath"].rpartition("::")[2]
    return None


def list_tagged_values(element: XmlElement, bases: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield the tagged values of an applied stereotype, without empty ones, which some tools write for all unset."""
    names = [key for key in element.attributes if not key.startswith("{")]
    names += [child.name for child in element.children]
    for name in dict.fromkeys(names):
        value = (get_value(element, name) or "").replace(",", " ").strip()
        if name not in bases and value:
            yield name, value

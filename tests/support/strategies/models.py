"""Generated valid models, and small writers of PlantUML and XMI."""

from __future__ import annotations

from dataclasses import dataclass
from xml.sax.saxutils import quoteattr

from hypothesis import strategies as st

from tidings.objects.model.class_model import (
    Association,
    Attribute,
    Cardinality,
    ChangeKind,
    End,
    ImplicitMark,
    MarkLimits,
    Model,
    ModelClass,
    PropagatesMark,
)

TYPES = ("string", "integer", "real", "boolean", "date", "datetime", None, "Colour")
CARDINALITIES = st.sampled_from(
    [Cardinality(), Cardinality(1, 1), Cardinality(0, 1), Cardinality(1), Cardinality(2, 5)]
)
LETTERS = "abcdefgxyzäß"


@dataclass
class _Made:
    """A model under construction, to which later parts may refer."""

    classes: list[ModelClass]

    def model(self, associations: tuple[Association, ...] = ()) -> Model:
        return Model({each.name: each for each in self.classes}, associations)


@st.composite
def models(draw: st.DrawFn) -> Model:
    """Up to five classes in a hierarchy, up to five associations, and valid marks.

    Names are numbered, because the conventional table name is the name in lower case.
    """
    made = _Made([])
    for number in range(draw(st.integers(1, 5))):
        made.classes.append(draw(_classes(made, number)))
    plain = made.model()
    count = draw(st.integers(0, 5))
    return made.model(tuple(draw(_associations(plain, number)) for number in range(count)))


@st.composite
def _classes(draw: st.DrawFn, made: _Made, number: int) -> ModelClass:
    names = [
        f"{draw(st.text(LETTERS, min_size=1, max_size=4))}{number}x{at}"
        for at in range(draw(st.sampled_from([2, 1, 3, 0])))
    ]
    attributes = tuple(Attribute(name, draw(st.sampled_from(TYPES))) for name in names)
    above = [each.name for each in made.classes]
    parents = (draw(st.sampled_from(above)),) if above and draw(st.booleans()) else ()
    label = draw(st.sampled_from([None, *names]))
    return ModelClass(
        f"{draw(st.sampled_from('ABCÄ'))}class{number}", attributes, parents, draw(st.booleans()), label
    )


@st.composite
def _associations(draw: st.DrawFn, model: Model, number: int) -> Association:
    source, target = draw(st.sampled_from(list(model.classes))), draw(st.sampled_from(list(model.classes)))
    ends = {End.SOURCE: source, End.TARGET: target}
    subscriber_ends = [end for end in End if model.is_subscriber(ends[end])]
    implicit = propagates = None
    if subscriber_ends and draw(st.booleans()):
        end = draw(st.sampled_from(subscriber_ends))
        implicit = ImplicitMark(end, draw(_limits(model, ends[end.other])))
    if draw(st.booleans()):
        end = draw(st.sampled_from(End))
        propagates = PropagatesMark(end, draw(_limits(model, ends[end.other])))
    name = f"{draw(st.text(LETTERS, min_size=1, max_size=4))} rel{number}"
    return Association(name, source, target, draw(CARDINALITIES), draw(CARDINALITIES), implicit, propagates)


@st.composite
def _limits(draw: st.DrawFn, model: Model, near: str) -> MarkLimits:
    """Limits mostly on attributes: in a history, few updates are of objects from which changes propagate."""
    kinds = draw(st.none() | st.frozensets(st.sampled_from(ChangeKind), min_size=1))
    names = [each.name for each in model.attributes_of(near)]
    if not names or draw(st.sampled_from([False, False, True])):
        return MarkLimits(None, kinds)
    attributes = draw(st.frozensets(st.sampled_from(names), min_size=1, max_size=max(1, len(names) - 1)))
    return MarkLimits(attributes, kinds and kinds | {ChangeKind.UPDATE})


def tags(mark: ImplicitMark | PropagatesMark) -> dict[str, str]:
    """Return the tagged values of a mark, which always include the end."""
    end = {"told": mark.notified} if isinstance(mark, ImplicitMark) else {"towards": mark.towards}
    values_by_tag = {word: each.value for word, each in end.items()}
    if mark.limits.attributes is not None:
        values_by_tag["attributes"] = " ".join(sorted(mark.limits.attributes))
    if mark.limits.kinds is not None:
        values_by_tag["kinds"] = " ".join(sorted(each.value for each in mark.limits.kinds))
    return values_by_tag


def marks(association: Association) -> dict[str, dict[str, str]]:
    candidates = {"implicit": association.implicit, "propagates": association.propagates}
    return {name: tags(mark) for name, mark in candidates.items() if mark is not None}


def class_marks(cls: ModelClass) -> dict[str, dict[str, str]]:
    values = {} if cls.label is None else {"label": cls.label}
    if cls.subscriber:
        return {"subscriber": values}
    return {"stored": values} if values else {}


def as_plantuml(model: Model) -> str:
    rows = ["@startuml"]
    for cls in model.classes.values():
        above = f" extends {cls.parent}" if cls.parent else ""
        rows.append(f"class {cls.name}{_stereotypes(class_marks(cls))}{above} {{")
        rows += (f"  {each.name} : {each.type}" if each.type else f"  {each.name}" for each in cls.attributes)
        rows.append("}")
    for each in model.associations:
        ends = f'{each.source} "{each.source_cardinality}" -- "{each.target_cardinality}" {each.target}'
        rows.append(f"{ends} : {each.name}{_stereotypes(marks(each))} >")
    return "\n".join((*rows, "@enduml", ""))


def _stereotypes(stereotypes: dict[str, dict[str, str]]) -> str:
    return "".join(f" <<{name}{_braces(values)}>>" for name, values in stereotypes.items())


def _braces(values: dict[str, str]) -> str:
    return f" {{{', '.join(f'{key} = {value}' for key, value in values.items())}}}" if values else ""


HEAD = (
    '<xmi:XMI xmlns:xmi="http://schema.omg.org/spec/XMI/2.1" xmlns:uml="http://schema.omg.org/spec/UML/2.1" '
    'xmlns:p="http://example.org/profile">'
)


def as_xmi(model: Model) -> bytes:
    rows, applied = [HEAD, "<uml:Model>"], list[str]()
    for type in sorted(
        {str(each.type) for cls in model.classes.values() for each in cls.attributes if each.type}
    ):
        rows.append(_element("packagedElement", "DataType", f"type {type}", type) + "/>")
    for cls in model.classes.values():
        rows += _class(cls)
        applied += _applied(class_marks(cls), "Class", cls.name)
    for number, each in enumerate(model.associations):
        rows += _association(number, each)
        applied += _applied(marks(each), "Association", f"a{number}")
    return "\n".join((*rows, "</uml:Model>", *applied, "</xmi:XMI>")).encode()


def _element(tag: str, kind: str, id: str, name: str) -> str:
    return f'<{tag} xmi:type="uml:{kind}" xmi:id={quoteattr(id.replace(" ", "_"))} name={quoteattr(name)}'


def _class(cls: ModelClass) -> list[str]:
    rows = [_element("packagedElement", "Class", cls.name, cls.name) + ">"]
    rows += (f"<generalization general={quoteattr(each)}/>" for each in cls.parents)
    for each in cls.attributes:
        type = f' type="type_{each.type}"' if each.type else ""
        rows.append(
            _element("ownedAttribute", "Property", f"{cls.name}.{each.name}", each.name) + f"{type}/>"
        )
    return [*rows, "</packagedElement>"]


def _association(number: int, each: Association) -> list[str]:
    element = _element("packagedElement", "Association", f"a{number}", each.name)
    rows = [f'{element} memberEnd="a{number}.s a{number}.t">']
    for end, cls, many in (
        ("s", each.source, each.source_cardinality),
        ("t", each.target, each.target_cardinality),
    ):
        rows.append(f'<ownedEnd xmi:id="a{number}.{end}" type={quoteattr(cls)} association="a{number}">')
        rows.append(f'<lowerValue value="{many.least}"/>')
        rows.append(f'<upperValue value="{"*" if many.most is None else many.most}"/></ownedEnd>')
    return [*rows, "</packagedElement>"]


def _applied(stereotypes: dict[str, dict[str, str]], base: str, id: str) -> list[str]:
    return [
        f"<p:{name} base_{base}={quoteattr(id)}"
        + "".join(f" {key}={quoteattr(value)}" for key, value in values.items())
        + "/>"
        for name, values in stereotypes.items()
    ]

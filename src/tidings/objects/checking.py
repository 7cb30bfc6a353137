"""From a draft to a model: everything that is wrong is told at once, then what was left unsaid is filled in."""

from __future__ import annotations

from collections.abc import Iterator

from tidings.objects.checks import CHECKS
from tidings.objects.drafts import Draft, DraftAssociation, DraftClass, DraftMark, mark, tag
from tidings.objects.model import Association, Attribute, Class, End, Implicit, Kind, Mark, Model, Propagates
from tidings.objects.problems import Finding, ModelError
from tidings.objects.view import View, limiting_names, parted, pointed_end


def checked(draft: Draft) -> Model:
    """The model that a draft says; refused with all that is wrong."""
    view = View(draft)
    checks = CHECKS if draft.is_whole else ()
    findings = [*draft.findings, *(finding for check in checks for finding in check(view))]
    if findings:
        raise ModelError(_once(findings))
    classes = {each.name.text: _class(view, each) for each in draft.classes}
    return Model(classes, tuple(_association(view, each) for each in draft.associations))


def _once(findings: list[Finding]) -> Iterator[Finding]:
    """Two checks may come upon the same thing: the first one's words are told."""
    told: set[tuple[object, ...]] = set()
    for each in findings:
        key = each.at, each.what, each.received
        if key not in told:
            told.add(key)
            yield each


def _class(view: View, cls: DraftClass) -> Class:
    label = tag(cls.marks, "label")
    attributes = tuple(Attribute(each.name.text, each.type) for each in view.own_attributes(cls))
    return Class(
        cls.name.text,
        attributes,
        tuple(each.text for each in cls.parents),
        mark(cls.marks, "subscriber") is not None,
        None if label is None else label.text,
    )


def _association(view: View, said: DraftAssociation) -> Association:
    implicit, propagates = mark(said.marks, "implicit"), mark(said.marks, "propagates")
    return Association(
        said.called,
        said.source.cls.text,
        said.target.cls.text,
        said.source.cardinality,
        said.target.cardinality,
        None if implicit is None else Implicit(*_end_and_limits(view, said, implicit)),
        None if propagates is None else Propagates(*_end_and_limits(view, said, propagates)),
    )


def _end_and_limits(view: View, said: DraftAssociation, marked: DraftMark) -> tuple[End, Mark]:
    end = pointed_end(view, said, marked)
    assert end is not None, "checked before"
    attributes, kinds = marked.tags.get("attributes"), marked.tags.get("kinds")
    known = limiting_names(view, said.end(end.other).cls.text) if attributes else ()
    return end, Mark(
        None if attributes is None else frozenset(parted(attributes.text, known)),
        None if kinds is None else frozenset(map(Kind, kinds.text.split())),
    )

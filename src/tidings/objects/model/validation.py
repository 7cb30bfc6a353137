"""Validation of a draft: report all problems at once, then build the model with its defaults.

Each rule is a small check; reading `CHECKS` is reading the rules.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import islice

from tidings.core.suggest import (
    MOST_COMPARED,
    bounded_search,
    did_you_mean,
    is_name,
    join_words,
    printable,
    shorten_list,
)
from tidings.objects.model import notation
from tidings.objects.model.class_model import (
    Association,
    Attribute,
    ChangeKind,
    End,
    ImplicitMark,
    MarkLimits,
    Model,
    ModelClass,
    PropagatesMark,
)
from tidings.objects.model.draft import (
    Draft,
    DraftAssociation,
    DraftClass,
    DraftMark,
    DraftMarks,
    Finding,
    ModelError,
    SourceLocation,
    SourceText,
    find_mark,
    find_tag,
)
from tidings.objects.model.draft_view import DraftView, find_far_end, find_near_end, list_end_names


def check_known_marks(view: DraftView) -> Iterator[Finding]:
    for cls in view.draft.classes:
        yield from _check_marks(cls.marks, notation.CLASS_STEREOTYPES, "a class")
        for attribute in cls.attributes:
            yield from _check_marks(attribute.marks, notation.ATTRIBUTE_STEREOTYPES, "an attribute")
    for association in view.draft.associations:
        yield from _check_marks(association.marks, notation.ASSOCIATION_STEREOTYPES, "an association")


def _check_marks(marks: DraftMarks, accepted: Mapping[str, frozenset[str]], on: str) -> Iterator[Finding]:
    counts = Counter(mark.name for mark in marks)
    for mark in marks:
        if mark.name not in accepted:
            names = shorten_list(sorted(accepted))
            hint = did_you_mean(mark.name, accepted)
            yield Finding(mark.at, f"not a mark of {on}", printable(mark.name), names, hint)
            continue
        if counts[mark.name] > 1 and mark is not find_mark(marks, mark.name):
            yield Finding(mark.at, "duplicate mark", mark.name, "each mark once")
        for key, value in mark.tags.items():
            if key not in accepted[mark.name]:
                names, hint = (
                    shorten_list(sorted(accepted[mark.name])),
                    did_you_mean(key, accepted[mark.name]),
                )
                yield Finding(
                    value.at, f"{mark.name} of {on} has no such tagged value", printable(key), names, hint
                )
            elif not value.text.strip():
                yield Finding(value.at, f"{key} is empty", accepted=f"{key} = ...")


def check_mark_directions(view: DraftView) -> Iterator[Finding]:
    for association in view.draft.associations:
        for mark in association.marks:
            tag = mark.tags.get("told") or mark.tags.get("towards")
            if tag is not None and find_far_end(view, association, mark) is None:
                accepted = shorten_list(
                    [name for end in End for name in list_end_names(association, end)], shown=printable
                )
                message = f"not an end of {printable(association.effective_name)}"
                yield Finding(tag.at, message, printable(tag.text), accepted)


def check_subscriber_ends(view: DraftView) -> Iterator[Finding]:
    for association in view.draft.associations:
        mark = find_mark(association.marks, "implicit")
        ends = {association.source.cls.text, association.target.cls.text}
        if mark is None or not ends <= set(view.classes):
            continue
        end, tag = find_far_end(view, association, mark), mark.tags.get("told")
        if end is None and tag is None:
            yield _undecided_end(view, association, mark)
        elif end is not None and not view.is_subscriber(cls := association.end(end).cls.text):
            name = printable(association.effective_name)
            message = f"{name} would notify {printable(cls)}, which is not a subscriber"
            yield _no_subscriber(message, tag.at if tag else mark.at, cls)


def _undecided_end(view: DraftView, association: DraftAssociation, mark: DraftMark) -> Finding:
    source, target = printable(association.source.cls.text), printable(association.target.cls.text)
    if view.is_subscriber(association.source.cls.text):
        message = f"{source} and {target} are both subscribers: which of them is notified?"
        return Finding(mark.at, message, accepted="told = source or told = target")
    name = printable(association.effective_name)
    message = f"{name} is implicit, and neither {source} nor {target} is a subscriber"
    return _no_subscriber(message, mark.at, f"{source} or {target}")


def _no_subscriber(message: str, location: SourceLocation, candidate: str) -> Finding:
    hint = f"mark {printable(candidate)} as subscriber"
    return Finding(
        location, message, accepted="an end whose class or ancestor class is a subscriber", hint=hint
    )


def check_mark_limits(view: DraftView) -> Iterator[Finding]:
    for association in view.draft.associations:
        for mark in association.marks:
            end = find_near_end(view, association, mark)
            if end is not None and (cls := association.end(end).cls.text) in view.classes:
                yield from _check_attribute_limits(view, cls, mark.tags.get("attributes"))
            yield from _check_kind_limits(mark)


def _check_attribute_limits(view: DraftView, cls: str, tag: SourceText | None) -> Iterator[Finding]:
    for name in view.split_names(tag.text, cls) if tag else ():
        if tag and not view.may_limit(cls, name):
            names = _first(view.limiting_names(cls))
            message, accepted = f"{printable(cls)} has no such attribute", _list_known(names)
            yield Finding(tag.at, message, printable(name), accepted, did_you_mean(name, names))


def _first(names: Iterator[str]) -> list[str]:
    """List the first names, enough for a message: thousands of classes may each miss one of thousands."""
    return list(dict.fromkeys(islice(names, MOST_COMPARED + 1)))


def _list_known(names: list[str]) -> str | None:
    return shorten_list(names, shown=printable) if 0 < len(names) <= MOST_COMPARED else None


def _check_kind_limits(mark: DraftMark) -> Iterator[Finding]:
    tag, kind_names = mark.tags.get("kinds"), [kind.value for kind in ChangeKind]
    kinds = tag.text.split() if tag else []
    for kind in kinds:
        if tag and kind not in kind_names:
            hint = did_you_mean(kind, kind_names)
            yield Finding(tag.at, "not a kind of change", printable(kind), join_words(kind_names, "or"), hint)
    attributes = mark.tags.get("attributes")
    if attributes and kinds and "update" not in kinds and set(kinds) <= set(kind_names):
        message = "only updates change attributes, and the kinds are without update"
        yield Finding(
            attributes.at, message, printable(attributes.text), "update among the kinds, or no attributes"
        )


def check_label_attributes(view: DraftView) -> Iterator[Finding]:
    for cls in view.draft.classes:
        tag = find_tag(cls.marks, "label")
        if tag is not None and not view.has_attribute(cls.name.text, tag.text):
            names = _first(view.attributes(cls.name.text))
            message = f"{printable(cls.name.text)} has no such attribute for its label"
            hint = did_you_mean(tag.text, names)
            yield Finding(tag.at, message, printable(tag.text), _list_known(names), hint)


def check_classes_exist(view: DraftView) -> Iterator[Finding]:
    if not view.draft.classes and not view.draft.findings:
        yield Finding("the whole model", "the model has no classes", accepted="at least one class")


def check_unique_class_names(view: DraftView) -> Iterator[Finding]:
    seen: set[str] = set()
    for cls in view.draft.classes:
        name = cls.name.text
        if not is_name(name):
            yield Finding(cls.name.at, "a class needs a name", accepted="a text without control characters")
        elif name in seen:
            hint = "names of classes are unique in a model, whatever their packages"
            yield Finding(cls.name.at, "duplicate class name", printable(name), hint=hint)
        seen.add(name)


def check_single_parent(view: DraftView) -> Iterator[Finding]:
    for cls in view.draft.classes:
        if len({each.text for each in cls.parents}) > 1:
            received = join_words(printable(each.text) for each in cls.parents)
            accepted = "one class, since a row refers to one row of its parent"
            yield Finding(
                cls.parents[1].at, f"{printable(cls.name.text)} has several parents", received, accepted
            )
        elif len(cls.parents) > 1:
            yield Finding(cls.parents[1].at, "duplicate parent", printable(cls.parents[1].text), "once")
        for parent in cls.parents:
            yield from _check_class_exists(view, parent)


def _check_class_exists(view: DraftView, name: SourceText) -> Iterator[Finding]:
    if name.text not in view.classes:
        hint = did_you_mean(name.text, view.classes)
        accepted = shorten_list(view.classes, shown=printable)
        yield Finding(name.at, "no such class", printable(name.text), accepted, hint)


def check_inheritance_cycles(view: DraftView) -> Iterator[Finding]:
    """Report each cycle once, at its first class."""
    reported: set[str] = set()
    for name in _find_cyclic(view):
        above = [] if name in reported else [cls.name.text for cls in view.lineage(name)]
        if any(name in view.parents(each) for each in above):
            reported.update(above)
            cycle = " → ".join(map(printable, (*above, name)))
            hint = "remove one of the generalizations"
            yield Finding(view.classes[name].name.at, "cyclic inheritance", cycle, hint=hint)


def _find_cyclic(view: DraftView) -> list[str]:
    """Find the classes in cycles, and those between two cycles."""
    above = {name: set(view.parents(name)) for name in view.classes}
    below: dict[str, set[str]] = {name: set() for name in view.classes}
    for name, parents in above.items():
        for parent in parents:
            below[parent].add(name)
    return _strip_sources(_strip_sources(list(above), above, below), below, above)


def _strip_sources(
    names: Collection[str], before: Mapping[str, set[str]], after: Mapping[str, set[str]]
) -> list[str]:
    """Remove names without predecessors until none is left (Kahn's algorithm), and return the rest."""
    remaining = set(names)
    counts = {name: sum(each in remaining for each in before[name]) for name in names}
    free = [name for name, count in counts.items() if not count]
    for name in free:  # grows during iteration
        del counts[name]
        for other in after[name] & counts.keys():
            counts[other] -= 1
            if not counts[other]:
                free.append(other)
    return list(counts)


def check_unique_attributes(view: DraftView) -> Iterator[Finding]:
    names = {each.name.text for cls in view.classes.values() for each in cls.attributes}
    repeated = {name: view.find_repeated(name) for name in names}
    for cls in view.classes.values():
        own: set[str] = set()
        for attribute in view.own_attributes(cls):
            name, location = attribute.name.text, attribute.name.at
            if not is_name(name):
                accepted = "a text without control characters"
                yield Finding(location, "an attribute needs a name", accepted=accepted)
            elif other := repeated[name].get(cls.name.text) or (cls.name.text if name in own else None):
                message = f"{printable(other)} already has an attribute of this name"
                yield Finding(location, message, printable(name))
            own.add(name)


def check_association_ends(view: DraftView) -> Iterator[Finding]:
    for association in view.draft.associations:
        for end in End:
            yield from _check_class_exists(view, association.end(end).cls)


def check_unique_association_names(view: DraftView) -> Iterator[Finding]:
    """Check that a name means one thing in a class: an attribute, an association from it, or a foreign key."""
    uses: dict[str, list[tuple[str, str]]] = {}
    for cls in view.classes.values():
        for attribute in view.own_attributes(cls):
            uses.setdefault(attribute.name.text, []).append((cls.name.text, "attribute"))
    ambiguous = view.find_ambiguous_names()
    for association in view.draft.associations:
        name = association.effective_name
        if not is_name(name):
            yield Finding(association.at, "an association needs a name", printable(name))
        earlier = uses.setdefault(name, [])
        clashes = (
            use for use in earlier if any(_are_related(view, use[0], cls) for cls in association.users)
        )
        if name in ambiguous and (clash := next(clashes, None)) is not None:
            message = f"{printable(clash[0])} already has an {clash[1]} of this name"
            yield Finding(association.at, message, printable(name), hint="rename one of them")
        earlier += ((cls, "association") for cls in association.users)


def _are_related(view: DraftView, first: str, second: str) -> bool:
    """Return whether an object may be of both classes."""
    return view.is_below(first, second) or view.is_below(second, first)


CHECKS: tuple[Callable[[DraftView], Iterator[Finding]], ...] = (
    check_classes_exist,
    check_unique_class_names,
    check_single_parent,
    check_inheritance_cycles,
    check_unique_attributes,
    check_known_marks,
    check_association_ends,
    check_unique_association_names,
    check_mark_directions,
    check_subscriber_ends,
    check_mark_limits,
    check_label_attributes,
)


def validate_draft(draft: Draft) -> Model:
    """Build the model of a draft, or raise `ModelError` with all its problems."""
    view = DraftView(draft)
    checks = CHECKS if draft.is_whole else ()
    with bounded_search():
        findings = [*draft.findings, *(finding for check in checks for finding in check(view))]
    if findings:
        raise ModelError(_deduplicate_findings(findings))
    classes = {each.name.text: _build_class(view, each) for each in draft.classes}
    return Model(classes, tuple(_build_association(view, each) for each in draft.associations))


def _deduplicate_findings(findings: list[Finding]) -> Iterator[Finding]:
    """Drop repeated findings: two checks may report the same problem."""
    reported: set[tuple[object, ...]] = set()
    for finding in findings:
        key = finding.at, finding.what, finding.received
        if key not in reported:
            reported.add(key)
            yield finding


def _build_class(view: DraftView, cls: DraftClass) -> ModelClass:
    label = find_tag(cls.marks, "label")
    attributes = tuple(Attribute(each.name.text, each.type) for each in view.own_attributes(cls))
    return ModelClass(
        cls.name.text,
        attributes,
        tuple(each.text for each in cls.parents),
        find_mark(cls.marks, "subscriber") is not None,
        None if label is None else label.text,
    )


def _build_association(view: DraftView, draft: DraftAssociation) -> Association:
    implicit, propagates = find_mark(draft.marks, "implicit"), find_mark(draft.marks, "propagates")
    return Association(
        draft.effective_name,
        draft.source.cls.text,
        draft.target.cls.text,
        draft.source.cardinality,
        draft.target.cardinality,
        None if implicit is None else ImplicitMark(*_end_and_limits(view, draft, implicit)),
        None if propagates is None else PropagatesMark(*_end_and_limits(view, draft, propagates)),
    )


def _end_and_limits(view: DraftView, draft: DraftAssociation, mark: DraftMark) -> tuple[End, MarkLimits]:
    end = find_far_end(view, draft, mark)
    assert end is not None, "checked before"
    attributes, kinds = mark.tags.get("attributes"), mark.tags.get("kinds")
    changed = draft.end(end.other).cls.text
    return end, MarkLimits(
        None if attributes is None else frozenset(view.split_names(attributes.text, changed)),
        None if kinds is None else frozenset(map(ChangeKind, kinds.text.split())),
    )

"""From a draft to a model: everything that is wrong is told at once, then what was left unsaid is filled in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping

from tidings.core.suggest import did_you_mean, is_name, join_words, printable, shorten_list
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
    DraftView,
    SourceText,
    find_mark,
    find_near_end,
    find_pointed_end,
    find_tag,
    list_end_names,
    list_limiting_names,
    split_names,
)
from tidings.objects.model.problems import Finding, ModelError, SourceLocation

# What may be wrong with marks: on the wrong thing, towards nobody, limited to what there is not.


def check_known_marks(view: DraftView) -> Iterator[Finding]:
    for cls in view.draft.classes:
        yield from _check_marks(cls.marks, notation.CLASS_STEREOTYPES, "a class")
        for attribute in cls.attributes:
            yield from _check_marks(attribute.marks, notation.ATTRIBUTE_STEREOTYPES, "an attribute")
    for association in view.draft.associations:
        yield from _check_marks(association.marks, notation.ASSOCIATION_STEREOTYPES, "an association")


def _check_marks(marks: DraftMarks, accepted: Mapping[str, frozenset[str]], on: str) -> Iterator[Finding]:
    counted = Counter(each.name for each in marks)
    for each in marks:
        if each.name not in accepted:
            known = shorten_list(sorted(accepted))
            hint = did_you_mean(each.name, accepted)
            yield Finding(each.at, f"no mark of {on}", printable(each.name), known, hint)
            continue
        if counted[each.name] > 1 and each is not find_mark(marks, each.name):
            yield Finding(each.at, "the mark is said twice", each.name, "each mark once")
        for key, value in each.tags.items():
            if key not in accepted[each.name]:
                words, hint = (
                    shorten_list(sorted(accepted[each.name])),
                    did_you_mean(key, accepted[each.name]),
                )
                yield Finding(
                    value.at, f"{each.name} of {on} has no such tagged value", printable(key), words, hint
                )
            elif not value.text.strip():
                yield Finding(value.at, f"{key} says nothing", accepted=f"{key} = ...")


def check_mark_directions(view: DraftView) -> Iterator[Finding]:
    for said in view.draft.associations:
        for marked in said.marks:
            word = marked.tags.get("told") or marked.tags.get("towards")
            if word is not None and find_pointed_end(view, said, marked) is None:
                accepted = shorten_list(
                    [name for end in End for name in list_end_names(said, end)], shown=printable
                )
                yield Finding(
                    word.at, f"not an end of {printable(said.called)}", printable(word.text), accepted
                )


def check_subscriber_ends(view: DraftView) -> Iterator[Finding]:
    for said in view.draft.associations:
        marked = find_mark(said.marks, "implicit")
        ends = {said.source.cls.text, said.target.cls.text}
        if marked is None or not ends <= set(view.classes):
            continue
        end, word = find_pointed_end(view, said, marked), marked.tags.get("told")
        if end is None and word is None:
            yield _unsaid(view, said, marked)
        elif end is not None and not view.is_subscriber(said.end(end).cls.text):
            what = f"{printable(said.called)} would tell {printable(said.end(end).cls.text)}, which is no subscriber"
            yield _no_subscriber(what, word.at if word else marked.at, said.end(end).cls.text)


def _unsaid(view: DraftView, said: DraftAssociation, marked: DraftMark) -> Finding:
    source, target = printable(said.source.cls.text), printable(said.target.cls.text)
    if view.is_subscriber(said.source.cls.text):
        what = f"{source} and {target} are both subscribers: which of them is told?"
        return Finding(marked.at, what, accepted="told = source or told = target")
    what = f"{printable(said.called)} is implicit, and neither {source} nor {target} is a subscriber"
    return _no_subscriber(what, marked.at, f"{source} or {target}")


def _no_subscriber(what: str, spot: SourceLocation, whom: str) -> Finding:
    hint = f"mark {printable(whom)} as subscriber"
    return Finding(spot, what, accepted="an end whose class or a class above it is a subscriber", hint=hint)


def check_mark_limits(view: DraftView) -> Iterator[Finding]:
    for said in view.draft.associations:
        for marked in said.marks:
            end = find_near_end(view, said, marked)
            if end is not None and said.end(end).cls.text in view.classes:
                yield from _check_attribute_limits(
                    view, said.end(end).cls.text, marked.tags.get("attributes")
                )
            yield from _check_kind_limits(marked)


def _check_attribute_limits(view: DraftView, cls: str, said: SourceText | None) -> Iterator[Finding]:
    if said is None:
        return
    known = list_limiting_names(view, cls)
    for name in split_names(said.text, known):
        if name not in known:
            hint = did_you_mean(name, known)
            yield Finding(
                said.at, f"{printable(cls)} has no such attribute", printable(name), _list_known(known), hint
            )


def _list_known(known: list[str]) -> str | None:
    return shorten_list(list(dict.fromkeys(known)), shown=printable) or None


def _check_kind_limits(marked: DraftMark) -> Iterator[Finding]:
    said, known = marked.tags.get("kinds"), [each.value for each in ChangeKind]
    kinds = said.text.split() if said else []
    for each in kinds:
        if said and each not in known:
            yield Finding(
                said.at,
                "no kind of change",
                printable(each),
                join_words(known, "or"),
                did_you_mean(each, known),
            )
    attributes = marked.tags.get("attributes")
    if attributes and kinds and "update" not in kinds and set(kinds) <= set(known):
        what = "only updates change attributes, and the kinds are without update"
        yield Finding(
            attributes.at, what, printable(attributes.text), "update among the kinds, or no attributes"
        )


def check_label_attributes(view: DraftView) -> Iterator[Finding]:
    for cls in view.draft.classes:
        said = find_tag(cls.marks, "label")
        if said is None:
            continue
        known = view.attributes(cls.name.text)
        if said.text not in known:
            hint = did_you_mean(said.text, known)
            what = f"{printable(cls.name.text)} has no such attribute to be known by"
            yield Finding(said.at, what, printable(said.text), _list_known(known), hint)


# What may be wrong with a model, one small check after the other; reading `CHECKS` is reading the rules.


def check_classes_exist(view: DraftView) -> Iterator[Finding]:
    if not view.draft.classes and not view.draft.findings:
        yield Finding("all of it", "there is no class in it", accepted="at least one class")


def check_unique_class_names(view: DraftView) -> Iterator[Finding]:
    counted = Counter(each.name.text for each in view.draft.classes)
    seen: set[str] = set()
    for each in view.draft.classes:
        if not is_name(each.name.text):
            yield Finding(each.name.at, "a class needs a name", accepted="a text without control characters")
        elif counted[each.name.text] > 1 and each.name.text in seen:
            hint = "classes are known by their names alone, whatever package they are in"
            yield Finding(
                each.name.at, "there is a class of this name already", printable(each.name.text), hint=hint
            )
        seen.add(each.name.text)


def check_single_parent(view: DraftView) -> Iterator[Finding]:
    for cls in view.draft.classes:
        if len({each.text for each in cls.parents}) > 1:
            received = join_words(printable(each.text) for each in cls.parents)
            accepted = "one class, since a row refers to one row of its parent"
            yield Finding(
                cls.parents[1].at, f"{printable(cls.name.text)} is below several classes", received, accepted
            )
        elif len(cls.parents) > 1:
            yield Finding(cls.parents[1].at, "said before", printable(cls.parents[1].text), "once")
        for parent in cls.parents:
            yield from _known_class(view, parent)


def _known_class(view: DraftView, said: SourceText) -> Iterator[Finding]:
    if said.text not in view.classes:
        hint = did_you_mean(said.text, view.classes)
        yield Finding(
            said.at,
            "no class has this name",
            printable(said.text),
            shorten_list(view.classes, shown=printable),
            hint,
        )


def check_inheritance_cycles(view: DraftView) -> Iterator[Finding]:
    """Each circle once, at the first of its classes."""
    told: set[str] = set()
    for name in _in_circles(view):
        above = [] if name in told else [each.name.text for each in view.upwards(name)]
        if any(name in view.parents(each) for each in above):
            told.update(above)
            shown = " → ".join(map(printable, (*above, name)))
            yield Finding(
                view.classes[name].name.at,
                "classes run in a circle",
                shown,
                hint="one of the generalizations must go",
            )


def _in_circles(view: DraftView) -> list[str]:
    """The classes that are in circles, and those between two of them."""
    above = {name: view.parents(name) for name in view.classes}
    below: dict[str, set[str]] = {name: set() for name in view.classes}
    for name, parents in above.items():
        for parent in parents:
            below[parent].add(name)
    return _without_ends(_without_ends(list(above), above, below), below, above)


def _without_ends(
    names: Collection[str], before: Mapping[str, set[str]], after: Mapping[str, set[str]]
) -> list[str]:
    """The names that are left when those are taken away, again and again, that have none before them any more."""
    kept = set(names)
    counts = {name: sum(each in kept for each in before[name]) for name in names}
    free = [name for name, count in counts.items() if not count]
    for name in free:  # grows while it is gone through
        del counts[name]
        for other in after[name] & counts.keys():
            counts[other] -= 1
            if not counts[other]:
                free.append(other)
    return list(counts)


def check_unique_attributes(view: DraftView) -> Iterator[Finding]:
    having: dict[str, set[str]] = {}
    for cls in view.classes.values():
        for each in cls.attributes:
            having.setdefault(each.name.text, set()).add(cls.name.text)
    for cls in view.classes.values():
        own: set[str] = set()
        for attribute in view.own_attributes(cls):
            name = attribute.name.text
            if not is_name(name):
                yield Finding(
                    attribute.name.at,
                    "an attribute needs a name",
                    accepted="a text without control characters",
                )
            elif before := _nearest_above(view, cls, having[name]) or (cls if name in own else None):
                what = f"{printable(before.name.text)} has an attribute of this name already"
                yield Finding(attribute.name.at, what, printable(name))
            own.add(name)


def _nearest_above(view: DraftView, cls: DraftClass, names: Collection[str]) -> DraftClass | None:
    """The first of some classes on the way up from a class."""
    if len(names) == 1:  # the class itself: what most attributes are, and nothing to go up for
        return None
    above = (each for each in view.upwards(cls.name.text) if each is not cls)
    return next((each for each in above if each.name.text in names), None)


def check_association_ends(view: DraftView) -> Iterator[Finding]:
    for each in view.draft.associations:
        for end in End:
            yield from _known_class(view, each.end(end).cls)


def check_unique_association_names(view: DraftView) -> Iterator[Finding]:
    """A name means one thing in a class: an attribute, an association from it, or one that it has a column of."""
    taken: dict[str, list[tuple[str, str]]] = {}
    for cls in view.classes.values():
        for attribute in view.own_attributes(cls):
            taken.setdefault(attribute.name.text, []).append((cls.name.text, "attribute"))
    for each in view.draft.associations:
        if not is_name(each.called):
            yield Finding(each.at, "an association needs a name", printable(each.called))
        places = dict.fromkeys(each.end(end).cls.text for end in (End.SOURCE, each.holder) if end)
        before = taken.setdefault(each.called, [])
        met = (one for one in before if any(_are_related(view, one[0], place) for place in places))
        for other, kind in list(met)[:1]:
            what, hint = (
                f"{printable(other)} has an {kind} of this name already",
                "give one of them another name",
            )
            yield Finding(each.at, what, printable(each.called), hint=hint)
        before += ((place, "association") for place in places)


def _are_related(view: DraftView, one: str, other: str) -> bool:
    """Whether an object may be of both classes."""
    return view.is_below(one, other) or view.is_below(other, one)


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
    """The model that a draft says; refused with all that is wrong."""
    view = DraftView(draft)
    checks = CHECKS if draft.is_whole else ()
    findings = [*draft.findings, *(finding for check in checks for finding in check(view))]
    if findings:
        raise ModelError(_deduplicate_findings(findings))
    classes = {each.name.text: _build_class(view, each) for each in draft.classes}
    return Model(classes, tuple(_build_association(view, each) for each in draft.associations))


def _deduplicate_findings(findings: list[Finding]) -> Iterator[Finding]:
    """Two checks may come upon the same thing: the first one's words are told."""
    told: set[tuple[object, ...]] = set()
    for each in findings:
        key = each.at, each.what, each.received
        if key not in told:
            told.add(key)
            yield each


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


def _build_association(view: DraftView, said: DraftAssociation) -> Association:
    implicit, propagates = find_mark(said.marks, "implicit"), find_mark(said.marks, "propagates")
    return Association(
        said.called,
        said.source.cls.text,
        said.target.cls.text,
        said.source.cardinality,
        said.target.cardinality,
        None if implicit is None else ImplicitMark(*_end_and_limits(view, said, implicit)),
        None if propagates is None else PropagatesMark(*_end_and_limits(view, said, propagates)),
    )


def _end_and_limits(view: DraftView, said: DraftAssociation, marked: DraftMark) -> tuple[End, MarkLimits]:
    end = find_pointed_end(view, said, marked)
    assert end is not None, "checked before"
    attributes, kinds = marked.tags.get("attributes"), marked.tags.get("kinds")
    known = list_limiting_names(view, said.end(end.other).cls.text) if attributes else ()
    return end, MarkLimits(
        None if attributes is None else frozenset(split_names(attributes.text, known)),
        None if kinds is None else frozenset(map(ChangeKind, kinds.text.split())),
    )

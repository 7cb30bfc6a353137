"""What may be wrong with a model, one small check after the other; reading `CHECKS` is reading the rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cached_property

from tidings.objects import stereotypes
from tidings.objects.drafts import (
    Draft,
    DraftAssociation,
    DraftAttribute,
    DraftClass,
    DraftEnd,
    DraftMark,
    Marks,
    Said,
    mark,
    tag,
)
from tidings.objects.model import End, Kind
from tidings.objects.problems import Finding, Spot
from tidings.schema.names import did_you_mean, is_name, listed, safe, some

KEY = "id"
"""What the key of a class is called if nobody says otherwise."""


class View:
    """A draft as checks look at it: by name, and upwards, also where classes run in a circle."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft

    @cached_property
    def classes(self) -> Mapping[str, DraftClass]:
        found: dict[str, DraftClass] = {}
        for each in self.draft.classes:
            found.setdefault(each.name.text, each)
        return found

    def lineage(self, name: str) -> list[DraftClass]:
        """A class and all above it, each once; empty if there is no such class."""
        waiting, found = [name], dict[str, DraftClass]()
        for each in waiting:  # grows while it is gone through
            if each in self.classes and each not in found:
                found[each] = self.classes[each]
                waiting += (parent.text for parent in self.classes[each].parents)
        return list(found.values())

    def key(self, cls: DraftClass) -> str:
        said = (tag(each.marks, "key") for each in self.lineage(cls.name.text))
        return next((each.text for each in said if each is not None), KEY)

    def own_attributes(self, cls: DraftClass) -> list[DraftAttribute]:
        """Without the key, which says which object it is, and does not change."""
        key = self.key(cls)
        return [each for each in cls.attributes if each.name.text != key]

    def attributes(self, name: str) -> list[str]:
        """Inherited ones included."""
        return [each.name.text for cls in self.lineage(name) for each in self.own_attributes(cls)]

    def references(self, name: str) -> list[str]:
        """Associations that count as attributes: where one object at most is at the other end, its key is a column."""
        above = {each.name.text for each in self.lineage(name)}
        return [
            each.called
            for each in self.draft.associations
            if mark(each.marks, "propagates") is None
            for near, far in ((each.source, each.target), (each.target, each.source))
            if near.cls.text in above and far.cardinality.is_one
        ]

    def is_subscriber(self, name: str) -> bool:
        return any(mark(each.marks, "subscriber") for each in self.lineage(name))


def pointed_end(view: View, said: DraftAssociation, marked: DraftMark) -> End | None:
    """The end that is told or counts as changed: said by its end, class or role, or the one that it must be."""
    word = marked.tags.get("told") or marked.tags.get("towards")
    if word is not None:
        return next((end for end in End if word.text in _names(said, end)), None)
    if marked.name == "propagates":
        return End.TARGET
    can = [end for end in End if view.is_subscriber(at(said, end).cls.text)]
    return can[0] if len(can) == 1 else None


def near_end(view: View, said: DraftAssociation, marked: DraftMark) -> End | None:
    """The end whose changes the mark is about."""
    end = pointed_end(view, said, marked)
    return None if end is None else end.other


def at(said: DraftAssociation, end: End) -> DraftEnd:
    return said.source if end is End.SOURCE else said.target


def _names(said: DraftAssociation, end: End) -> list[str]:
    """An end may be called by its class or role, unless the other end is called the same."""
    here, there = at(said, end), at(said, end.other)
    own = {here.cls.text, here.role} - {there.cls.text, there.role, None}
    return [end.value, *(each for each in own if each and each not in (e.value for e in End))]


def has_classes(view: View) -> Iterator[Finding]:
    if not view.draft.classes and not view.draft.findings:
        yield Finding("all of it", "there is no class in it", accepted="at least one class")


def are_named_once(view: View) -> Iterator[Finding]:
    counted = Counter(each.name.text for each in view.draft.classes)
    seen: set[str] = set()
    for each in view.draft.classes:
        if not is_name(each.name.text):
            yield Finding(each.name.at, "a class needs a name", accepted="a text without control characters")
        elif counted[each.name.text] > 1 and each.name.text in seen:
            hint = "classes are known by their names alone, whatever package they are in"
            yield Finding(
                each.name.at, "there is a class of this name already", safe(each.name.text), hint=hint
            )
        seen.add(each.name.text)


def have_one_parent(view: View) -> Iterator[Finding]:
    for cls in view.draft.classes:
        if len({each.text for each in cls.parents}) > 1:
            received = listed(safe(each.text) for each in cls.parents)
            accepted = "one class, since a row refers to one row of its parent"
            yield Finding(
                cls.parents[1].at, f"{safe(cls.name.text)} is below several classes", received, accepted
            )
        elif len(cls.parents) > 1:
            yield Finding(cls.parents[1].at, "said before", safe(cls.parents[1].text), "once")
        for parent in cls.parents:
            yield from _known_class(view, parent)


def _known_class(view: View, said: Said) -> Iterator[Finding]:
    if said.text not in view.classes:
        hint = did_you_mean(said.text, view.classes)
        yield Finding(
            said.at, "no class has this name", safe(said.text), some(view.classes, shown=safe), hint
        )


def run_in_no_circle(view: View) -> Iterator[Finding]:
    """Each circle once, at the first of its classes."""
    told: set[str] = set()
    for cls in view.draft.classes:
        above = [each.name.text for each in view.lineage(cls.name.text)]
        if cls.name.text not in told and any(
            cls.name.text == parent.text for name in above for parent in view.classes[name].parents
        ):
            told.update(above)
            shown = " → ".join(map(safe, (*above, cls.name.text)))
            yield Finding(
                cls.name.at, "classes run in a circle", shown, hint="one of the generalizations must go"
            )


def have_attributes_once(view: View) -> Iterator[Finding]:
    for cls in view.classes.values():
        known = {
            each.name.text: above
            for above in reversed(view.lineage(cls.name.text)[1:])
            for each in above.attributes
        }
        for attribute in view.own_attributes(cls):
            name = attribute.name.text
            if not is_name(name):
                yield Finding(
                    attribute.name.at,
                    "an attribute needs a name",
                    accepted="a text without control characters",
                )
            elif name in known:
                what = f"{safe(known[name].name.text)} has an attribute of this name already"
                yield Finding(attribute.name.at, what, safe(name))
            known.setdefault(name, cls)


def have_known_marks(view: View) -> Iterator[Finding]:
    for cls in view.draft.classes:
        yield from _marks(cls.marks, stereotypes.CLASS, "a class")
        for attribute in cls.attributes:
            yield from _marks(attribute.marks, stereotypes.ATTRIBUTE, "an attribute")
    for association in view.draft.associations:
        yield from _marks(association.marks, stereotypes.ASSOCIATION, "an association")


def _marks(marks: Marks, accepted: Mapping[str, frozenset[str]], on: str) -> Iterator[Finding]:
    counted = Counter(each.name for each in marks)
    for each in marks:
        if each.name not in accepted:
            known = some(sorted(accepted))
            hint = did_you_mean(each.name, accepted)
            yield Finding(each.at, f"no mark of {on}", safe(each.name), known, hint)
            continue
        if counted[each.name] > 1 and each is not mark(marks, each.name):
            yield Finding(each.at, "the mark is said twice", each.name, "each mark once")
        for key, value in each.tags.items():
            if key not in accepted[each.name]:
                words, hint = some(sorted(accepted[each.name])), did_you_mean(key, accepted[each.name])
                yield Finding(
                    value.at, f"{each.name} of {on} has no such tagged value", safe(key), words, hint
                )
            elif not value.text.strip():
                yield Finding(value.at, f"{key} says nothing", accepted=f"{key} = ...")


def lead_to_classes(view: View) -> Iterator[Finding]:
    for each in view.draft.associations:
        for end in End:
            yield from _known_class(view, at(each, end).cls)


def are_called_once(view: View) -> Iterator[Finding]:
    """Two associations of one name must not meet in a class, and none may be called as an attribute there is."""
    seen: list[tuple[str, str]] = []
    for each in view.draft.associations:
        name, source = each.called, each.source.cls.text
        if not is_name(name):
            yield Finding(each.at, "an association needs a name", safe(name))
        for other_name, other in seen:
            if name == other_name and (_below(view, source, other) or _below(view, other, source)):
                what, hint = (
                    f"{safe(other)} has an association of this name already",
                    "give one of them another name",
                )
                yield Finding(each.at, what, safe(name), hint=hint)
                break
        if name in view.attributes(source):
            yield Finding(each.at, f"{safe(source)} has an attribute of this name already", safe(name))
        seen.append((name, source))


def _below(view: View, name: str, above: str) -> bool:
    return any(each.name.text == above for each in view.lineage(name))


def point_to_an_end(view: View) -> Iterator[Finding]:
    for said in view.draft.associations:
        for marked in said.marks:
            word = marked.tags.get("told") or marked.tags.get("towards")
            if word is not None and pointed_end(view, said, marked) is None:
                accepted = some([name for end in End for name in _names(said, end)], shown=safe)
                yield Finding(word.at, f"not an end of {safe(said.called)}", safe(word.text), accepted)


def tell_subscribers(view: View) -> Iterator[Finding]:
    for said in view.draft.associations:
        marked = mark(said.marks, "implicit")
        ends = {said.source.cls.text, said.target.cls.text}
        if marked is None or not ends <= set(view.classes):
            continue
        end, word = pointed_end(view, said, marked), marked.tags.get("told")
        if end is None and word is None:
            yield _unsaid(view, said, marked)
        elif end is not None and not view.is_subscriber(at(said, end).cls.text):
            what = f"{safe(said.called)} would tell {safe(at(said, end).cls.text)}, which is no subscriber"
            yield _no_subscriber(what, word.at if word else marked.at, at(said, end).cls.text)


def _unsaid(view: View, said: DraftAssociation, marked: DraftMark) -> Finding:
    source, target = safe(said.source.cls.text), safe(said.target.cls.text)
    if view.is_subscriber(said.source.cls.text):
        what = f"{source} and {target} are both subscribers: which of them is told?"
        return Finding(marked.at, what, accepted="told = source or told = target")
    what = f"{safe(said.called)} is implicit, and neither {source} nor {target} is a subscriber"
    return _no_subscriber(what, marked.at, f"{source} or {target}")


def _no_subscriber(what: str, spot: Spot, whom: str) -> Finding:
    hint = f"mark {safe(whom)} as subscriber"
    return Finding(spot, what, accepted="an end whose class or a class above it is a subscriber", hint=hint)


def are_limited_to_what_there_is(view: View) -> Iterator[Finding]:
    for said in view.draft.associations:
        for marked in said.marks:
            end = near_end(view, said, marked)
            if end is not None and at(said, end).cls.text in view.classes:
                yield from _attributes(view, at(said, end).cls.text, marked.tags.get("attributes"))
            yield from _kinds(marked)


def _attributes(view: View, cls: str, said: Said | None) -> Iterator[Finding]:
    known = limiting_names(view, cls)
    for name in parted(said.text, known) if said else ():
        if said and name not in known:
            hint = did_you_mean(name, known)
            yield Finding(said.at, f"{safe(cls)} has no such attribute", safe(name), _all(known), hint)


def limiting_names(view: View, cls: str) -> list[str]:
    """What a mark about changes of a class may be limited to."""
    return [*view.attributes(cls), *view.references(cls)]


def parted(text: str, known: Collection[str]) -> list[str]:
    """The names in a text, parted by blanks; names may have blanks themselves: the longest that is known counts."""
    words, names = text.split(), list[str]()
    while words:
        sizes = (size for size in range(len(words), 1, -1) if " ".join(words[:size]) in known)
        size = next(sizes, 1)
        names.append(" ".join(words[:size]))
        del words[:size]
    return names


def _all(known: list[str]) -> str | None:
    return some(list(dict.fromkeys(known)), shown=safe) or None


def _kinds(marked: DraftMark) -> Iterator[Finding]:
    said, known = marked.tags.get("kinds"), [each.value for each in Kind]
    kinds = said.text.split() if said else []
    for each in kinds:
        if said and each not in known:
            yield Finding(
                said.at, "no kind of change", safe(each), listed(known, "or"), did_you_mean(each, known)
            )
    attributes = marked.tags.get("attributes")
    if attributes and kinds and "update" not in kinds and set(kinds) <= set(known):
        what = "only updates change attributes, and the kinds are without update"
        yield Finding(attributes.at, what, safe(attributes.text), "update among the kinds, or no attributes")


def are_known_by_attributes(view: View) -> Iterator[Finding]:
    for cls in view.draft.classes:
        said, known = tag(cls.marks, "label"), view.attributes(cls.name.text)
        if said is not None and said.text not in known:
            hint = did_you_mean(said.text, known)
            what = f"{safe(cls.name.text)} has no such attribute to be known by"
            yield Finding(said.at, what, safe(said.text), _all(known), hint)


CHECKS: tuple[Callable[[View], Iterator[Finding]], ...] = (
    has_classes,
    are_named_once,
    have_one_parent,
    run_in_no_circle,
    have_attributes_once,
    have_known_marks,
    lead_to_classes,
    are_called_once,
    point_to_an_end,
    tell_subscribers,
    are_limited_to_what_there_is,
    are_known_by_attributes,
)

"""What may be wrong with marks: on the wrong thing, towards nobody, limited to what there is not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from tidings.objects import stereotypes
from tidings.objects.drafts import DraftAssociation, DraftMark, Marks, Said, mark, tag
from tidings.objects.model import End, Kind
from tidings.objects.problems import Finding, Spot
from tidings.objects.view import View, end_names, limiting_names, near_end, parted, pointed_end
from tidings.schema.names import did_you_mean, listed, safe, some


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


def point_to_an_end(view: View) -> Iterator[Finding]:
    for said in view.draft.associations:
        for marked in said.marks:
            word = marked.tags.get("told") or marked.tags.get("towards")
            if word is not None and pointed_end(view, said, marked) is None:
                accepted = some([name for end in End for name in end_names(said, end)], shown=safe)
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
        elif end is not None and not view.is_subscriber(said.end(end).cls.text):
            what = f"{safe(said.called)} would tell {safe(said.end(end).cls.text)}, which is no subscriber"
            yield _no_subscriber(what, word.at if word else marked.at, said.end(end).cls.text)


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
            if end is not None and said.end(end).cls.text in view.classes:
                yield from _attributes(view, said.end(end).cls.text, marked.tags.get("attributes"))
            yield from _kinds(marked)


def _attributes(view: View, cls: str, said: Said | None) -> Iterator[Finding]:
    if said is None:
        return
    known = limiting_names(view, cls)
    for name in parted(said.text, known):
        if name not in known:
            hint = did_you_mean(name, known)
            yield Finding(said.at, f"{safe(cls)} has no such attribute", safe(name), _all(known), hint)


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
        said = tag(cls.marks, "label")
        if said is None:
            continue
        known = view.attributes(cls.name.text)
        if said.text not in known:
            hint = did_you_mean(said.text, known)
            what = f"{safe(cls.name.text)} has no such attribute to be known by"
            yield Finding(said.at, what, safe(said.text), _all(known), hint)

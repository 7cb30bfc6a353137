"""What may be wrong with a model, one small check after the other; reading `CHECKS` is reading the rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping

from tidings.objects.drafts import DraftClass, Said
from tidings.objects.mark_checks import (
    are_known_by_attributes,
    are_limited_to_what_there_is,
    have_known_marks,
    point_to_an_end,
    tell_subscribers,
)
from tidings.objects.model import End
from tidings.objects.problems import Finding
from tidings.objects.view import View
from tidings.schema.names import did_you_mean, is_name, listed, safe, some


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
    for name in _in_circles(view):
        above = [] if name in told else [each.name.text for each in view.upwards(name)]
        if any(name in view.parents(each) for each in above):
            told.update(above)
            shown = " → ".join(map(safe, (*above, name)))
            yield Finding(
                view.classes[name].name.at,
                "classes run in a circle",
                shown,
                hint="one of the generalizations must go",
            )


def _in_circles(view: View) -> list[str]:
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


def have_attributes_once(view: View) -> Iterator[Finding]:
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
                what = f"{safe(before.name.text)} has an attribute of this name already"
                yield Finding(attribute.name.at, what, safe(name))
            own.add(name)


def _nearest_above(view: View, cls: DraftClass, names: Collection[str]) -> DraftClass | None:
    """The first of some classes on the way up from a class."""
    if len(names) == 1:  # the class itself: what most attributes are, and nothing to go up for
        return None
    above = (each for each in view.upwards(cls.name.text) if each is not cls)
    return next((each for each in above if each.name.text in names), None)


def lead_to_classes(view: View) -> Iterator[Finding]:
    for each in view.draft.associations:
        for end in End:
            yield from _known_class(view, each.end(end).cls)


def are_called_once(view: View) -> Iterator[Finding]:
    """A name means one thing in a class: an attribute, an association from it, or one that it has a column of."""
    taken: dict[str, list[tuple[str, str]]] = {}
    for cls in view.classes.values():
        for attribute in view.own_attributes(cls):
            taken.setdefault(attribute.name.text, []).append((cls.name.text, "attribute"))
    for each in view.draft.associations:
        if not is_name(each.called):
            yield Finding(each.at, "an association needs a name", safe(each.called))
        places = dict.fromkeys(each.end(end).cls.text for end in (End.SOURCE, each.holder) if end)
        before = taken.setdefault(each.called, [])
        met = (one for one in before if any(_are_related(view, one[0], place) for place in places))
        for other, kind in list(met)[:1]:
            what, hint = f"{safe(other)} has an {kind} of this name already", "give one of them another name"
            yield Finding(each.at, what, safe(each.called), hint=hint)
        before += ((place, "association") for place in places)


def _are_related(view: View, one: str, other: str) -> bool:
    """Whether an object may be of both classes."""
    return view.is_below(one, other) or view.is_below(other, one)


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

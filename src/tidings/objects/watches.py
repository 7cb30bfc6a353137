"""Watches as people say them: `Student:1` watches `Course:ProgrammingBasics`, or all of `Course`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace

from tidings.errors import InputError
from tidings.objects.propagation import Watch
from tidings.objects.reasons import Object
from tidings.objects.sources import OpenSource

SUBSCRIBER_FORM = "a class and a key or label, such as Student:1"


@dataclass(frozen=True, slots=True)
class WatchDescription:
    """A watch by the names that people know: `object` and `label` are None if it is a whole class."""

    subscriber: str
    subscriber_label: str
    cls: str
    object: str | None
    label: str | None

    def record(self) -> dict[str, str | None]:
        """For machines, who may call a class a class."""
        return {("class" if name == "cls" else name): value for name, value in asdict(self).items()}


class WatchRegistry:
    """Who watches what in a source."""

    def __init__(self, source: OpenSource) -> None:
        self._site, self._placed = source.site, source.placed

    def add(self, subscriber: str, what: str) -> tuple[WatchDescription, bool]:
        """From now on a subscriber is told about an object or a class; False if they were before."""
        cls, word = _parted(subscriber)
        who = Object(cls, self._site.find(self._placed, cls, word))
        cls, word = _named(what)
        watch = Watch(who, cls, self._site.find(self._placed, cls, word) if word else None)
        is_new = not self._same(watch) and self._site.watch(who, cls, _key(watch))
        return self._shown([watch])[0], is_new

    def remove(self, subscriber: str, what: str) -> tuple[WatchDescription, bool]:
        """It is watched no more; False if it was not. An object that is gone may still be named by its key."""
        who = self._known(subscriber)
        cls, word = _named(what)
        watch = Watch(who, cls, word or None)
        same = self._same(watch)
        if word and not same:
            watch = replace(watch, key=self._site.find(self._placed, cls, word))
            same = self._same(watch)
        for each in same:
            self._site.unwatch(each.subscriber, each.cls, _key(each))
        return self._shown([watch])[0], bool(same)

    def of(self, subscriber: str | None = None) -> list[WatchDescription]:
        """All watches, or those of one subscriber."""
        if subscriber is None:
            return self._shown(self._site.watches())
        return self._shown(self._watches_of(self._known(subscriber)))

    def notified_as(self, named: str) -> str | None:
        """The name that notifications of a subscriber have: by the topmost class, and by the key. None if there is no
        such object, and it watches nothing.
        """
        cls, word = _parted(named)
        key = (
            word if self._site.watches(Object(cls, word)) else self._site.find_if_any(self._placed, cls, word)
        )
        return None if key is None else str(self._name(Object(cls, key)))

    def _known(self, named: str) -> Object:
        """Who watches something is known by a key, though there may be no such object any more."""
        cls, word = _parted(named)
        if self._site.watches(Object(cls, word)):
            return Object(cls, word)
        return Object(cls, self._site.find(self._placed, cls, word))

    def _watches_of(self, who: Object) -> list[Watch]:
        """A student who is a person may have been named as either."""
        model, name = self._placed.model, self._name(who)
        below = model.subclasses_of(name.family) if name.family in model.classes else ()
        return [each for cls in (name.family, *below) for each in self._site.watches(Object(cls, who.key))]

    def _same(self, watch: Watch) -> list[Watch]:
        """Those of the same subscriber about the same object or class."""
        return [
            each for each in self._watches_of(watch.subscriber) if self._about(each) == self._about(watch)
        ]

    def _about(self, watch: Watch) -> Object:
        return Object(watch.cls, None) if watch.key is None else self._name(Object(watch.cls, watch.key))

    def _shown(self, watches: Iterable[Watch]) -> list[WatchDescription]:
        given = list(watches)
        named = {self._name(each.subscriber) for each in given}
        named |= {self._name(Object(each.cls, each.key)) for each in given if each.key is not None}
        labels = self._site.labels(self._placed, named)
        return [self._watched(each, lambda one: labels.get(one, str(one))) for each in given]

    def _watched(self, watch: Watch, label: Callable[[Object], str]) -> WatchDescription:
        who = self._name(watch.subscriber)
        if watch.key is None:
            return WatchDescription(str(who), label(who), watch.cls, None, None)
        what = self._name(Object(watch.cls, watch.key))
        return WatchDescription(str(who), label(who), watch.cls, str(what), label(what))

    def _name(self, one: Object) -> Object:
        """Notifications call a subscriber by the topmost class; a model may have lost a class since."""
        model = self._placed.model
        return Object(model.family(one.family), one.key) if one.family in model.classes else one


def _parted(named: str) -> tuple[str, str]:
    cls, _, word = named.partition(":")
    if not cls or not word:
        raise InputError("this names no subscriber", received=named, accepted=SUBSCRIBER_FORM)
    return cls, word


def _named(what: str) -> tuple[str, str]:
    cls, colon, word = what.partition(":")
    if not cls or (colon and not word):
        accepted = "a class, or with a key or label one of its objects: Course, Course:1, Course:Trees"
        raise InputError("this names nothing that can be watched", received=what, accepted=accepted)
    return cls, word


def _key(watch: Watch) -> str | None:
    return None if watch.key is None else str(watch.key)

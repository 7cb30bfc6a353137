"""Canonical names of subscribers that are objects: `Student:S1` is notified as `Person:1`, topmost class and key.

Objects of a class share the keys of its parent class, so a student and the person she is are one subscriber. Tokens,
destinations, subscriptions and preferences under another of her names would never see a notification: therefore each
interface resolves the names it receives here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import cached_property

from tidings.errors import InputError, NotFound, TidingsError
from tidings.objects.model.table_mapping import MappedModel
from tidings.objects.propagation import Object, Watch
from tidings.objects.readers.model_loader import read_model
from tidings.objects.sources import OpenSource, open_source
from tidings.objects.sql.object_store import ObjectSource
from tidings.store.store import Store

SUBSCRIBER_FORM = "a class and a key or label, such as Student:1"


@dataclass(frozen=True, slots=True)
class WatchDescription:
    """A watch with names and labels; `object` and `label` are None if it watches a whole class."""

    subscriber: str
    subscriber_label: str
    cls: str
    object: str | None
    label: str | None

    def record(self) -> dict[str, str | None]:
        """Return the fields for JSON, where `cls` is called `class`."""
        return {("class" if name == "cls" else name): value for name, value in asdict(self).items()}


class WatchRegistry:
    """Watches stored in the database of a source."""

    def __init__(self, source: OpenSource) -> None:
        self._database, self._mapped = source.database, source.mapped

    def add(self, subscriber: str, watched: str) -> tuple[WatchDescription, bool]:
        """Watch an object or a class; the second value is False if the subscriber watched it before."""
        cls, key_or_label = _split_subscriber(subscriber)
        watcher = Object(cls, self._database.find(self._mapped, cls, key_or_label))
        cls, key_or_label = _split_watched(watched)
        key = self._database.find(self._mapped, cls, key_or_label) if key_or_label else None
        watch = Watch(watcher, cls, key)
        is_new = not self._find_equal(watch) and self._database.watch(watcher, cls, _key(watch))
        return self._describe([watch])[0], is_new

    def remove(self, subscriber: str, watched: str) -> tuple[WatchDescription, bool]:
        """Stop watching; the second value is False if it was not watched.

        A deleted object can still be given by its key.
        """
        watcher = self._find_watcher(subscriber)
        cls, key_or_label = _split_watched(watched)
        watch = Watch(watcher, cls, key_or_label or None)
        watches = self._find_equal(watch)
        if key_or_label and not watches:
            watch = replace(watch, key=self._database.find(self._mapped, cls, key_or_label))
            watches = self._find_equal(watch)
        for removed_watch in watches:
            self._database.unwatch(removed_watch.subscriber, removed_watch.cls, _key(removed_watch))
        return self._describe([watch])[0], bool(watches)

    def list_watches(self, subscriber: str | None = None) -> list[WatchDescription]:
        """List all watches, or those of one subscriber."""
        if subscriber is None:
            return self._describe(self._database.watches())
        return self._describe(self._watches_of(self._find_watcher(subscriber)))

    def resolve_subscriber(self, name: str) -> str | None:
        """Return the name in a subscriber's notifications: topmost class and key.

        None if the object does not exist and watches nothing.
        """
        cls, key_or_label = _split_subscriber(name)
        if self._database.watches(Object(cls, key_or_label)):
            return str(self._canonical(Object(cls, key_or_label)))
        key = self._database.find_if_any(self._mapped, cls, key_or_label)
        return None if key is None else str(self._canonical(Object(cls, key)))

    def _find_watcher(self, name: str) -> Object:
        """Find a subscriber; one that watches something is found by its key even if its object is deleted."""
        cls, key_or_label = _split_subscriber(name)
        if self._database.watches(Object(cls, key_or_label)):
            return Object(cls, key_or_label)
        return Object(cls, self._database.find(self._mapped, cls, key_or_label))

    def _watches_of(self, watcher: Object) -> list[Watch]:
        """List a subscriber's watches under every class: a student who is a person may have been named as either."""
        model, canonical = self._mapped.model, self._canonical(watcher)
        below = model.subclasses_of(canonical.family) if canonical.family in model.classes else ()
        return [
            watch
            for cls in (canonical.family, *below)
            for watch in self._database.watches(Object(cls, watcher.key))
        ]

    def _find_equal(self, watch: Watch) -> list[Watch]:
        """Find the watches of the same subscriber on the same object or class."""
        subject = self._subject(watch)
        return [each for each in self._watches_of(watch.subscriber) if self._subject(each) == subject]

    def _subject(self, watch: Watch) -> Object:
        return Object(watch.cls, None) if watch.key is None else self._canonical(Object(watch.cls, watch.key))

    def _describe(self, watches: Iterable[Watch]) -> list[WatchDescription]:
        listed = list(watches)
        named = {self._canonical(watch.subscriber) for watch in listed}
        named |= {self._canonical(Object(watch.cls, watch.key)) for watch in listed if watch.key is not None}
        labels = self._database.labels(self._mapped, named)
        return [self._describe_watch(watch, lambda each: labels.get(each, str(each))) for watch in listed]

    def _describe_watch(self, watch: Watch, label: Callable[[Object], str]) -> WatchDescription:
        watcher = self._canonical(watch.subscriber)
        if watch.key is None:
            return WatchDescription(str(watcher), label(watcher), watch.cls, None, None)
        watched = self._canonical(Object(watch.cls, watch.key))
        return WatchDescription(str(watcher), label(watcher), watch.cls, str(watched), label(watched))

    def _canonical(self, subject: Object) -> Object:
        """Name an object by its topmost class, as notifications do; its class may have left the model since."""
        model = self._mapped.model
        if subject.family not in model.classes:
            return subject
        return Object(model.family(subject.family), subject.key)


def _split_subscriber(name: str) -> tuple[str, str]:
    cls, _, key_or_label = name.partition(":")
    if not cls or not key_or_label:
        raise InputError("not a subscriber", received=name, accepted=SUBSCRIBER_FORM)
    return cls, key_or_label


def _split_watched(watched: str) -> tuple[str, str]:
    cls, colon, key_or_label = watched.partition(":")
    if not cls or (colon and not key_or_label):
        accepted = "a class, or one of its objects by key or label: Course, Course:1, Course:Trees"
        raise InputError("not a class or an object", received=watched, accepted=accepted)
    return cls, key_or_label


def _key(watch: Watch) -> str | None:
    return None if watch.key is None else str(watch.key)


class SubscriberNames:
    """Resolver of subscribers' names in the registered databases, with a cache."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._resolved: dict[str, str | InputError] = {}

    def resolve(self, name: str) -> str:
        """Return the name under which a subscriber is notified: `name`, unless it is an alias of an object.

        A name with notifications or subscriptions of its own stays as it is. Raise `InputError` if the database cannot
        be read, or if it has no such object and objects of the class are notified by the name of an ancestor class.
        """
        if ":" not in name or not name.isprintable():
            return name
        if name not in self._resolved:
            try:
                self._resolved[name] = self._look_up(name)
            except InputError as problem:
                self._resolved[name] = problem.with_traceback(None)
        resolved = self._resolved[name]
        if isinstance(resolved, InputError):
            raise resolved
        return resolved

    def _look_up(self, name: str) -> str:
        cls, _, key = name.partition(":")
        models = [*self._models_with(cls)] if cls and key else []
        if not models or self._is_in_use(name):
            return name
        for source, mapped in models:
            if (resolved := _resolve_in(source, mapped, name)) is not None:
                return resolved
        source, mapped = models[0]
        if (top := mapped.model.family(cls)) != cls:
            hint = f"objects of {cls} are notified as {top}:KEY"
            raise NotFound(f"{source.name} has no such object", where="subscriber", received=name, hint=hint)
        return name

    def _models_with(self, cls: str) -> Iterator[tuple[ObjectSource, MappedModel]]:
        for source in self._sources:
            try:
                mapped = read_model(source.model)
            except TidingsError as problem:
                message = f"the model of {source.name} cannot be read: {problem.headline()}"
                raise InputError(message, where="subscriber") from problem
            if cls in mapped.model.classes:
                yield source, mapped

    @cached_property
    def _sources(self) -> list[ObjectSource]:
        return self._store.object_sources.load()

    def _is_in_use(self, name: str) -> bool:
        store = self._store
        return bool(store.notifications.last_sequence(name)) or bool(store.subscriptions.list(name, limit=1))


def _resolve_in(source: ObjectSource, mapped: MappedModel, name: str) -> str | None:
    try:
        with open_source(source, lambda _: mapped) as opened:
            return WatchRegistry(opened).resolve_subscriber(name)
    except TidingsError as problem:
        raise InputError(
            f"{name} cannot be looked up in {source.name}: {problem.headline()}",
            where="subscriber",
            hint=problem.hint,
        ) from problem

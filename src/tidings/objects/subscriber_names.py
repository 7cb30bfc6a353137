"""Canonical names of subscribers that are objects: `Student:S1` is notified as `Person:1`, topmost class and key.

Objects of a class share the keys of its parent class, so a student and the person she is are one subscriber. Tokens,
destinations, subscriptions and preferences under another of her names would never see a notification: therefore each
interface resolves the names it receives here.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from tidings.errors import Absent, InputError, TidingsError
from tidings.objects.model.table_mapping import MappedModel
from tidings.objects.readers.model_loader import read_model
from tidings.objects.sources import open_source
from tidings.objects.sql.object_sources import ObjectSource
from tidings.objects.watches import WatchRegistry
from tidings.store.store import Store


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
            raise Absent(f"{source.name} has no such object", where="subscriber", received=name, hint=hint)
        return name

    def _models_with(self, cls: str) -> Iterator[tuple[ObjectSource, MappedModel]]:
        for source in self._sources:
            try:
                mapped = read_model(source.model)
            except TidingsError as problem:
                what = f"the model of {source.name} cannot be read: {problem.headline()}"
                raise InputError(what, where="subscriber") from problem
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

"""Names of subscribers that are objects: `Student:S1` is notified as `Person:1`, by the topmost class and by the key.

Objects of a class share the keys of the class above it, so that a student and the person that she is are one
subscriber. Tokens, destinations, subscriptions and preferences of another of her names would never see a notification:
each interface resolves the names that it is given here.
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
    """Resolves names of subscribers in the databases that were added; each name once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._resolved: dict[str, str | InputError] = {}

    def resolve(self, named: str) -> str:
        """Return the name under which a subscriber is notified: the one given, unless it is another name of an object.

        A name that has notifications or subscriptions of its own stays. It is refused if its database cannot be asked,
        or has no such object while objects of its class are notified by the name of a class above it.
        """
        if ":" not in named or not named.isprintable():
            return named
        if named not in self._resolved:
            try:
                self._resolved[named] = self._looked_up(named)
            except InputError as problem:
                self._resolved[named] = problem.with_traceback(None)
        found = self._resolved[named]
        if isinstance(found, InputError):
            raise found
        return found

    def _looked_up(self, named: str) -> str:
        cls, _, word = named.partition(":")
        models = [*self._models_with(cls)] if cls and word else []
        if not models or self._is_in_use(named):
            return named
        for source, placed in models:
            if (name := _name_in(source, placed, named)) is not None:
                return name
        source, placed = models[0]
        if (top := placed.model.family(cls)) != cls:
            hint = f"objects of {cls} are notified as {top}:KEY"
            raise Absent(f"{source.name} has no such object", where="subscriber", received=named, hint=hint)
        return named

    def _models_with(self, cls: str) -> Iterator[tuple[ObjectSource, MappedModel]]:
        for source in self._sources:
            try:
                placed = read_model(source.model)
            except TidingsError as problem:
                what = f"the model of {source.name} cannot be read: {problem.headline()}"
                raise InputError(what, where="subscriber") from problem
            if cls in placed.model.classes:
                yield source, placed

    @cached_property
    def _sources(self) -> list[ObjectSource]:
        return self._store.object_sources.load()

    def _is_in_use(self, named: str) -> bool:
        store = self._store
        return bool(store.notifications.last_sequence(named)) or bool(
            store.subscriptions.list(named, limit=1)
        )


def _name_in(source: ObjectSource, placed: MappedModel, named: str) -> str | None:
    try:
        with open_source(source, lambda _: placed) as found:
            return WatchRegistry(found).notified_as(named)
    except TidingsError as problem:
        raise InputError(
            f"{source.name} cannot be asked who {named} is: {problem.headline()}",
            where="subscriber",
            hint=problem.hint,
        ) from problem

"""What tasks found out about entries of the log, for whoever applies them.

Entries are applied as a provider without Spark does it, which reads each document and asks an index about its
resources. Here both were done before. What the tasks have not seen is found out now: rules that were added since the
index was written, and documents that they could not read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from tidings.matching.index import Index
from tidings.metadata.atomic import Triggering
from tidings.metadata.resources import Resource
from tidings.metadata.schema import Schema
from tidings.metadata.triggers import Triggers
from tidings.provider.reading import Known, Schemas
from tidings.spark.metadata_task import Reading
from tidings.store.metadata import SchemaFile


class Asked(Triggers):
    """Triggering rules that were asked about some resources already.

    `index` has the rules that the tasks had, up to the number `last`. Later ones go into an index of their own, which
    alone is asked about what the tasks have seen. `gone` are rules that are no more.
    """

    def __init__(self, schema: Schema, index: Index, last: int, readings: Iterable[Reading]) -> None:
        super().__init__(schema, index, last)
        self.gone: set[int] = set()
        self._late: Index | None = None
        # By identity, because two versions of a resource have one URI; kept beside it, so that nothing else gets it.
        self._known: dict[int, tuple[Resource, Sequence[int]]] = {}
        for each in readings:
            found = zip(each.document.resources, each.rules, strict=True)
            self._known |= {id(resource): (resource, rules) for resource, rules in found}

    def by(self, schema: Schema) -> Asked:
        """The same by another schema, which has all that this one has: what was asked stays right."""
        self._schema = schema
        return self

    def add(self, rules: Mapping[int, Triggering]) -> None:
        if rules:
            self._late = self._late or Index.create()
            self._late.add(self.compiled(rules))
            self.last = max(self.last, *rules)

    def remove(self, numbers: Iterable[int]) -> None:
        self.gone.update(numbers)

    def satisfied(self, resources: Collection[Resource]) -> Iterator[tuple[str, int]]:
        unknown = [each for each in resources if id(each) not in self._known]
        for each in resources:
            for rule in self._known.get(id(each), (each, ()))[1]:
                yield each.uri, rule
        if unknown:
            yield from super().satisfied(unknown)
        if self._late:
            yield from Triggers(self._schema, self._late).satisfied(resources)


class Prepared(Schemas):
    """Schemas whose triggering rules were asked already."""

    def __init__(self, schemas: Schemas, asked: Asked) -> None:
        self._schemas, self._asked = schemas, asked

    def known(self, file: SchemaFile | None) -> Known:
        known = self._schemas.known(file)
        return replace(known, triggers=self._asked.by(known.schema))

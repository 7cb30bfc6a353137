"""Rows of a DataFrame as publications: which columns hold what.

id          text or whole number   the id of the publication
audience    text                   its audience label
value, body text or binary         its body; then `media_type` is its media type (default JSON), and other columns
                                   are ignored
otherwise                          all columns but `audience` are one JSON event
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import types as t

from tidings.errors import DecodeProblem, InputError
from tidings.kinds import JSON
from tidings.spark.data_source.row_encoder import RowEncoder

ID, MEDIA_TYPE, AUDIENCE = "id", "media_type", "audience"
BODIES = ("value", "body")
ROWS = 500
"""Rows that are Python objects at the same time: bodies may be large."""

_TEXT = (t.StringType, t.CharType, t.VarcharType)
_ENCODABLE = (*_TEXT, t.BinaryType)


class PublicationRow(NamedTuple):
    """A row as it is offered: its body is None if it has none, and `problem` says why it cannot be written."""

    id: str | None
    media_type: str
    body: bytes | None
    audience: str | None
    problem: InputError | None = None


@dataclass(frozen=True)
class RowLayout:
    """The columns with ids, bodies, media types and audiences, by their places; None for those that do not exist."""

    fields: Sequence[t.StructField]
    id: int | None
    audience: int | None
    body: int | None
    media_type: int | None

    @classmethod
    def of(cls, schema: t.StructType) -> RowLayout:
        """Find the columns of publications in a schema."""
        places = {field.name: place for place, field in enumerate(schema)}
        bodies = [name for name in BODIES if name in places and isinstance(schema[name].dataType, _ENCODABLE)]
        if len(bodies) > 1:
            raise InputError(
                "two columns could be the body of a publication",
                received=" and ".join(bodies),
                accepted="one of them",
                hint=f".drop({bodies[0]!r}), or rename it",
            )
        body = places[bodies[0]] if bodies else None
        _check_column(schema, ID, (*_TEXT, t.IntegralType), "text or whole numbers")
        _check_column(schema, AUDIENCE, _TEXT, "text")
        if body is not None:
            _check_column(schema, MEDIA_TYPE, _TEXT, "text")
        if not places:
            raise InputError("a DataFrame without columns has no publications")
        media_type = None if body is None else places.get(MEDIA_TYPE)
        layout = cls(schema.fields, places.get(ID), places.get(AUDIENCE), body, media_type)
        if body is None:
            RowEncoder(layout.members)  # raise for types that cannot be encoded
        return layout

    @property
    def members(self) -> list[t.StructField]:
        """The columns that an event is made of."""
        return [field for place, field in enumerate(self.fields) if place != self.audience]

    def rows(self, batch: pa.RecordBatch) -> Iterator[PublicationRow]:
        """Yield the rows of an Arrow batch."""
        encoder = RowEncoder(self.members) if self.body is None else None
        for start in range(0, batch.num_rows, ROWS):
            part = batch.slice(start, ROWS)
            yield from self._encoded(part, encoder) if encoder else self._given(part)

    def _given(self, part: pa.RecordBatch) -> Iterator[PublicationRow]:
        """Yield rows that have a body."""
        assert self.body is not None
        media_types = self._texts(part, self.media_type)
        columns = self._texts(part, self.id), media_types, part.column(self.body).to_pylist()
        for id, media_type, body, audience in zip(*columns, self._texts(part, self.audience), strict=True):
            content = body.encode() if isinstance(body, str) else body
            problem = DecodeProblem("the body is null") if content is None else None
            yield PublicationRow(id, media_type or JSON, content, audience, problem)

    def _encoded(self, part: pa.RecordBatch, encoder: RowEncoder) -> Iterator[PublicationRow]:
        """Yield rows whose columns are an event."""
        places = [place for place in range(len(self.fields)) if place != self.audience]
        columns = [_values(part.column(place), self.fields[place].name) for place in places]
        ids, audiences = self._texts(part, self.id), self._texts(part, self.audience)
        for id, audience, *values in zip(ids, audiences, *columns, strict=True):
            problem = next((value for value in values if isinstance(value, InputError)), None)
            readable = [None if isinstance(value, InputError) else value for value in values]
            yield PublicationRow(id, JSON, encoder.encode(readable), audience, problem)

    def _texts(self, part: pa.RecordBatch, place: int | None) -> list[str | None]:
        if place is None:
            return [None] * part.num_rows
        return [None if value is None else str(value) for value in part.column(place).to_pylist()]


def _check_column(
    schema: t.StructType, name: str, types: tuple[type[t.DataType], ...], accepted: str
) -> None:
    if name in schema.names and not isinstance(schema[name].dataType, types):
        raise InputError(
            f"the column {name} has the wrong type",
            received=schema[name].dataType.simpleString(),
            accepted=accepted,
            hint=f"cast it, or rename it if it is not the {name.replace('_', ' ')} of a publication",
        )


def _values(column: pa.Array, name: str) -> list[Any]:
    """Return the values of a column. One that Python cannot represent, such as the year 10000, is a problem."""
    try:
        values: list[Any] = column.to_pylist()
    except (ValueError, OverflowError):
        values = [_value(scalar, name) for scalar in column]
    return values


def _value(scalar: pa.Scalar, name: str) -> Any:
    try:
        return scalar.as_py()
    except (ValueError, OverflowError) as problem:
        return DecodeProblem("the value cannot be read", where=f"column {name}", received=str(problem))

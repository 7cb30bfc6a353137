"""Events as columns, and the same ones as atoms, dictionaries and JSON."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.workloads.runs import Integers, starts_of
from tidings.atoms import AtomKind, Atoms, Event
from tidings.values import Kind


@dataclass(frozen=True)
class Attribute:
    """A numeric attribute, or with `names` one whose integers are codes of those strings."""

    name: str
    names: tuple[str, ...] = ()

    @property
    def kind(self) -> Kind:
        return Kind.STRING if self.names else Kind.NUMBER

    def value(self, code: int) -> str | int:
        return self.names[code] if self.names else code

    def literal(self, code: int) -> str:
        return f"'{self.names[code]}'" if self.names else str(code)


@dataclass(frozen=True)
class Events:
    """Event i has `value[t]` at `attributes[attribute[t]]` for each t of `starts[i]:starts[i + 1]`."""

    attributes: tuple[Attribute, ...]
    starts: Integers
    attribute: npt.NDArray[np.int32]
    value: Integers

    def __len__(self) -> int:
        return len(self.starts) - 1

    def first(self, count: int) -> Events:
        starts = self.starts[: count + 1]
        end = int(starts[-1])
        return replace(self, starts=starts, attribute=self.attribute[:end], value=self.value[:end])

    def column(self, at: int) -> tuple[npt.NDArray[np.bool_], Integers]:
        """Return which events have attribute number `at`, and its values (0 where it is missing)."""
        here, present, value = (
            self.attribute == at,
            np.zeros(len(self), np.bool_),
            np.zeros(len(self), np.int64),
        )
        present[self.rows[here]] = True
        value[self.rows[here]] = self.value[here]
        return present, value

    @cached_property
    def rows(self) -> Integers:
        """Return the event of each value."""
        return np.repeat(np.arange(len(self)), np.diff(self.starts))

    @cached_property
    def atoms(self) -> Atoms:
        """Return atoms as a decoder does: event after event, strings as positions in a text."""
        kinds = np.array(
            [AtomKind.STRING if a.names else AtomKind.INTEGER for a in self.attributes], np.uint8
        )
        payload, length, text = self.value.copy(), np.zeros(len(self.value), np.int32), bytearray()
        for at, attribute in enumerate(self.attributes):
            if attribute.names:
                mine = self.attribute == at
                places, lengths = _laid_out(attribute.names, text)
                length[mine] = lengths[self.value[mine]]
                payload[mine] = places[self.value[mine]]
        names = tuple(a.name for a in self.attributes)
        data = np.frombuffer(bytes(text), np.uint8)
        return Atoms(names, self.starts, self.attribute, kinds[self.attribute], payload, length, data)

    def dictionaries(self) -> Iterator[dict[str, str | int]]:
        starts, attribute, value = self.starts.tolist(), self.attribute.tolist(), self.value.tolist()
        for begin, end in itertools.pairwise(starts):
            pairs = zip(attribute[begin:end], value[begin:end], strict=True)
            yield {self.attributes[at].name: self.attributes[at].value(code) for at, code in pairs}

    def readable(self) -> list[Event]:
        return [{name: (value,) for name, value in event.items()} for event in self.dictionaries()]

    def json_lines(self) -> bytes:
        encode: Callable[[Any], str] = json.JSONEncoder(separators=(",", ":")).encode
        lines = (encode({"id": f"e{row}", **event}) for row, event in enumerate(self.dictionaries()))
        return "\n".join(lines).encode() + b"\n"


def table(attributes: tuple[Attribute, ...], values: Integers, present: Any = None) -> Events:
    """Build events from a table with a column for each attribute; `present` marks the cells that exist."""
    if present is None:
        present = np.ones(values.shape, np.bool_)
    columns = np.nonzero(present)[1].astype(np.int32)
    return Events(attributes, starts_of(present.sum(axis=1)), columns, values[present].astype(np.int64))


def _laid_out(names: Sequence[str], text: bytearray) -> tuple[Integers, npt.NDArray[np.int32]]:
    """Append the names to a text; return their positions and lengths."""
    encoded = [name.encode() for name in names]
    lengths = np.array([len(each) for each in encoded], np.int32)
    places = len(text) + starts_of(lengths)[:-1]
    text.extend(b"".join(encoded))
    return places, lengths

"""Conversion of atoms to events, for comparisons."""

from __future__ import annotations

import numpy as np

from tidings.atoms import AtomKind, Atoms
from tidings.values import Scalar


def events_of(atoms: Atoms) -> list[dict[str, tuple[Scalar, ...]]]:
    """Return the values of each publication by path, in the form of the decoder's specification."""
    events = []
    for start, end in zip(atoms.starts[:-1], atoms.starts[1:], strict=True):
        event: dict[str, tuple[Scalar, ...]] = {}
        for i in range(start, end):
            path = atoms.paths[atoms.path[i]]
            event[path] = (*event.get(path, ()), value_of(atoms, i))
        events.append(event)
    return events


def value_of(atoms: Atoms, i: int) -> Scalar:
    kind, payload = AtomKind(atoms.kind[i]), int(atoms.payload[i])
    if kind is AtomKind.STRING:
        return atoms.text[payload : payload + atoms.length[i]].tobytes().decode()
    if kind is AtomKind.DOUBLE:
        return float(np.int64(payload).view(np.float64))
    return payload if kind is AtomKind.INTEGER else bool(payload)

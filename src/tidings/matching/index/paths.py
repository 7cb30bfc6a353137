"""Which columns of a segment look at which path of a batch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tidings.atoms import Aspect, Column
from tidings.kernels.codes import DENSE_NUMBERS
from tidings.kernels.encode import Codecs
from tidings.kernels.few import Paths
from tidings.matching.index.arrays import starts_of


def paths_of(names: Sequence[str], columns: Sequence[Column], codecs: Codecs) -> Paths:
    """What `kernels.encode.AtomArrays` says of the paths of a batch."""
    by_path: dict[str, list[int]] = {}
    for number, column in enumerate(columns):
        by_path.setdefault(column.path, []).append(number)
    lists = [by_path.get(path, []) for path in names]
    low, count = np.zeros(len(names), np.int64), np.zeros(len(names), np.int64)
    for place, numbers in enumerate(lists):
        if len(numbers) == 1 and columns[numbers[0]].aspect == Aspect.VALUE:
            dense = codecs.numbers.mode[numbers[0]] == DENSE_NUMBERS
            low[place] = codecs.numbers.low[numbers[0]]
            count[place] = codecs.numbers.count[numbers[0]] if dense else 0
    flat = np.array([number for numbers in lists for number in numbers], np.uint32)
    return Paths(starts_of([len(numbers) for numbers in lists]), flat, low, count)

"""Handles: a group of arrays handed to a kernel as one array of addresses.

Numba takes a NamedTuple of arrays apart at each call, array by array, and that takes longer than matching an event. A
handle has the address and the length of each array; the kernel puts the NamedTuple together from it, which costs
nothing. Whoever has the handle must keep the arrays.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, get_type_hints

import numpy as np
import numpy.typing as npt
from numba import from_dtype, types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np import arrayobj


def handle_of(group: tuple[Any, ...]) -> npt.NDArray[np.int64]:
    """Address and length of each array of a NamedTuple, those of NamedTuples in it included."""
    return np.array(
        [number for array in _arrays(group) for number in (array.ctypes.data, array.size)], np.int64
    )


def _arrays(group: tuple[Any, ...]) -> Iterator[npt.NDArray[Any]]:
    for name, value in zip(group._fields, group, strict=True):  # type: ignore[attr-defined]
        if isinstance(value, tuple):
            yield from _arrays(value)
            continue
        declared = _hints(type(group))[name].__metadata__[0]
        if value.dtype != declared or not value.flags.c_contiguous:
            raise TypeError(f"{type(group).__name__}.{name} is {value.dtype}, not {np.dtype(declared)}")
        yield value


@cache  # reading annotations takes longer than all the rest
def _hints(group: type) -> dict[str, Any]:
    return get_type_hints(group, include_extras=True)


def _type_of(group: type, changing: Sequence[type]) -> Any:
    """The type Numba gives a NamedTuple whose arrays are as declared."""
    members = []
    for hint in _hints(group).values():
        if isinstance(hint, type) and issubclass(hint, tuple):
            members.append(_type_of(hint, changing))
        else:
            dtype = from_dtype(np.dtype(hint.__metadata__[0]))
            members.append(types.Array(dtype, 1, "C", readonly=group not in changing))
    return types.BaseTuple.from_types(members, group)


def opener(group: type, changing: Sequence[type] = ()) -> Any:
    """A function for kernels that gives a NamedTuple back from its handle.

    The arrays of mapped files are read-only; those of the groups in `changing` are not.
    """
    wanted = _type_of(group, changing)

    @intrinsic  # type: ignore[untyped-decorator]
    def opened(typing: Any, handle: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
            data = arrayobj.make_array(signature.args[0])(context, builder, args[0]).data
            return _Maker(context, builder, data).make(wanted)

        return wanted(handle), generate

    return opened


class _Maker:
    """Makes arrays from one number of a handle after the other."""

    def __init__(self, context: Any, builder: Any, data: Any) -> None:
        self._context, self._builder, self._data, self._at = context, builder, data, 0

    def make(self, kind: Any) -> Any:
        if isinstance(kind, types.Array):
            return self._array(kind)
        members = kind.types if isinstance(kind, types.NamedTuple) else [kind.dtype] * kind.count
        return self._context.make_tuple(self._builder, kind, [self.make(member) for member in members])

    def _array(self, kind: Any) -> Any:
        context, builder = self._context, self._builder
        address, count = self._number(), self._number()
        array = arrayobj.make_array(kind)(context, builder)
        size = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(kind.dtype)))
        arrayobj.populate_array(
            array,
            data=builder.inttoptr(address, array.data.type),
            shape=cgutils.pack_array(builder, [count]),
            strides=cgutils.pack_array(builder, [size]),
            itemsize=size,
            meminfo=None,
        )
        return array._getvalue()

    def _number(self) -> Any:
        place = self._context.get_constant(types.intp, self._at)
        self._at += 1
        return self._builder.load(self._builder.gep(self._data, [place]))

"""Compilation of kernels, and handles that pass groups of arrays to them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import numpy as np
import numpy.typing as npt
from numba import from_dtype, njit, types
from numba.core import cgutils, event
from numba.extending import intrinsic
from numba.np import arrayobj

_OPTIONS = {"cache": True, "nogil": True, "_nrt": False, "no_cfunc_wrapper": True}


def kernel(function: Any) -> Any:
    """Compile a kernel that allocates nothing, cached on disk, without the interpreter's lock.

    `_nrt=False` disables reference counts of arrays. Numba prunes them for plain array arguments only: with
    arrays grouped in a NamedTuple an atomic increment and decrement remain around each helper with a loop,
    and cost the JSON decoder two thirds of its speed. The caller keeps the arrays alive while the kernel
    runs.
    """
    return _ignore_literals(_stamp(njit(**_OPTIONS)(function)))


def allocating_kernel(function: Any) -> Any:
    """Compile a kernel that returns new arrays; Numba counts references to them."""
    return _stamp(njit(cache=True, nogil=True)(function))


def inlined(function: Any) -> Any:
    """Compile a helper into every kernel that calls it.

    Then a NamedTuple of arrays is not copied at calls: matching is twice as fast as with real calls, and as
    fast as one long function. Python cannot call a helper: the code that unpacks the arrays of a NamedTuple
    from Python objects is longer than most helpers, and would be a third of all compiled code.
    """
    return _ignore_literals(_stamp(njit(**_OPTIONS, forceinline=True, no_cpython_wrapper=True)(function)))


def _stamp(dispatcher: Any) -> Any:
    """Invalidate compiled code when any kernel source changes.

    Numba compares only the file of the function itself, but helpers of other files are compiled into it:
    after an upgrade a kernel would still contain the old ones.
    """
    file = dispatcher._cache._cache_file
    file._source_stamp = file._source_stamp, _digest_sources()
    return dispatcher


@cache
def _digest_sources() -> str:
    """Return a digest of all kernel sources, including sub-packages."""
    folder = Path(__file__).parent
    digest = hashlib.blake2b(digest_size=16)
    for path in sorted(folder.rglob("*.py")):
        source = path.read_bytes()
        digest.update(f"{path.relative_to(folder)} {len(source)} ".encode() + source)
    return digest.hexdigest()


def _ignore_literals(dispatcher: Any) -> Any:
    """Compile a kernel for integers, not for the literal 0 as well.

    Numba infers a literal type for the 0 of `found = 0` until the loop after it shows otherwise; by then it
    has compiled every function that received `found`, and all that these call, a second time.
    """
    resolve = dispatcher.get_call_template

    def get_call_template(args: Any, kws: Any) -> Any:
        return resolve([types.unliteral(a) for a in args], {k: types.unliteral(v) for k, v in kws.items()})

    dispatcher.get_call_template = get_call_template
    return dispatcher


@contextmanager
def observe_compilation(begins: Callable[[], object], ends: Callable[[], object]) -> Iterator[None]:
    """Call `begins` before a kernel is compiled and `ends` after it while the `with` block runs.

    In a new installation the first call of a kernel compiles it, for up to a minute.
    """
    listener = _Listener(begins, ends)
    event.register("numba:compile", listener)
    try:
        yield
    finally:
        event.unregister("numba:compile", listener)


class _Listener(event.Listener):  # type: ignore[misc]
    """Counts nested compilations: a kernel compiles those that it calls, and only the outermost one is reported."""

    def __init__(self, begins: Callable[[], object], ends: Callable[[], object]) -> None:
        self._begins, self._ends, self._depth = begins, ends, 0

    def on_start(self, _: Any) -> None:
        self._depth += 1
        if self._depth == 1:
            self._begins()

    def on_end(self, _: Any) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._ends()


# Element types of arrays in groups: a kernel that gets an address must know the type of its data.


I32 = Annotated[Any, np.int32]
I64 = Annotated[Any, np.int64]
U8 = Annotated[Any, np.uint8]
U32 = Annotated[Any, np.uint32]
U64 = Annotated[Any, np.uint64]
F64 = Annotated[Any, np.float64]


def handle_of(group: tuple[Any, ...]) -> npt.NDArray[np.int64]:
    """Return address and length of each array of a NamedTuple, including those of nested NamedTuples.

    Numba unpacks a NamedTuple of arrays at each call, array by array, which takes longer than matching an
    event. A kernel rebuilds the NamedTuple from a handle (see `make_opener`) at no cost. Whoever keeps a
    handle must keep the arrays.
    """
    return np.array(
        [number for array in _list_arrays(group) for number in (array.ctypes.data, array.size)], np.int64
    )


def _list_arrays(group: tuple[Any, ...]) -> Iterator[npt.NDArray[Any]]:
    for name, value in zip(group._fields, group, strict=True):  # type: ignore[attr-defined]
        if isinstance(value, tuple):
            yield from _list_arrays(value)
            continue
        declared = _hints(type(group))[name].__metadata__[0]
        if value.dtype != declared or not value.flags.c_contiguous:
            raise TypeError(f"{type(group).__name__}.{name} is {value.dtype}, not {np.dtype(declared)}")
        yield value


@cache  # reading annotations takes longer than everything else
def _hints(group: type) -> dict[str, Any]:
    return get_type_hints(group, include_extras=True)


def _type_of(group: type, changing: Sequence[type]) -> Any:
    """Return Numba's type of a NamedTuple with arrays as declared."""
    members = []
    for hint in _hints(group).values():
        if isinstance(hint, type) and issubclass(hint, tuple):
            members.append(_type_of(hint, changing))
        else:
            dtype = from_dtype(np.dtype(hint.__metadata__[0]))
            members.append(types.Array(dtype, 1, "C", readonly=group not in changing))
    return types.BaseTuple.from_types(members, group)


def make_opener(group: type, changing: Sequence[type] = ()) -> Any:
    """Return a function for kernels that rebuilds a NamedTuple from its handle.

    Arrays of mapped files are read-only; those of the groups in `changing` are not.
    """
    wanted = _type_of(group, changing)

    @intrinsic  # type: ignore[untyped-decorator]
    def opened(typing: Any, handle: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
            data = arrayobj.make_array(signature.args[0])(context, builder, args[0]).data
            return _GroupBuilder(context, builder, data).make(wanted)

        return wanted(handle), generate

    return opened


class _GroupBuilder:
    """Builds arrays from the numbers of a handle, in order."""

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

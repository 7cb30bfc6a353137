"""Values that databases can hold, anywhere in a body."""

from __future__ import annotations

import tracemalloc

import pytest

from tidings.core.storable import check_members
from tidings.errors import InputError


@pytest.mark.parametrize(
    ("value", "pointer"),
    [
        ({"a": ["x", {"b/c~": "\x00"}]}, "/a/1/b~1c~0"),
        ({"a": {"\ud800": 1}}, "/a"),
        (["\udfff"], "/0"),
        ("\x00", ""),
    ],
)
def test_check_members_bad_text_is_refused_with_its_pointer(value: object, pointer: str) -> None:
    with pytest.raises(InputError) as refused:
        check_members(value)
    assert refused.value.pointer == pointer


def test_check_members_below_a_long_name_makes_no_pointers() -> None:
    """A pointer for each of 200,000 values below a name of megabytes would be copied for minutes."""
    value = {"k" * 2_000_000: ["x", {"y": "z"}] * 50}
    tracemalloc.start()
    try:
        check_members(value)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100_000

"""Pausing the garbage collector, and letting it go on whatever happens."""

from __future__ import annotations

import gc

import pytest

from tidings.core.gc_pause import without_gc


def test_it_goes_on_afterwards_whatever_happens() -> None:
    assert gc.isenabled()
    with pytest.raises(LookupError), without_gc():
        assert not gc.isenabled()
        with without_gc():
            assert not gc.isenabled()
        assert not gc.isenabled()
        raise LookupError
    assert gc.isenabled()


def test_who_switched_it_off_finds_it_off() -> None:
    gc.disable()
    try:
        with without_gc():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()

"""Pauses of the garbage collector."""

from __future__ import annotations

import gc

import pytest

from tidings.core.lifecycle import without_gc


def test_without_gc_resumes_after_error() -> None:
    assert gc.isenabled()
    with pytest.raises(LookupError), without_gc():
        assert not gc.isenabled()
        with without_gc():
            assert not gc.isenabled()
        assert not gc.isenabled()
        raise LookupError
    assert gc.isenabled()


def test_without_gc_leaves_disabled_collector_disabled() -> None:
    gc.disable()
    try:
        with without_gc():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()

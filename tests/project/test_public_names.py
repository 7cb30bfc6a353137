"""The names a program may use: all of them lead somewhere, and importing the package costs nothing."""

from __future__ import annotations

import pytest

import tidings


@pytest.mark.parametrize("name", tidings.__all__)
def test_every_public_name_leads_somewhere(name: str) -> None:
    assert getattr(tidings, name).__doc__


def test_the_names_are_told_once() -> None:
    assert sorted(tidings.__all__) == sorted(tidings._PLACES) == dir(tidings)


def test_what_is_not_public_is_not_there() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        tidings.nonsense  # noqa: B018

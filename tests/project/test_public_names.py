"""The public names: all of them resolve, and importing the package is cheap."""

from __future__ import annotations

import pytest

import tidings


@pytest.mark.parametrize("name", tidings.__all__)
def test_public_name_resolves_and_has_docstring(name: str) -> None:
    assert getattr(tidings, name).__doc__


def test_public_names_are_declared_once() -> None:
    assert sorted(tidings.__all__) == sorted(tidings._PLACES) == dir(tidings)


def test_unknown_name_of_package_raises_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        tidings.nonsense  # noqa: B018

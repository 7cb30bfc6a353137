"""A model that a word of the command line names. What reads it is imported then: `tidings --help` needs none of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidings.objects.placing import Placed


def read_model(what: str) -> Placed:
    """The model, or what is wrong with it."""
    from tidings.objects import model_files

    return model_files.read_model(what)

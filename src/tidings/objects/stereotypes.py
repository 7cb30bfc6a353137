"""The marks by name: which there are, what they are put on, and which tagged values they take."""

from __future__ import annotations

from tidings.guessing import near

_CLASS = frozenset(("label", "table", "key"))
_LINK = frozenset(("table", "column", "source_column", "target_column"))
_LIMITS = frozenset(("attributes", "kinds"))

CLASS = {"subscriber": _CLASS, "stored": _CLASS}
ASSOCIATION = {
    "implicit": _LIMITS | _LINK | {"told"},
    "propagates": _LIMITS | _LINK | {"towards"},
    "stored": _LINK,
}
ATTRIBUTE = {"stored": frozenset(("column",))}
NAMES = ("subscriber", "implicit", "propagates", "stored")


def ours(name: str) -> str | None:
    """The mark of a name: tools like to begin stereotypes with a capital."""
    return next((each for each in NAMES if each == name[:1].lower() + name[1:]), None)


def nearly_ours(name: str) -> str | None:
    """The mark that a stereotype was meant to be: `subscribr` is near one, `entity` is somebody else's."""
    return near(name.lower(), NAMES, 0.75)

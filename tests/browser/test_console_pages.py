"""Every page in a real browser: accessible, no wider than a phone, and without requests to other hosts."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from tests.browser.people import PHONE, Person, Place

OF_ANA = (
    "notifications",
    "notifications/1",
    "subscriptions",
    "subscriptions/new",
    "subscriptions/{table}",
    "subscriptions/{table}/edit",
    "destinations",
    "publish",
    "browse",
    "browse/schema",
    "browse/taxonomies",
    "browse/references",
    "browse/metadata",
    "browse/metadata/class/CycleProvider",
    "browse/metadata/resource?uri=http://example.org/doc.ttl%23host",
    "browse/model",
    "browse/rules",
    "nowhere",
)
OF_ROOT = ("notifications", "browse/references", "dead-letters", "dead-letters/1/mend", "pipeline", "tokens")
PAGES = {"ana": OF_ANA, "root": OF_ROOT}

DEVICES = {
    "desktop, light": {"color_scheme": "light"},
    "phone, dark": {"color_scheme": "dark", "viewport": PHONE, "has_touch": True},
    "desktop, dark": {"color_scheme": "dark"},
    "phone, light": {"color_scheme": "light", "viewport": PHONE, "has_touch": True},
}


SOME = frozenset(
    {"notifications", "subscriptions/new", "destinations", "browse/schema", "pipeline", "tokens"}
)
"""Pages that together have all colours: axe takes longer than anything else here."""

LIKE_OTHERS = frozenset(
    {"notifications/1", "browse", "browse/taxonomies", "browse/references", "browse/metadata", "nowhere"}
)
"""Pages made of the same parts as another one: axe checks them in `make browser`."""


def check_pages(place: Place, device: str, visitor: str, paths: Iterable[str]) -> None:
    """Check the login page, and then pages of a visitor."""
    with place.visited(**DEVICES[device]) as person:
        person.go("login")
        assert problems_of(person) == ""
        person.log_in(place.secrets[visitor])
        for path in paths:
            person.go(path.format(table=place.table))
            assert problems_of(person) == "", path


def problems_of(person: Person) -> str:
    return person.violations() + ("the page scrolls sideways" if person.overflows() else "")


@pytest.mark.parametrize("visitor", PAGES)
def test_console_pages_are_accessible(place: Place, visitor: str) -> None:
    check_pages(
        place, "desktop, light", visitor, [path for path in PAGES[visitor] if path not in LIKE_OTHERS]
    )


@pytest.mark.parametrize("visitor", PAGES)
def test_console_pages_fit_phone_and_dark_scheme(place: Place, visitor: str) -> None:
    with place.visited(visitor, **DEVICES["phone, dark"]) as person:
        for path in PAGES[visitor]:
            person.go(path.format(table=place.table))
            assert not person.overflows(), path
            assert person.squeezed() == person.unshaded() == [], path
            assert path not in SOME or person.violations(contrast_only=True) == "", path


@pytest.mark.long
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("visitor", PAGES)
def test_console_pages_are_accessible_on_any_device_and_scheme(
    place: Place, visitor: str, device: str
) -> None:
    check_pages(place, device, visitor, PAGES[visitor])

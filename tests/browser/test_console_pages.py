"""Every page as people meet it: axe finds nothing, nothing is wider than a phone, nothing comes from elsewhere."""

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

WAYS = {
    "desktop, light": {"color_scheme": "light"},
    "phone, dark": {"color_scheme": "dark", "viewport": PHONE, "has_touch": True},
    "desktop, dark": {"color_scheme": "dark"},
    "phone, light": {"color_scheme": "light", "viewport": PHONE, "has_touch": True},
}


SOME = frozenset(
    {"notifications", "subscriptions/new", "destinations", "browse/schema", "pipeline", "tokens"}
)
"""Pages that have all colours between them: axe takes longer than anything else here."""

LIKE_OTHERS = frozenset(
    {"notifications/1", "browse", "browse/taxonomies", "browse/references", "browse/metadata", "nowhere"}
)
"""Pages made of the same pieces as another one: axe looks at them in `make browser`."""


def looked_at(place: Place, way: str, who: str, paths: Iterable[str]) -> None:
    """Look at pages of somebody, and at the log-in."""
    with place.visited(**WAYS[way]) as person:
        person.go("login")
        assert wrong_with(person) == ""
        person.log_in(place.secrets[who])
        for path in paths:
            person.go(path.format(table=place.table))
            assert wrong_with(person) == "", path


def wrong_with(person: Person) -> str:
    return person.violations() + ("the page moves sideways" if person.overflows() else "")


@pytest.mark.parametrize("who", PAGES)
def test_no_page_shuts_people_out(place: Place, who: str) -> None:
    looked_at(place, "desktop, light", who, [path for path in PAGES[who] if path not in LIKE_OTHERS])


@pytest.mark.parametrize("who", PAGES)
def test_pages_fit_a_phone_and_the_dark(place: Place, who: str) -> None:
    with place.visited(who, **WAYS["phone, dark"]) as person:
        for path in PAGES[who]:
            person.go(path.format(table=place.table))
            assert not person.overflows(), path
            assert person.squeezed() == person.unshaded() == [], path
            assert path not in SOME or person.violations(contrast_only=True) == "", path


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("who", PAGES)
def test_no_page_shuts_people_out_in_any_way(place: Place, who: str, way: str) -> None:
    looked_at(place, way, who, PAGES[who])

"""Drafts by name and upwards, and what checking them costs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.support.executed_lines import count_executed_lines
from tidings.objects.model.draft import (
    DEFAULT_KEY,
    Draft,
    DraftAttribute,
    DraftClass,
    DraftMark,
    DraftView,
    ModelError,
    SourceText,
    find_mark,
    find_tag,
)
from tidings.objects.model.table_mapping import map_by_convention
from tidings.objects.model.validation import check_inheritance_cycles, validate_draft


def said(text: str) -> SourceText:
    return SourceText(text, f"at {text}")


@st.composite
def classes(draw: st.DrawFn) -> tuple[DraftClass, ...]:
    """Classes below any of each other, circles and several parents included, some with keys and subscribers."""
    names = [f"C{number}" for number in range(draw(st.integers(1, 7)))]
    known = st.sampled_from([*names, "unknown"])
    return tuple(
        DraftClass(
            said(name),
            (DraftAttribute(said("a")),) if draw(st.booleans()) else (),
            tuple(map(said, draw(st.lists(known, max_size=draw(st.sampled_from([1, 1, 1, 2])))))),
            (
                *((DraftMark("stored", "", {"key": said(f"key {name}")}),) if draw(st.booleans()) else ()),
                *((DraftMark("subscriber", ""),) if draw(st.booleans()) else ()),
            ),
        )
        for name in names
    )


@given(classes())
def test_view_inherits_what_going_up_finds(drafts: tuple[DraftClass, ...]) -> None:
    view = DraftView(Draft(drafts))
    for cls in drafts:
        name, above = cls.name.text, list(view.lineage(cls.name.text))
        keys = [found.text for each in above if (found := find_tag(each.marks, "key"))]
        assert view.key(cls) == (keys[0] if keys else DEFAULT_KEY)
        assert view.is_subscriber(name) == any(find_mark(each.marks, "subscriber") for each in above)
        for other in drafts:
            assert view.is_below(name, other.name.text) == (other in above)


@given(classes())
def test_run_in_no_circle_finds_each_class_that_is_above_itself(drafts: tuple[DraftClass, ...]) -> None:
    view = DraftView(Draft(drafts))
    in_circles = {
        cls.name.text
        for cls in drafts
        if any(cls.name.text in view.parents(each.name.text) for each in view.lineage(cls.name.text))
    }
    told = [finding.received or "" for finding in check_inheritance_cycles(view)]
    shown = {name for received in told for name in received.split(" → ")}
    assert in_circles <= shown and bool(told) == bool(in_circles)


@given(classes())
def test_have_attributes_once_refuses_what_a_class_above_has(drafts: tuple[DraftClass, ...]) -> None:
    view = DraftView(Draft(drafts))
    repeated = {
        cls.name.text
        for cls in drafts
        if cls.attributes and any(each.attributes for each in list(view.lineage(cls.name.text))[1:])
    }
    try:
        validate_draft(Draft(drafts))
        found = 0
    except ModelError as problem:
        found = str(problem).count("already has an attribute of this name")
    assert (found > 0) == bool(repeated)


def chain(length: int) -> Draft:
    """Each class below the one before it, with an attribute of its own."""
    return Draft(
        tuple(
            DraftClass(
                said(f"C{number}"),
                (DraftAttribute(said(f"a{number}")),),
                (said(f"C{number - 1}"),) if number else (),
            )
            for number in range(length)
        )
    )


def test_check_of_a_chain_twice_as_long_twice_the_work() -> None:
    short, long = (
        count_executed_lines(lambda: map_by_convention(draft, validate_draft(draft)), "tidings.objects")  # noqa: B023
        for draft in (chain(100), chain(200))
    )
    assert long < 2.1 * short


def circle(length: int, below: int) -> Draft:
    """Classes in a circle, and a chain of others below one of them."""
    last = [(f"B{number}", f"B{number - 1}" if number else "C0") for number in range(below)]
    pairs = [*((f"C{number}", f"C{(number + 1) % length}") for number in range(length)), *last]
    return Draft(tuple(DraftClass(said(name), (), (said(parent),)) for name, parent in pairs))


def test_check_for_circles_of_twice_as_many_classes_twice_the_work() -> None:
    short, long = (
        count_executed_lines(lambda: list(check_inheritance_cycles(DraftView(draft))), "tidings.objects")  # noqa: B023
        for draft in (circle(100, 100), circle(200, 200))
    )
    assert long < 2.1 * short

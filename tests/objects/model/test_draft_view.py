"""Views of drafts along inheritance, and the work that validation takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.executed_lines import count_executed_lines
from tidings.objects.model.draft import (
    DEFAULT_KEY,
    Draft,
    DraftAssociation,
    DraftAttribute,
    DraftClass,
    DraftEnd,
    DraftMark,
    Finding,
    ModelError,
    SourceText,
    find_mark,
    find_tag,
)
from tidings.objects.model.draft_view import DraftView
from tidings.objects.model.table_mapping import map_by_convention
from tidings.objects.model.validation import CHECKS, check_inheritance_cycles, validate_draft

Check = Callable[[DraftView], Iterable[Finding]]


def names(cls: DraftClass) -> set[str]:
    return {attribute.name.text for attribute in cls.attributes}


def source_text(text: str) -> SourceText:
    return SourceText(text, f"at {text}")


@st.composite
def classes(draw: st.DrawFn) -> tuple[DraftClass, ...]:
    """Draw classes with any parents, some with keys and subscribers.

    Cycles and several parents are included.
    """
    names = [f"C{number}" for number in range(draw(st.integers(1, 7)))]
    known = st.sampled_from([*names, "unknown"])
    return tuple(
        DraftClass(
            source_text(name),
            tuple(DraftAttribute(source_text(each)) for each in draw(st.sets(st.sampled_from("ab")))),
            tuple(map(source_text, draw(st.lists(known, max_size=draw(st.sampled_from([1, 1, 1, 2])))))),
            (
                *(
                    (DraftMark("stored", "", {"key": source_text(f"key {name}")}),)
                    if draw(st.booleans())
                    else ()
                ),
                *((DraftMark("subscriber", ""),) if draw(st.booleans()) else ()),
            ),
        )
        for name in names
    )


@given(classes())
def test_view_inheritance_agrees_with_lineage(drafts: tuple[DraftClass, ...]) -> None:
    view = DraftView(Draft(drafts))
    for cls in drafts:
        name, above = cls.name.text, list(view.lineage(cls.name.text))
        keys = [tag.text for each in above if (tag := find_tag(each.marks, "key"))]
        assert view.key(cls) == (keys[0] if keys else DEFAULT_KEY)
        assert view.is_subscriber(name) == any(find_mark(each.marks, "subscriber") for each in above)
        for other in drafts:
            assert view.is_below(name, other.name.text) == (other in above)


@given(classes())
def test_check_inheritance_cycles_reports_every_class_in_cycle(drafts: tuple[DraftClass, ...]) -> None:
    view = DraftView(Draft(drafts))
    in_cycles = {
        cls.name.text
        for cls in drafts
        if any(cls.name.text in view.parents(each.name.text) for each in view.lineage(cls.name.text))
    }
    reported = [finding.received or "" for finding in check_inheritance_cycles(view)]
    shown = {name for received in reported for name in received.split(" → ")}
    assert in_cycles <= shown and bool(reported) == bool(in_cycles)


@given(classes())
def test_validate_draft_inherited_attribute_repeated_is_rejected(drafts: tuple[DraftClass, ...]) -> None:
    view = DraftView(Draft(drafts))
    repeated = {
        cls.name.text
        for cls in drafts
        if any(names(cls) & names(each) for each in list(view.lineage(cls.name.text))[1:])
    }
    try:
        validate_draft(Draft(drafts))
        count = 0
    except ModelError as problem:
        count = sum(each.what.endswith("already has an attribute of this name") for each in problem.findings)
    assert (count > 0) == bool(repeated)


def chain(length: int) -> Draft:
    """Build classes that each extend the one before, with an attribute of their own."""
    return Draft(
        tuple(
            DraftClass(
                source_text(f"C{number}"),
                (DraftAttribute(source_text(f"a{number}")),),
                (source_text(f"C{number - 1}"),) if number else (),
            )
            for number in range(length)
        )
    )


def test_validate_draft_chain_of_double_length_takes_double_work() -> None:
    short, long = (
        count_executed_lines(lambda: map_by_convention(draft, validate_draft(draft)), "tidings.objects")  # noqa: B023
        for draft in (chain(100), chain(200))
    )
    assert long < 2.1 * short


def cycle(length: int, below: int = 0) -> Draft:
    """Build classes in a cycle, and a chain of others below one of them.

    All have an attribute of their own, a label and a limited association, and those of a quarter share further names.
    """
    last = [(f"B{number}", f"B{number - 1}" if number else "C0") for number in range(below)]
    pairs = [*((f"C{number}", f"C{(number + 1) % length}") for number in range(length)), *last]
    quarter = max(1, length // 4)
    classes = (
        DraftClass(
            source_text(name),
            (
                DraftAttribute(source_text(f"own {name}")),
                DraftAttribute(source_text(f"shared {number % quarter}")),
            ),
            (source_text(parent),),
            (DraftMark("subscriber", "", {"label": source_text(f"own {parent}")}),),
        )
        for number, (name, parent) in enumerate(pairs)
    )
    associations = (
        DraftAssociation(
            f"likes {name}",
            "",
            DraftEnd(source_text(name)),
            DraftEnd(source_text(parent)),
            (
                DraftMark(
                    "implicit",
                    "",
                    {"told": source_text("source"), "attributes": source_text(f"own {parent}")},
                ),
            ),
        )
        for name, parent in pairs
    )
    return Draft(tuple(classes), tuple(associations))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_check_cycle_of_double_length_takes_double_work(check: Check) -> None:
    short, long = (
        count_executed_lines(lambda: list(check(DraftView(draft))), "tidings")  # noqa: B023
        for draft in (cycle(100, 100), cycle(200, 200))
    )
    assert long < 2.1 * short


@given(classes(), st.sampled_from(["a", "b"]))
def test_view_attributes_agree_with_lineage(drafts: tuple[DraftClass, ...], attribute: str) -> None:
    view = DraftView(Draft(drafts))
    repeated = view.find_repeated(attribute)
    for cls in drafts:
        own, *above = view.lineage(cls.name.text)
        having = [each.name.text for each in above if attribute in names(each)]
        assert view.has_attribute(cls.name.text, attribute) == (attribute in names(own) or bool(having))
        assert (repeated.get(cls.name.text) in having) == (attribute in names(own) and bool(having))

"""The journal: one order without gaps, repeated ids, and group commit."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import cycle

import pytest

from tidings.errors import IdConflict, InputError
from tidings.events.schema.files import parts_of_text
from tidings.model import Publication
from tidings.store import journal
from tidings.store.encoding import format_instant
from tidings.store.journal import AppendBatch, AppendResult
from tidings.store.store import Store, open_store
from tidings.store.tokens import Token


def publication(id: str, body: bytes = b"{}", media_type: str = "application/json") -> Publication:
    return Publication(id, media_type, body)


def positions(results: Sequence[journal.AppendResult]) -> list[int]:
    return [result.position for result in results]


def append_each(store: Store, publications: Sequence[Publication]) -> list[journal.AppendOutcome]:
    [outcomes] = store.journal.append_batches([AppendBatch(publications)])
    assert outcomes is not None
    return outcomes


def test_append_positions_count_from_one(store: Store) -> None:
    assert store.journal.head() == 0
    assert positions(store.journal.append([publication("a"), publication("b")])) == [1, 2]
    assert positions(store.journal.append([publication("c")])) == [3]
    assert store.journal.head() == 3


def test_read_returns_appended_publications(store: Store) -> None:
    body = bytes(range(256))
    store.journal.append([publication("a", body, "application/octet-stream"), publication("é ☃", b"")])
    assert list(store.journal.read(0)) == [
        Publication("a", "application/octet-stream", body, 1),
        Publication("é ☃", "application/json", b"", 2),
    ]


def test_read_between_positions_in_pages(store: Store) -> None:
    store.journal.append(publication(f"p{i}") for i in range(1, 26))
    assert [one.position for one in store.journal.read(3, 21, page=7)] == list(range(4, 22))
    assert [one.position for one in store.journal.read(20, page=2)] == [21, 22, 23, 24, 25]
    assert list(store.journal.read(25, 25)) == []


def test_append_repeated_publication_keeps_its_position(store: Store) -> None:
    assert positions(store.journal.append([publication("a"), publication("a"), publication("b")])) == [
        1,
        1,
        2,
    ]
    assert positions(store.journal.append([publication("b"), publication("c"), publication("a")])) == [
        2,
        3,
        1,
    ]
    assert [one.id for one in store.journal.read(0)] == ["a", "b", "c"]


@pytest.mark.parametrize("other", [publication("a", b"[]"), publication("a", b"{}", "text/plain")])
def test_append_same_id_with_other_body_is_rejected(store: Store, other: Publication) -> None:
    store.journal.append([publication("a")])
    with pytest.raises(
        IdConflict, match=r"the id 'a' was already used for another publication \(position 1\)"
    ):
        store.journal.append([publication("b"), other])
    assert store.journal.head() == 1, "all or none"
    with pytest.raises(IdConflict):
        store.journal.append([publication("c"), publication("c", b"[]")])
    assert positions(store.journal.append([publication("d")])) == [2], "a rejected append leaves no gap"


def test_append_batches_rejected_publication_keeps_others(store: Store) -> None:
    store.journal.append([publication("a")])
    offered = [
        publication("b"),
        publication("a", b"[]"),
        publication("a"),
        publication("x\n"),
        publication("c"),
    ]
    b, taken, again, unprintable, c = append_each(store, offered)
    assert (b, again, c) == (
        AppendResult("b", 2, new=True),
        AppendResult("a", 1, new=False),
        AppendResult("c", 3, new=True),
    )
    assert isinstance(taken, IdConflict) and isinstance(unprintable, InputError)


@pytest.mark.parametrize("id", ["a\x00b", "line\nbreak", "\ud800", "x" * 501])
def test_append_unprintable_or_long_id_is_rejected(store: Store, id: str) -> None:
    with pytest.raises(InputError, match="a publication's id has"):
        store.journal.append([publication(id)])
    assert store.journal.head() == 0


def test_append_publications_without_id_get_unique_ids(store: Store) -> None:
    outcomes = append_each(store, [publication("") for _ in range(3000)])
    assert all(isinstance(one, journal.AppendResult) and one.new for one in outcomes)
    ids = [one.id for one in store.journal.read(0)]
    assert len(set(ids)) == 3000
    assert all(id.startswith("p-") for id in ids)


def test_append_generated_id_avoids_existing_ids(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """With only two random ids possible, equal bodies still become separate publications."""
    turns = cycle("01")
    monkeypatch.setattr("secrets.token_hex", lambda size: next(turns) * size)
    store.journal.append([publication("p-0000")])
    outcomes = append_each(store, [publication(""), publication(""), publication("p-1111")])
    assert [one.position for one in outcomes if isinstance(one, journal.AppendResult)] == [2, 3, 4]


def test_find_returns_publication_with_id(store: Store) -> None:
    store.journal.append([publication("a"), publication("b", b"[]")])
    assert store.journal.find("b") == Publication("b", "application/json", b"[]", 2)
    assert store.journal.find("c") is None


def test_append_twelve_thousand_publications_in_one_call(store: Store) -> None:
    count = 12_000
    assert positions(store.journal.append(publication(f"p{i}") for i in range(count))) == list(
        range(1, count + 1)
    )
    assert sum(1 for _ in store.journal.read(0)) == count


SHOP = Token("", "shop", None, frozenset({"publish"}), "")


def test_append_batches_each_caller_gets_its_outcomes(store: Store) -> None:
    token = store.tokens.keep("tdg_shop", SHOP).id
    store.journal.append([publication("known"), publication("taken")])
    offered = [
        publication("new"),
        publication("known"),
        publication("taken", b'{"a": 1}'),
        publication("new"),
    ]
    first_outcomes, second_outcomes = store.journal.append_batches(
        [AppendBatch(offered[:3], token, 0), AppendBatch(offered[3:], token, 0)]
    )
    assert first_outcomes is not None and second_outcomes is not None
    [first, known, taken], [again] = first_outcomes, second_outcomes
    assert (first, known) == (AppendResult("new", 3, True), AppendResult("known", 1, False))
    assert isinstance(taken, IdConflict)
    assert again == AppendResult("new", 3, False)
    assert [one.id for one in store.journal.read(0)] == ["known", "taken", "new"]


def test_append_batches_revoked_token_is_rejected(store: Store, url: str) -> None:
    """Another process may have revoked it."""
    good, revoked = (store.tokens.keep(f"tdg_{name}", SHOP).id for name in ("good", "gone"))
    both = [
        AppendBatch([publication("a")], revoked, 0),
        AppendBatch([publication("b")], good, 0),
    ]
    assert store.journal.append_batches(both) == [
        [AppendResult("a", 1, True)],
        [AppendResult("b", 2, True)],
    ]
    with open_store(url) as other:
        other.tokens.revoke(revoked)
    later = [
        AppendBatch([publication("c")], revoked, 0),
        AppendBatch([publication("d")], good, 0),
        AppendBatch([publication("e")], "t-99", 0),
    ]
    assert store.journal.append_batches(later) == [None, [AppendResult("d", 3, True)], None]
    assert store.journal.append_batches(later[:1]) == [None]
    assert store.journal.find("c") is None and store.journal.head() == 3


def test_append_batches_expired_token_is_rejected(url: str) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    with open_store(url, lambda: now) as store:
        end = format_instant(now + timedelta(hours=1))
        token = store.tokens.keep("tdg_shop", Token("", "shop", None, SHOP.scopes, "", end)).id
        assert store.journal.append_batches([AppendBatch([publication("a")], token, 0)]) == [
            [AppendResult("a", 1, True)]
        ]
        now += timedelta(hours=1)
        assert store.journal.append_batches([AppendBatch([publication("b")], token, 0)]) == [None]


def test_append_batches_other_schema_version_is_rejected(store: Store, url: str) -> None:
    token = store.tokens.keep("tdg_shop", SHOP).id
    with open_store(url) as other:
        other.schemas.extend(parts_of_text("attributes: {price: numeric}"))
    both = [
        AppendBatch([publication("a")], token, 0),
        AppendBatch([publication("b")], token, 1),
    ]
    assert store.journal.append_batches(both) == [None, [AppendResult("b", 1, True)]]

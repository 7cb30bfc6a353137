"""The way into the journal for those who come with a token: looked at in the transaction, for all of them at once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tidings.errors import IdTaken
from tidings.events.schema.files import parts_of_text
from tidings.model import Publication
from tidings.store.encoding import format_instant
from tidings.store.group_append import PreparedBatch
from tidings.store.journal import AppendResult
from tidings.store.store import Store, open_store
from tidings.store.tokens import Token

SHOP = Token("", "shop", None, frozenset({"publish"}), "")


def event(id: str, body: str = "{}") -> Publication:
    return Publication(id, "application/json", body.encode())


def test_each_gets_its_outcome_in_its_place(store: Store) -> None:
    token = store.tokens.keep("tdg_shop", SHOP).id
    store.journal.append([event("known"), event("taken")])
    offered = [event("new"), event("known"), event("taken", '{"a": 1}'), event("new")]
    together, alone = store.group_append.take(
        [PreparedBatch(offered[:3], token, 0), PreparedBatch(offered[3:], token, 0)]
    )
    assert together is not None and alone is not None
    [first, known, taken], [again] = together, alone
    assert (first, known) == (AppendResult("new", 3, True), AppendResult("known", 1, False))
    assert isinstance(taken, IdTaken)
    assert again == AppendResult("new", 3, False)
    assert [one.id for one in store.journal.read(0)] == ["known", "taken", "new"]


def test_what_comes_with_a_token_that_is_not_good_is_not_taken(store: Store, url: str) -> None:
    """Whoever revoked it, in whichever process."""
    good, gone = (store.tokens.keep(f"tdg_{name}", SHOP).id for name in ("good", "gone"))
    both = [PreparedBatch([event("a")], gone, 0), PreparedBatch([event("b")], good, 0)]
    assert store.group_append.take(both) == [[AppendResult("a", 1, True)], [AppendResult("b", 2, True)]]
    with open_store(url) as other:
        other.tokens.revoke(gone)
    later = [
        PreparedBatch([event("c")], gone, 0),
        PreparedBatch([event("d")], good, 0),
        PreparedBatch([event("e")], "t-99", 0),
    ]
    assert store.group_append.take(later) == [None, [AppendResult("d", 3, True)], None]
    assert store.group_append.take(later[:1]) == [None]
    assert store.journal.find("c") is None and store.journal.head() == 3


def test_what_comes_with_a_token_that_has_ended_is_not_taken(url: str) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    with open_store(url, lambda: now) as store:
        end = format_instant(now + timedelta(hours=1))
        token = store.tokens.keep("tdg_shop", Token("", "shop", None, SHOP.scopes, "", end)).id
        assert store.group_append.take([PreparedBatch([event("a")], token, 0)]) == [
            [AppendResult("a", 1, True)]
        ]
        now += timedelta(hours=1)
        assert store.group_append.take([PreparedBatch([event("b")], token, 0)]) == [None]


def test_what_was_checked_against_another_schema_is_not_taken(store: Store, url: str) -> None:
    token = store.tokens.keep("tdg_shop", SHOP).id
    with open_store(url) as other:
        other.schemas.extend(parts_of_text("attributes: {price: numeric}"))
    both = [PreparedBatch([event("a")], token, 0), PreparedBatch([event("b")], token, 1)]
    assert store.group_append.take(both) == [None, [AppendResult("b", 1, True)]]

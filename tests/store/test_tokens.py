"""Tokens: stored as hashes, valid until they expire or are revoked."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text

from tidings.errors import InputError
from tidings.store.encoding import format_instant
from tidings.store.store import Store, open_store
from tidings.store.tokens import Token

NEW = Token("", "phone", "ana", frozenset({"subscribe"}), "")
ADMINISTRATOR = Token("", "administrator", None, frozenset({"administer"}), "")


def test_find_by_secret_stores_only_hash(store: Store) -> None:
    kept = store.tokens.keep("tdg_secret", NEW)
    assert (kept.id, kept.subscriber, kept.scopes) == ("t-1", "ana", {"subscribe"})
    assert store.tokens.find("tdg_secret") == kept
    assert store.tokens.find("tdg_Secret") is None
    with store.database.read() as connection:
        rows = str(connection.execute(text("SELECT * FROM tokens")).all())
    assert "secret" not in rows


def test_find_revoked_token_returns_none(store: Store) -> None:
    kept = store.tokens.keep("tdg_secret", NEW)
    assert store.tokens.revoke(kept.id)
    assert store.tokens.find("tdg_secret") is None
    assert not store.tokens.revoke(kept.id)
    assert not store.tokens.revoke("t-99")
    [listed] = store.tokens.list("ana")
    assert listed.revoked is not None


def test_find_expired_token_returns_none(url: str) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    with open_store(url, lambda: now) as store:
        end = format_instant(now + timedelta(hours=1))
        store.tokens.keep("tdg_secret", Token("", "phone", "ana", NEW.scopes, "", end))
        other = store.tokens.keep("tdg_other", NEW)
        gone = store.tokens.keep("tdg_gone", NEW)
        store.tokens.revoke(gone.id)
        assert store.tokens.find("tdg_secret") is not None
        assert store.tokens.find_valid(["t-1", other.id, gone.id, "t-99"]) == {"t-1", other.id}
        now += timedelta(hours=1)
        assert store.tokens.find("tdg_secret") is None
        assert store.tokens.find_valid(["t-1", other.id]) == {other.id}


def test_find_all_returns_tokens_by_secret(store: Store) -> None:
    first, second = store.tokens.keep("tdg_1", NEW), store.tokens.keep("tdg_2", ADMINISTRATOR)
    tokens = store.tokens.find_all(["tdg_1", "tdg_2", "tdg_none", "tdg_1"])
    assert tokens == {"tdg_1": first, "tdg_2": second}
    assert store.tokens.find_all([]) == {}


def test_find_cached_returns_token_until_expired_or_revoked(url: str) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    with open_store(url, lambda: now) as store:
        end = format_instant(now + timedelta(hours=1))
        ending = store.tokens.keep("tdg_ending", Token("", "phone", "ana", NEW.scopes, "", end))
        other = store.tokens.keep("tdg_other", NEW)
        assert store.tokens.find_cached("tdg_other") is None, "not looked up yet"
        store.tokens.find_all(["tdg_ending", "tdg_other", "tdg_none"])
        assert (store.tokens.find_cached("tdg_ending"), store.tokens.find_cached("tdg_other")) == (
            ending,
            other,
        )
        assert store.tokens.find_cached("tdg_none") is None
        now += timedelta(hours=1)
        assert store.tokens.find_cached("tdg_ending") is None, "the cache knows when it expires"
        store.tokens.revoke(other.id)
        assert store.tokens.find("tdg_other") is None
        assert store.tokens.find_cached("tdg_other") is None


def test_token_cache_evicts_oldest_token(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidings.store.tokens.REMEMBERED", 2)
    secrets = ["tdg_1", "tdg_2", "tdg_3"]
    for secret in secrets:
        store.tokens.keep(secret, NEW)
        store.tokens.find(secret)
    assert [store.tokens.find_cached(secret) is not None for secret in secrets] == [False, True, True]


def test_list_returns_tokens_of_subscriber(store: Store) -> None:
    store.tokens.keep("tdg_1", NEW)
    store.tokens.keep("tdg_2", ADMINISTRATOR)
    assert [each.name for each in store.tokens.list()] == ["phone", "administrator"]
    assert [each.name for each in store.tokens.list("ana")] == ["phone"]
    assert store.tokens.list("bo") == []


def test_keep_first_concurrent_calls_create_one_token(store: Store) -> None:
    handed_out: list[str] = []

    def keep(number: int) -> Token | None:
        secret = f"tdg_{number}"
        return store.tokens.keep_first(secret, ADMINISTRATOR, lambda: handed_out.append(secret))

    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(keep, range(8)))
    assert len([each for each in made if each is not None]) == len(handed_out) == 1
    assert len(store.tokens.list()) == 1


@pytest.mark.parametrize(
    "token", [Token("", "", None, NEW.scopes, ""), Token("", "x", "a\nb", NEW.scopes, "")]
)
def test_keep_unprintable_name_is_rejected(store: Store, token: Token) -> None:
    with pytest.raises(InputError):
        store.tokens.keep("tdg_secret", token)
    assert store.tokens.list() == []

"""Tokens: kept by their hashes, good until they end or are revoked."""

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


def test_a_token_is_found_by_its_secret_and_only_its_hash_is_kept(store: Store) -> None:
    kept = store.tokens.keep("tdg_secret", NEW)
    assert (kept.id, kept.subscriber, kept.scopes) == ("t-1", "ana", {"subscribe"})
    assert store.tokens.find("tdg_secret") == kept
    assert store.tokens.find("tdg_Secret") is None
    with store.database.read() as connection:
        rows = str(connection.execute(text("SELECT * FROM tokens")).all())
    assert "secret" not in rows


def test_a_token_that_is_revoked_is_good_for_nothing(store: Store) -> None:
    kept = store.tokens.keep("tdg_secret", NEW)
    assert store.tokens.revoke(kept.id)
    assert store.tokens.find("tdg_secret") is None
    assert not store.tokens.revoke(kept.id)
    assert not store.tokens.revoke("t-99")
    [listed] = store.tokens.list("ana")
    assert listed.revoked is not None


def test_a_token_ends_when_its_time_is_over(url: str) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    with open_store(url, lambda: now) as store:
        end = format_instant(now + timedelta(hours=1))
        store.tokens.keep("tdg_secret", Token("", "phone", "ana", NEW.scopes, "", end))
        other = store.tokens.keep("tdg_other", NEW)
        gone = store.tokens.keep("tdg_gone", NEW)
        store.tokens.revoke(gone.id)
        assert store.tokens.find("tdg_secret") is not None
        assert store.tokens.good(["t-1", other.id, gone.id, "t-99"]) == {"t-1", other.id}
        now += timedelta(hours=1)
        assert store.tokens.find("tdg_secret") is None
        assert store.tokens.good(["t-1", other.id]) == {other.id}


def test_several_are_found_in_one_go(store: Store) -> None:
    one, other = store.tokens.keep("tdg_1", NEW), store.tokens.keep("tdg_2", ADMINISTRATOR)
    found = store.tokens.find_all(["tdg_1", "tdg_2", "tdg_none", "tdg_1"])
    assert found == {"tdg_1": one, "tdg_2": other}
    assert store.tokens.find_all([]) == {}


def test_what_was_found_is_remembered_until_it_is_found_to_be_good_no_more(url: str) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    with open_store(url, lambda: now) as store:
        end = format_instant(now + timedelta(hours=1))
        ending = store.tokens.keep("tdg_ending", Token("", "phone", "ana", NEW.scopes, "", end))
        other = store.tokens.keep("tdg_other", NEW)
        assert store.tokens.known("tdg_other") is None, "nobody has asked for it"
        store.tokens.find_all(["tdg_ending", "tdg_other", "tdg_none"])
        assert (store.tokens.known("tdg_ending"), store.tokens.known("tdg_other")) == (ending, other)
        assert store.tokens.known("tdg_none") is None
        now += timedelta(hours=1)
        assert store.tokens.known("tdg_ending") is None, "that it ends is known"
        store.tokens.revoke(other.id)
        assert store.tokens.find("tdg_other") is None
        assert store.tokens.known("tdg_other") is None


def test_no_more_are_remembered_than_memory_is_meant_for(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidings.store.tokens.REMEMBERED", 2)
    secrets = ["tdg_1", "tdg_2", "tdg_3"]
    for secret in secrets:
        store.tokens.keep(secret, NEW)
        store.tokens.find(secret)
    assert [store.tokens.known(secret) is not None for secret in secrets] == [False, True, True]


def test_those_of_a_subscriber(store: Store) -> None:
    store.tokens.keep("tdg_1", NEW)
    store.tokens.keep("tdg_2", ADMINISTRATOR)
    assert [each.name for each in store.tokens.list()] == ["phone", "administrator"]
    assert [each.name for each in store.tokens.list("ana")] == ["phone"]
    assert store.tokens.list("bo") == []


def test_the_first_token_is_made_once_also_by_several_at_once(store: Store) -> None:
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
def test_names_that_cannot_be_shown_are_refused(store: Store, token: Token) -> None:
    with pytest.raises(InputError):
        store.tokens.keep("tdg_secret", token)
    assert store.tokens.list() == []

"""Addresses of feeds: nobody can guess them, and the store alone does not tell them."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.stores.notified_store import KEY, Told
from tidings.errors import SetupError
from tidings.feeds.outbound.addresses import FeedTokens, load_feed_key


def test_a_token_stays_until_it_is_renewed(tmp_path: Path) -> None:
    told = Told(tmp_path)
    first = told.token
    assert FeedTokens(told.store, KEY).token("cy", "s-1") == first
    assert told.feeds.addresses.token("cy", "s-2") != first != told.feeds.addresses.token("cy")
    renewed = told.feeds.addresses.renew("cy", "s-1")
    assert renewed == told.token != first
    told.store.close()


def test_the_store_does_not_tell_a_token(tmp_path: Path) -> None:
    """Neither as it is nor to whoever has another key."""
    told = Told(tmp_path)
    token = told.token
    told.store.close()
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert token.encode() not in kept and KEY.hex().encode() not in kept
    again = Told(tmp_path)
    assert FeedTokens(again.store, bytes(32)).token("cy", "s-1") is None
    found = FeedTokens(again.store, bytes(32)).find(token)
    assert found and found.subscription == "s-1", "whoever has the address can still read"
    again.store.close()


def test_the_key_is_made_once_for_its_owner(tmp_path: Path) -> None:
    home = tmp_path / "new" / "home"
    with ThreadPoolExecutor(8) as pool:
        keys = set(pool.map(load_feed_key, [home] * 8))
    assert len(keys) == 1 and len(keys.pop()) == 32
    assert [path.name for path in home.iterdir()] == ["feeds.key"]
    assert stat.S_IMODE((home / "feeds.key").stat().st_mode) == 0o600


@pytest.mark.parametrize("text", ["", "00ff", "nonsense"])
def test_a_broken_key_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "feeds.key").write_text(text)
    with pytest.raises(SetupError, match="the key of the feeds' addresses is broken"):
        load_feed_key(tmp_path)

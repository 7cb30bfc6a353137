"""Addresses of feeds: they cannot be guessed, and the store alone does not reveal them."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.stores.notified_store import KEY, NotifiedStore
from tidings.errors import SetupError
from tidings.feeds.outbound.addresses import FeedTokens, load_feed_key


def test_token_is_stable_until_renewed(tmp_path: Path) -> None:
    notified_store = NotifiedStore(tmp_path)
    first = notified_store.token
    assert FeedTokens(notified_store.store, KEY).token("cy", "s-1") == first
    assert (
        notified_store.feeds.addresses.token("cy", "s-2")
        != first
        != notified_store.feeds.addresses.token("cy")
    )
    renewed = notified_store.feeds.addresses.renew("cy", "s-1")
    assert renewed == notified_store.token != first
    notified_store.store.close()


def test_token_cannot_be_read_from_store_without_key(tmp_path: Path) -> None:
    """Neither from its files nor with another key."""
    notified_store = NotifiedStore(tmp_path)
    token = notified_store.token
    notified_store.store.close()
    contents = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert token.encode() not in contents and KEY.hex().encode() not in contents
    reopened = NotifiedStore(tmp_path)
    assert FeedTokens(reopened.store, bytes(32)).token("cy", "s-1") is None
    address = FeedTokens(reopened.store, bytes(32)).find(token)
    assert address and address.subscription == "s-1", "the address itself stays valid"
    reopened.store.close()


def test_load_feed_key_concurrent_calls_create_one_private_key(tmp_path: Path) -> None:
    home = tmp_path / "new" / "home"
    with ThreadPoolExecutor(8) as pool:
        keys = set(pool.map(load_feed_key, [home] * 8))
    assert len(keys) == 1 and len(keys.pop()) == 32
    assert [path.name for path in home.iterdir()] == ["feeds.key"]
    assert stat.S_IMODE((home / "feeds.key").stat().st_mode) == 0o600


@pytest.mark.parametrize("text", ["", "00ff", "nonsense"])
def test_load_feed_key_invalid_file_is_rejected(tmp_path: Path, text: str) -> None:
    (tmp_path / "feeds.key").write_text(text)
    with pytest.raises(SetupError, match="the key of the feeds' addresses is broken"):
        load_feed_key(tmp_path)

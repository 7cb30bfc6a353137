"""URLs of personal feeds, and their secret tokens."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import re
import secrets
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from tidings.core.atomic_files import FILE, private_folder, sync, temporary_beside
from tidings.errors import InputError, SetupError
from tidings.feeds.sql.feed_addresses import FeedAddress
from tidings.operations.egress_policy import strip_credentials
from tidings.store.store import Store

TOKEN = r"[A-Za-z0-9_-]{32}"
_FEED = re.compile(rf"/feeds/(?P<token>{TOKEN})\.(?P<format>[a-z]+)")


@dataclass(frozen=True, slots=True)
class FeedUrls:
    """Builds URLs below the public URL of the service."""

    public_url: str

    def feed(self, token: str, format: str = "") -> str:
        return f"{self.public_url}/feeds/{token}" + (f".{format}" if format else "")

    def archive(self, token: str, page: int, format: str) -> str:
        return f"{self.public_url}/feeds/{token}/archive/{page}.{format}"

    def opml(self, token: str) -> str:
        return f"{self.public_url}/opml/{token}"

    @property
    def hub(self) -> str:
        return f"{self.public_url}/hub"

    @property
    def home(self) -> str:
        return f"{self.public_url}/"

    def topic(self, url: str) -> tuple[str, str] | None:
        """Return token and format of a feed URL; None if it is not a URL of this service."""
        path = url.removeprefix(self.public_url) if url.startswith(self.public_url + "/") else ""
        match = _FEED.fullmatch(path)
        return (match["token"], match["format"]) if match else None


def create_feed_urls(public_url: str) -> FeedUrls:
    """Check the public URL and build feed URLs below it. A password in it would be part of every feed."""
    try:
        parts = urlsplit(public_url)
        whole = parts.scheme in ("http", "https") and parts.hostname and "@" not in parts.netloc
        good = whole and not (parts.query or parts.fragment)
    except ValueError:
        good = None
    if not good or any(character.isspace() or not character.isprintable() for character in public_url):
        accepted = "an address such as https://tidings.example.org"
        received = repr(strip_credentials(public_url))
        raise InputError("no address that readers could use", received=received, accepted=accepted)
    return FeedUrls(public_url.rstrip("/"))


# Secret tokens of feeds, which the store does not contain.
#
# A token is derived from a key in the home folder, the owner and id of the subscription, and a nonce per address. The
# store has the nonce and the hash of the token, so a copy of the store reveals no feed. With the key, a subscriber can
# see the URL again. Random tokens stored as hashes could be shown only once, and tokens in clear text would be in
# backups.


KEY_FILE = "feeds.key"
KEY_BYTES, TOKEN_BYTES = 32, 24
ALL_FEEDS = ""
"""In the place of a subscription id: the list of all feeds of a subscriber."""


def load_feed_key(home: Path) -> bytes:
    """Load the key from the home folder; create it on first use, readable by its owner only."""
    path = home / KEY_FILE
    if not path.exists():
        _create_feed_key(path)
    text = path.read_text().strip()
    if not re.fullmatch(rf"([0-9a-f]{{2}}){{{KEY_BYTES}}}", text):
        hint = "put the old file back, or remove it: addresses made with it cannot be shown any more then"
        raise SetupError("the key of the feeds' addresses is broken", where=str(path), hint=hint)
    return bytes.fromhex(text)


def _create_feed_key(path: Path) -> None:
    """Create the key. The hard link fails if it exists: of two processes, one creates the key for both."""
    private_folder(path.parent)
    with temporary_beside(path, FILE) as draft:
        draft.write_text(secrets.token_hex(KEY_BYTES) + "\n")
        sync(draft)
        with suppress(FileExistsError):
            os.link(draft, path)


@dataclass(frozen=True, slots=True)
class FeedTokens:
    """The tokens of the feeds of a store."""

    store: Store
    key: bytes

    def token(self, subscriber: str, subscription: str = ALL_FEEDS) -> str | None:
        """Return the token of a feed, created on first use; None if it was made with another key."""
        return self.tokens(subscriber, [subscription])[subscription]

    def tokens(self, subscriber: str, subscriptions: Collection[str]) -> dict[str, str | None]:
        """Return the tokens of feeds; missing ones are created in one transaction."""
        numbers = self.store.feed_addresses.addresses(subscriber)
        missing = [name for name in subscriptions if name not in numbers]
        if missing:
            drawn = {name: secrets.token_hex(16) for name in missing}
            new = {
                name: (nonce, hash_token(self._make_token(subscriber, name, nonce)))
                for name, nonce in drawn.items()
            }
            numbers = self.store.feed_addresses.add(subscriber, new)
        return {name: self.token_of(numbers[name]) for name in subscriptions}

    def renew(self, subscriber: str, subscription: str = ALL_FEEDS) -> str | None:
        """Revoke the token of a feed and create a new one."""
        self.store.feed_addresses.revoke(subscriber, subscription)
        return self.token(subscriber, subscription)

    def token_of(self, address: FeedAddress) -> str | None:
        token = self._make_token(address.subscriber, address.subscription, address.nonce)
        return token if hmac.compare_digest(hash_token(token), address.hash) else None

    def find(self, token: str) -> FeedAddress | None:
        """Find an address by token, revoked or not. An unknown token costs the same: a hash and a query."""
        return self.store.feed_addresses.find(hash_token(token))

    def _make_token(self, subscriber: str, subscription: str, nonce: str) -> str:
        named = "\0".join((nonce, subscriber, subscription)).encode()
        drawn = hmac.digest(self.key, named, "sha256")[:TOKEN_BYTES]
        return base64.urlsafe_b64encode(drawn).decode()


def hash_token(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()

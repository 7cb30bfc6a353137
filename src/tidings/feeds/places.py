"""Where feeds are on the web, below the address under which readers reach this service."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from tidings.errors import InputError
from tidings.web.network import without_password

TOKEN = r"[A-Za-z0-9_-]{32}"
_FEED = re.compile(rf"/feeds/(?P<token>{TOKEN})\.(?P<format>[a-z]+)")


@dataclass(frozen=True, slots=True)
class Places:
    """Addresses below a public one."""

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
        """The token and the format in the address of a feed; nothing if it is no address of ours."""
        path = url.removeprefix(self.public_url) if url.startswith(self.public_url + "/") else ""
        found = _FEED.fullmatch(path)
        return (found["token"], found["format"]) if found else None


def places_at(public_url: str) -> Places:
    """The places below an address, which is checked. A password in it would stand in every feed."""
    try:
        parts = urlsplit(public_url)
        whole = parts.scheme in ("http", "https") and parts.hostname and "@" not in parts.netloc
        good = whole and not (parts.query or parts.fragment)
    except ValueError:
        good = None
    if not good or any(character.isspace() or not character.isprintable() for character in public_url):
        accepted = "an address such as https://tidings.example.org"
        received = repr(without_password(public_url))
        raise InputError("no address that readers could use", received=received, accepted=accepted)
    return Places(public_url.rstrip("/"))

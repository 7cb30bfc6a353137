"""Names and passwords in addresses that somebody types: `https://ann:secret@example.org/feed`.

They are taken out of the address at once, because addresses are listed, logged and published, and are sent to the
origin that they were typed for only: not to where it redirects, not to hubs, and not where everybody can read along.
"""

from __future__ import annotations

from base64 import b64encode
from urllib.parse import unquote, urlsplit

from tidings.errors import InputError
from tidings.web.network import Network, host_of


def login_of(url: str) -> tuple[str, str | None]:
    """An address without the name and the password in it, and those, as `name:password`."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url, None
    said, at, place = parts.netloc.rpartition("@")
    if not at:
        return url, None
    name, _, password = said.partition(":")
    if ":" in unquote(name):
        raise InputError(
            "a name with a colon in it cannot be sent", hint="nor could a server tell where it ends"
        )
    return parts._replace(netloc=place).geturl(), f"{unquote(name)}:{unquote(password)}"


def check_login(url: str, network: Network) -> None:
    """Refuse to send a password where others could read it; a machine that is inside is its owner's business."""
    if not url.startswith("https:") and not network.leads_inside(url):
        raise InputError("a password that everybody on the way could read", where=url, accepted="https://")


def authorization(login: str | None, typed: str, url: str) -> dict[str, str]:
    """The header for an address, if it is at the origin that the login was typed for."""
    if login is None or origin(typed) != origin(url):
        return {}
    return {"authorization": f"Basic {b64encode(login.encode()).decode()}"}


def origin(url: str) -> tuple[str, str, int]:
    """Scheme, host and port of an address."""
    return (urlsplit(url).scheme, *host_of(url))

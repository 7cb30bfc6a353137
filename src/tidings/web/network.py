"""The web as feeds, hubs and webhooks see it: which addresses one may lead to.

All of them are named by strangers, and a program that asks what strangers name can be sent to what only it can reach: a
router, a database, the metadata of a cloud. So an address inside, on this machine or in a private network, is only
asked if the owner allows it, and the owner of a feed does so by typing it. What such a feed leads to may be on the same
host, not elsewhere inside.

A name is resolved once, each of its addresses is looked at, and the connection goes to one that was looked at: a name
that changes its answer in between (DNS rebinding) gains nothing.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from urllib.parse import urlsplit

from tidings.errors import InputError, TidingsError

ACCEPTED = "http:// or https:// with a host"
PUBLIC = "public addresses"
ALLOWED = "whoever runs the service may allow others: delivery.private_callbacks = true in tidings.toml"

NAT64 = bytes.fromhex("0064ff9b0000000000000000")


class FetchProblem(TidingsError):
    """Something on the web could not be fetched.

    `after` is how many seconds the server asks to be left alone, `gone` whether it says that there is nothing any more.
    """

    def __init__(
        self, what: str, *, after: int | None = None, gone: bool = False, **more: str | None
    ) -> None:
        self.after, self.gone = after, gone
        super().__init__(what, **more)  # type: ignore[arg-type]


def resolve(host: str, port: int) -> list[str]:
    """The addresses of a host, as this machine sees them."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found))


def is_inside(address: str) -> bool:
    """Whether an address is anything but public: loopback, private, link-local, shared, reserved, multicast."""
    found = ip_address(address.partition("%")[0])
    return not all(each.is_global and not each.is_multicast for each in (found, *_carried(found)))


def _carried(address: IPv4Address | IPv6Address) -> list[IPv4Address]:
    """The IPv4 addresses that an IPv6 address stands for: `::ffff:10.0.0.1`, 6to4, Teredo, NAT64."""
    if isinstance(address, IPv4Address):
        return []
    carried = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    carried += [IPv4Address(address.packed[12:])] if address.packed[:12] == NAT64 else []
    return [each for each in carried if each is not None]


@dataclass(frozen=True, slots=True)
class Network:
    """How names become addresses, and which of those are inside. Tests have networks of their own."""

    resolve: Callable[[str, int], Sequence[str]] = resolve
    is_inside: Callable[[str], bool] = is_inside

    def leads_inside(self, url: str) -> bool:
        """Whether an address leads inside, as far as can be told now; a name that nobody knows does not."""
        host, port = host_of(url)
        try:
            return any(self.is_inside(each) for each in self.resolve(host, port))
        except (OSError, UnicodeError):
            return False

    def reach(self, url: str, inside_host: str | None = None) -> str:
        """An address to connect to, if none of the host's is inside, or the host is the one that may be."""
        host, port = host_of(url)
        try:
            found = self.resolve(host, port)
        except (OSError, UnicodeError) as error:  # names that are too long for any encoding of them
            raise _unknown_host(url, error) from error
        if host != inside_host and any(self.is_inside(each) for each in found):
            raise FetchProblem(
                "an address in a private network, which nobody here has allowed",
                where=url,
                received=", ".join(found),
                accepted=PUBLIC,
            )
        return found[0]


def _unknown_host(url: str, error: Exception) -> FetchProblem:
    if isinstance(error, socket.gaierror) and error.errno == socket.EAI_AGAIN:
        hint = "is this machine on the network?"
        return FetchProblem("the host's name cannot be looked up now", where=url, hint=hint)
    return FetchProblem("there is no host of this name", where=url, hint="is the address spelled right?")


@lru_cache(maxsize=1_000)
def host_of(url: str) -> tuple[str, int]:
    """The host and the port of an address, or a refusal of what is no address on the web."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise _no_address(url) from None
    if parts.scheme not in ("http", "https") or not host or not url.isprintable() or " " in url:
        raise _no_address(url)
    if parts.username is not None or parts.password is not None:
        hint = "everybody who sees the address would see them"
        raise InputError("an address with a name and a password in it is not kept", hint=hint)
    return host.lower(), port or {"http": 80, "https": 443}[parts.scheme]


def _no_address(url: str) -> InputError:
    received = repr(without_password(url)[:200])
    return InputError("no address on the web", received=received, accepted=ACCEPTED)


def without_password(url: str) -> str:
    """What may be an address, without what may be a name and a password: problems of feeds are listed, and logged."""
    return re.sub(r"//.*@", "//...@", url, flags=re.DOTALL)

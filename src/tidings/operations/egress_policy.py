"""Egress policy: protection against SSRF for requests of feeds, hubs and webhooks.

Their URLs come from untrusted users, who could send the service to hosts that only it can reach: a router, a database,
the metadata service of a cloud. So a private address, on this machine or in a private network, is allowed only by the
operator; an operator who adds a feed there allows its host. Redirects of that feed may lead to the same host, but to no
other private one.

A name is resolved once, all its addresses are checked, and the connection goes to one of them: a name that changes its
answer in between (DNS rebinding) gains nothing.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from urllib.parse import urlsplit

from tidings.errors import InputError, TidingsError

ACCEPTED_ADDRESS = "http:// or https:// with a host"
PUBLIC_ADDRESSES = "public addresses"
PRIVATE_ADDRESS = "the address is in a private network, which is not allowed here"
ALLOW_HINT = "the operator can allow others: delivery.private_callbacks = true in tidings.toml"

# The tables of `ipaddress` differ between Python versions: 3.11 to 3.13 disagree about 3fff::/20,
# 64:ff9b:1::/48 and 192.0.0.0/24. Sources: the IANA special-purpose address registries and RFC 6890.
SPECIAL_IPV4 = tuple(
    map(
        IPv4Network,
        (
            "0.0.0.0/8",  # this network
            "10.0.0.0/8",  # private
            "100.64.0.0/10",  # carrier-grade NAT
            "127.0.0.0/8",  # loopback
            "169.254.0.0/16",  # link-local, with the metadata services of clouds
            "172.16.0.0/12",  # private
            "192.0.0.0/24",  # IETF protocol assignments
            "192.0.2.0/24",  # documentation
            "192.88.99.0/24",  # relays of 6to4, withdrawn
            "192.168.0.0/16",  # private
            "198.18.0.0/15",  # benchmarks
            "198.51.100.0/24",  # documentation
            "203.0.113.0/24",  # documentation
            "224.0.0.0/4",  # multicast
            "240.0.0.0/4",  # reserved, and broadcast
        ),
    )
)
GLOBAL_UNICAST = IPv6Network("2000::/3")
"""All that IANA hands out of IPv6. Outside are loopback, private (fc00::/7), link-local (fe80::/10) and site-local
(fec0::/10) addresses, multicast, and the forms with an IPv4 address in them: mapped (::ffff:10.0.0.1), translated
(::ffff:0:10.0.0.1), compatible (::10.0.0.1) and a network's own NAT64 (64:ff9b:1::/48)."""
SPECIAL_IPV6 = tuple(
    map(
        IPv6Network,
        (
            "2001::/23",  # IETF protocol assignments, Teredo among them
            "2001:db8::/32",  # documentation
            "3ffe::/16",  # 6bone, given back
            "3fff::/20",  # documentation
        ),
    )
)
NAT64 = IPv6Network("64:ff9b::/96")
"""Prefix with which hosts without IPv4 reach the IPv4 address in the last 32 bits (RFC 6052): public if that is."""
SIX_TO_FOUR = IPv6Network("2002::/16")
ISATAP = (bytes.fromhex("00005efe"), bytes.fromhex("02005efe"))
"""Beginning of the interface identifier of an ISATAP address; an IPv4 address follows."""


class FetchProblem(TidingsError):
    """A request over HTTP failed.

    `after` is the server's `Retry-After` in seconds, `gone` is whether the resource was removed for good.
    """

    def __init__(
        self, what: str, *, after: int | None = None, gone: bool = False, **more: str | None
    ) -> None:
        self.after, self.gone = after, gone
        super().__init__(what, **more)  # type: ignore[arg-type]


def resolve(host: str, port: int) -> list[str]:
    """Return the addresses of a host, as this machine resolves it."""
    infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in infos))


def is_private(address: str) -> bool:
    """Return whether an IP address is anything but public; one with a zone (`fe80::1%eth0`) never is public."""
    host, zone, _ = address.partition("%")
    parsed = ip_address(host)
    return bool(zone) or not (
        _is_public_ipv4(parsed) if isinstance(parsed, IPv4Address) else _is_public_ipv6(parsed)
    )


def _is_public_ipv4(address: IPv4Address) -> bool:
    return not any(address in network for network in SPECIAL_IPV4)


def _is_public_ipv6(address: IPv6Address) -> bool:
    if address in NAT64:
        return _is_public_ipv4(IPv4Address(address.packed[12:]))
    if address not in GLOBAL_UNICAST or any(address in network for network in SPECIAL_IPV6):
        return False
    return all(map(_is_public_ipv4, _tunnelled_addresses(address)))


def _tunnelled_addresses(address: IPv6Address) -> Iterator[IPv4Address]:
    """Yield the IPv4 addresses to which an IPv6 address is tunnelled: those of 6to4 and ISATAP (RFC 5214, 6.1)."""
    if address in SIX_TO_FOUR:
        yield IPv4Address(address.packed[2:6])
    if address.packed[8:12] in ISATAP:
        yield IPv4Address(address.packed[12:])


@dataclass(frozen=True, slots=True)
class EgressPolicy:
    """Name resolution, and the set of inside addresses. Tests use networks of their own."""

    resolve: Callable[[str, int], Sequence[str]] = resolve
    is_inside: Callable[[str], bool] = is_private

    def leads_inside(self, url: str) -> bool:
        """Return whether a URL leads inside at the moment; an unknown name does not."""
        host, port = split_host(url)
        try:
            return any(self.is_inside(each) for each in self.resolve(host, port))
        except (OSError, UnicodeError):
            return False

    def reach(self, url: str, inside_host: str | None = None) -> Sequence[str]:
        """Return the addresses of a URL's host; raise if one is inside, unless the host is `inside_host`."""
        host, port = split_host(url)
        try:
            addresses = self.resolve(host, port)
        except (OSError, UnicodeError) as error:  # UnicodeError: the name is too long for IDNA
            raise _unknown_host(url, error) from error
        if host != inside_host and any(self.is_inside(address) for address in addresses):
            raise FetchProblem(
                PRIVATE_ADDRESS, where=url, received=", ".join(addresses), accepted=PUBLIC_ADDRESSES
            )
        return addresses


def _unknown_host(url: str, error: Exception) -> FetchProblem:
    if isinstance(error, socket.gaierror) and error.errno == socket.EAI_AGAIN:
        hint = "is this machine on the network?"
        return FetchProblem("the host's name cannot be resolved at the moment", where=url, hint=hint)
    return FetchProblem("there is no host of this name", where=url, hint="is the address spelled right?")


_HOST_AND_PORT = re.compile(r"(\[[^\[\]]+\]|[^\[\]:]+)(:[0-9]*)?")
"""Parsers disagree about the host of `http://127.0.0.1:1-]&[::1`."""


@lru_cache(maxsize=1_000)
def split_host(url: str) -> tuple[str, int]:
    """Return host and port of a URL, or raise if it is not a URL of http or https."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise _invalid_url(url) from None
    if parts.scheme not in ("http", "https") or not host or not url.isprintable() or " " in url:
        raise _invalid_url(url)
    if not _HOST_AND_PORT.fullmatch(parts.netloc.rpartition("@")[2]):
        raise _invalid_url(url)
    if parts.username is not None or parts.password is not None:
        hint = "remove them: everyone who sees the address would see them"
        raise InputError("an address cannot contain a user name and a password", hint=hint)
    return host.lower(), port or {"http": 80, "https": 443}[parts.scheme]


def is_web_address(url: str) -> bool:
    """Return whether `split_host` accepts an address."""
    try:
        split_host(url)
    except InputError:
        return False
    return True


def _invalid_url(url: str) -> InputError:
    received = repr(strip_credentials(url)[:200])
    return InputError("not a web address", received=received, accepted=ACCEPTED_ADDRESS)


def strip_credentials(url: str) -> str:
    """Remove possible credentials from a possible URL: problems of feeds are listed and logged."""
    return re.sub(r"//.*@", "//...@", url, flags=re.DOTALL)

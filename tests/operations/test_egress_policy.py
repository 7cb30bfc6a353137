"""Which addresses are public: by the registries of IANA, whatever the tables of this Python's `ipaddress` contain."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.operations.egress_policy import EgressPolicy, FetchProblem, is_private

SPECIAL_PURPOSE = (
    *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
    *("192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24"),
    *("203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4", "255.255.255.255/32"),
    *("::1/128", "::/128", "::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b:1::/48", "100::/64"),
    *(
        "100:0:0:1::/64",
        "2001::/23",
        "2001::/32",
        "2001:2::/48",
        "2001:10::/28",
        "2001:20::/28",
        "2001:db8::/32",
    ),
    *(
        "3ffe::/16",
        "3fff::/20",
        "5f00::/16",
        "4000::/3",
        "8000::/1",
        "fc00::/7",
        "fe80::/10",
        "fec0::/10",
        "ff00::/8",
    ),
)
"""The blocks of the special-purpose registries that are not globally reachable, and withdrawn ones."""

PRIVATE_IPV4 = (
    "10.0.0.1",
    "127.0.0.1",
    "169.254.169.254",
    "192.168.1.1",
    "100.64.0.1",
    "224.0.0.1",
    "0.0.0.0",
)
PUBLIC_IPV4 = (
    "93.184.216.34",
    "8.8.8.8",
    "100.128.0.0",
    "172.32.0.0",
    "192.0.1.0",
    "198.20.0.0",
    "223.255.255.255",
)

ipv4_numbers = st.integers(0, 2**32 - 1)
ipv6_numbers = st.integers(0, 2**128 - 1)


def carriers(address: str) -> list[str]:
    """Return IPv6 addresses that embed an IPv4 address, where the remaining bits do not matter."""
    embedded = int(IPv4Address(address))
    return [
        str(IPv6Address((0x64FF9B << 96) | embedded)),  # NAT64
        str(IPv6Address((0x2002 << 112) | (embedded << 80) | 1)),  # 6to4
        str(IPv6Address((0x26062800 << 96) | (0x5EFE << 32) | embedded)),  # ISATAP
        str(IPv6Address((0x26062800 << 96) | (0x02005EFE << 32) | embedded)),  # ISATAP, of a public address
    ]


@pytest.mark.parametrize("block", SPECIAL_PURPOSE)
def test_is_private_special_purpose_block_is_private(block: str) -> None:
    network = ip_network(block)
    assert is_private(str(network[0])) and is_private(str(network[-1]))


@pytest.mark.parametrize(
    "address",
    [
        *("fec0::1", "::127.0.0.1", "::ffff:0:10.0.0.1", "5f00::1", "3fff::1", "64:ff9b:1::a00:1"),
        *(
            "::ffff:10.0.0.1",
            "::ffff:8.8.8.8",
            "::8.8.8.8",
            "::ffff:0:8.8.8.8",
            "2001:0:4136:e378::f7f7:f7f7",
        ),
        *("fe80::1%eth0", "2606:2800:220:1::1%eth0", "ff02::1", "1fff::1", "192.0.0.9"),
    ],
)
def test_is_private_non_public_address_is_private(address: str) -> None:
    assert is_private(address)


@pytest.mark.parametrize(
    "address",
    [
        *PUBLIC_IPV4,
        "2000::1",
        "2606:2800:220:1::1",
        "2001:200::",
        "2a00:1450::1",
        "3fff:1000::",
        "2620:4f:8000::1",
    ],
)
def test_is_private_public_address_is_not_private(address: str) -> None:
    assert not is_private(address)


@pytest.mark.parametrize("address", PRIVATE_IPV4)
def test_is_private_embedded_private_ipv4_is_private(address: str) -> None:
    assert [each for each in carriers(address) if not is_private(each)] == []


@pytest.mark.parametrize("address", PUBLIC_IPV4)
def test_is_private_embedded_public_ipv4_is_not_private(address: str) -> None:
    assert [each for each in carriers(address) if is_private(each)] == []


@given(ipv6_numbers)
def test_is_private_ipv6_outside_global_unicast_and_nat64_is_private(number: int) -> None:
    address = IPv6Address(number)
    if address not in IPv6Network("2000::/3") and address not in IPv6Network("64:ff9b::/96"):
        assert is_private(str(address))


@given(st.sampled_from(SPECIAL_PURPOSE), ipv6_numbers)
def test_is_private_any_address_of_special_purpose_block_is_private(block: str, number: int) -> None:
    network = ip_network(block)
    assert is_private(str(network[number % network.num_addresses]))


@given(ipv4_numbers)
def test_is_private_agrees_for_embedded_and_plain_ipv4(number: int) -> None:
    address = str(IPv4Address(number))
    assert {is_private(each) for each in carriers(address)} == {is_private(address)}


@given(st.one_of(ipv4_numbers.map(IPv4Address), ipv6_numbers.map(IPv6Address)))
def test_is_private_covers_private_addresses_of_this_python(address: IPv4Address | IPv6Address) -> None:
    """A block that a later Python knows, and the tables of Tidings do not, would fail here."""
    if not address.is_global and address not in IPv6Network("64:ff9b::/96"):
        assert is_private(str(address))


@pytest.mark.parametrize(
    "host",
    [
        *(
            "127.1",
            "0x7f.1",
            "0177.0.0.1",
            "2130706433",
            "0x7f000001",
            "127.0.0.1.",
            "localhost",
            "LOCALHOST",
        ),
        *("①②⑦.0.0.1", "127。0。0。1", "[::ffff:127.0.0.1]", "[::1]", "[fe80::1%25lo]", "[::127.0.0.1]"),
        *("[fec0::1]", "[64:ff9b::7f00:1]", "0", "[::]"),
    ],
)
def test_reach_any_spelling_of_private_host_is_rejected(host: str) -> None:
    """The decision is about the resolved address; a spelling that the system does not resolve is no host."""
    with pytest.raises(FetchProblem, match=r"private network|no host of this name|cannot be looked up"):
        EgressPolicy().reach(f"http://{host}/")


@pytest.mark.parametrize("host", ["127.1", "0x7f.1", "2130706433"])
def test_resolve_short_spelling_gives_full_address(host: str) -> None:
    assert EgressPolicy().resolve(host, 80) == ["127.0.0.1"]

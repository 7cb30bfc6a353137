"""Free ports for servers that need a fixed port, because they cannot report the one that they chose."""

from __future__ import annotations

import random
import socket
from contextlib import suppress
from pathlib import Path

EPHEMERAL_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
"""The range of ports that the system assigns to sockets without a port."""


def free_port() -> int:
    """Return a port that is not in use and that the system does not assign: otherwise another test could receive it
    meanwhile and answer instead of a server that did not start.
    """
    first = int(EPHEMERAL_RANGE.read_text().split()[0]) if EPHEMERAL_RANGE.exists() else 32_768
    dice = random.SystemRandom()
    while True:
        port = dice.randrange(10_000, first)
        with suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port

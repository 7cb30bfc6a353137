"""Ports for servers that want to be told one, because they cannot be asked afterwards which one they got."""

from __future__ import annotations

import random
import socket
from contextlib import suppress
from pathlib import Path

GIVEN = Path("/proc/sys/net/ipv4/ip_local_port_range")
"""From which to which port the system gives to whoever wants any."""


def free_port() -> int:
    """One that nobody listens at, and that the system gives to nobody: else another test could have it meanwhile, and
    answer in the place of a server that did not come up.
    """
    first = int(GIVEN.read_text().split()[0]) if GIVEN.exists() else 32_768
    dice = random.SystemRandom()
    while True:
        port = dice.randrange(10_000, first)
        with suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port

"""A provider that follows a log one entry at a time and prints its position: a test kills it."""

from __future__ import annotations

import sys

from tidings.metadata.provider.provider import Provider
from tidings.metadata.replication.log_follower import LogFollower
from tidings.metadata.replication.routing import open_log
from tidings.store.store import open_store


def main(store_url: str, address: str) -> None:
    with open_store(store_url) as store:
        provider = Provider(store)
        opened_log = open_log(
            store, provider, *((address, None) if address.startswith("http") else (None, address))
        )
        assert opened_log is not None
        follower = LogFollower(store, provider, opened_log, page=1)
        while True:
            follower.step(wait=30)
            sys.stdout.write(f"{follower.position}\n")
            sys.stdout.flush()


main(*sys.argv[1:])

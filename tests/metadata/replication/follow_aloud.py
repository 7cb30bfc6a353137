"""A provider that follows a log, one entry at a time, and says where it is: to be killed by a test."""

from __future__ import annotations

import sys

from tidings.metadata.provider.provider import Provider
from tidings.metadata.replication.log_follower import LogFollower
from tidings.metadata.replication.routing import open_log
from tidings.store.store import open_store


def main(store_url: str, log: str) -> None:
    with open_store(store_url) as store:
        provider = Provider(store)
        found = open_log(store, provider, *((log, None) if log.startswith("http") else (None, log)))
        assert found is not None
        follower = LogFollower(store, provider, found, page=1)
        while True:
            follower.step(wait=30)
            sys.stdout.write(f"{follower.position}\n")
            sys.stdout.flush()


main(*sys.argv[1:])

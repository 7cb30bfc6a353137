"""A provider that follows a log, one entry at a time, and says where it is: to be killed by a test."""

from __future__ import annotations

import sys

from tidings.backbone.following import Follower
from tidings.backbone.joining import log_for
from tidings.provider import Provider
from tidings.store import open_store


def main(store_url: str, log: str) -> None:
    with open_store(store_url) as store:
        provider = Provider(store)
        found = log_for(store, provider, *((log, None) if log.startswith("http") else (None, log)))
        assert found is not None
        follower = Follower(store, provider, found, page=1)
        while True:
            follower.step(wait=30)
            sys.stdout.write(f"{follower.position}\n")
            sys.stdout.flush()


main(*sys.argv[1:])

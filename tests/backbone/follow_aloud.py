"""A provider that follows another one, one entry at a time, and says where it is: to be killed by a test."""

from __future__ import annotations

import sys

from tidings.backbone.following import Follower
from tidings.backbone.peer import Peer
from tidings.provider import Provider
from tidings.store import open_store


def main(store_url: str, leader: str) -> None:
    with open_store(store_url) as store, Peer(leader) as peer:
        follower = Follower(store, Provider(store), peer, page=1)
        while True:
            follower.step(wait=30)
            sys.stdout.write(f"{follower.position}\n")
            sys.stdout.flush()


main(*sys.argv[1:])

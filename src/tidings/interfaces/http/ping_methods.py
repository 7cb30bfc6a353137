"""What content systems call when something is new: `weblogUpdates.ping` and `weblogUpdates.extendedPing`.

WordPress and Drupal send them to every address in their list of update services. Which of the parameters is the feed
differs: WordPress puts it third, others fourth, and many name the site only. So every text in a ping may be the address
of a feed, or of the site that a feed belongs to. A ping makes a feed due that somebody here has added; it never adds
one, because pings come from anybody.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from xmlrpc.client import Fault

from tidings.feeds.polling import Poller
from tidings.interfaces.http.xml_rpc import WRONG_PARAMETERS
from tidings.store import Store

PINGS = ("weblogUpdates.ping", "weblogUpdates.extendedPing")
MOST_PARAMETERS = 6
LONGEST = 2_000
A_MINUTE = 30
"""How many pings an address may send."""


def ping(store: Store, poller: Poller, parameters: Sequence[Any]) -> dict[str, Any]:
    """What is answered to a ping, after the feeds that it means were made due."""
    addresses = _addresses(parameters)
    feeds = [feed for feed in store.feeds.named(addresses) if feed.next_poll is not None]
    if not feeds:
        return answered("No feed of this site is read here.", wrong=True)
    poller.hasten(feeds)
    return answered("Thanks for the ping.")


def answered(message: str, wrong: bool = False) -> dict[str, Any]:
    """The struct that callers expect."""
    return {"flerror": wrong, "message": message}


def _addresses(parameters: Sequence[Any]) -> list[str]:
    texts = [each for each in parameters if isinstance(each, str)]
    if not 2 <= len(parameters) <= MOST_PARAMETERS or len(texts) != len(parameters):
        raise Fault(WRONG_PARAMETERS, "a ping has a name, the address of a site, and perhaps that of a feed")
    given = [each.strip() for each in texts if len(each) <= LONGEST]
    return list(dict.fromkeys(same for each in given for same in _same(each)))


def _same(address: str) -> list[str]:
    """What people take for one address: with and without a slash at the end, with http and https."""
    bare = address.removeprefix("https://").removeprefix("http://").rstrip("/")
    return [f"{scheme}://{bare}{end}" for scheme in ("http", "https") for end in ("", "/")] if bare else []

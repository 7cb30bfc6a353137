"""The service from another program: typed calls over HTTP that try again, and a stream that is never interrupted.

    from tidings.client import Client

    with Client("http://127.0.0.1:8080", "tdg_...") as client:
        client.subscribe("price < 200")
        client.publish({"price": 180})
        for told in client.follow():
            print(told.sequence, told.content)

`AsyncClient` has the same calls, to be awaited. Nothing of the engine is imported: neither Spark nor Numba.
"""

from tidings.client.answers import NoAnswer
from tidings.client.async_client import AsyncClient
from tidings.client.client import Client
from tidings.client.delivered import Destination, Letter, Tested
from tidings.client.feeds import Feed
from tidings.client.retrying import Patience
from tidings.client.subscribed import Checked, Health, Preview, Previewed, Subscribed, Subscription
from tidings.client.taken import Taken
from tidings.client.told import Content, Page, Standing, Told
from tidings.errors import TextWarning

__all__ = [
    "AsyncClient",
    "Checked",
    "Client",
    "Content",
    "Destination",
    "Feed",
    "Health",
    "Letter",
    "NoAnswer",
    "Page",
    "Patience",
    "Preview",
    "Previewed",
    "Standing",
    "Subscribed",
    "Subscription",
    "Taken",
    "Tested",
    "TextWarning",
    "Told",
]

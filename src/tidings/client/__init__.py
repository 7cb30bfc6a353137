"""The service from another program: typed calls over HTTP that try again, and a stream that is never interrupted.

    from tidings.client import Client

    with Client("http://127.0.0.1:8080", "tdg_...") as client:
        client.subscribe("price < 200")
        client.publish({"price": 180})
        for told in client.follow():
            print(told.sequence, told.content)

`AsyncClient` has the same calls, to be awaited. Nothing of the engine is imported: neither Spark nor Numba.
"""

from tidings.client.async_client import AsyncClient
from tidings.client.client import Client
from tidings.client.destination_types import DeadLetter, Destination, DestinationTest
from tidings.client.feeds import Feed
from tidings.client.notifications import AckPosition, Content, NotificationPage, ReceivedNotification
from tidings.client.publications import PublishResult
from tidings.client.responses import NoAnswer
from tidings.client.retry import RetryPolicy
from tidings.client.subscriptions import (
    CheckResult,
    Health,
    Preview,
    PreviewMatch,
    SubscribeResult,
    Subscription,
)
from tidings.errors import TextWarning

__all__ = [
    "AckPosition",
    "AsyncClient",
    "CheckResult",
    "Client",
    "Content",
    "DeadLetter",
    "Destination",
    "DestinationTest",
    "Feed",
    "Health",
    "NoAnswer",
    "NotificationPage",
    "Preview",
    "PreviewMatch",
    "PublishResult",
    "ReceivedNotification",
    "RetryPolicy",
    "SubscribeResult",
    "Subscription",
    "TextWarning",
]

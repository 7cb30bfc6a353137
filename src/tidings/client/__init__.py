"""Client library: typed calls over HTTP with retries, and a notification stream that reconnects by itself.

    from tidings.client import Client

    with Client("http://127.0.0.1:8080", "tdg_...") as client:
        client.subscribe("price < 200")
        client.publish({"price": 180})
        for notification in client.follow():
            print(notification.sequence, notification.content)

`AsyncClient` has the same methods as coroutines. The package imports neither Spark nor Numba nor a database.
"""

from tidings.client.client import AsyncClient, Client
from tidings.client.records import (
    AckPosition,
    CheckResult,
    Content,
    DeadLetter,
    Destination,
    DestinationTest,
    Feed,
    Health,
    NotificationPage,
    Preview,
    PreviewMatch,
    PublishResult,
    ReceivedNotification,
    SubscribeResult,
    Subscription,
)
from tidings.client.transport import NoResponse, RetryPolicy
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
    "NoResponse",
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

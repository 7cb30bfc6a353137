"""Sender of the WebSub hub: posts new entries of a feed to a callback, in the format of its topic.

The delivery engine decides when, retries with backoff and gives up; entries that were given up are still in the feed.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping
from datetime import datetime

from tidings.delivery.delivery_policy import DeliveryPolicy
from tidings.delivery.destination_types.http_sender import HttpSender
from tidings.delivery.destination_types.sender import Refusal
from tidings.delivery.messages import Message
from tidings.delivery.sql.destination_store import Destination
from tidings.feeds.hub.hub import PURPOSE, Hub
from tidings.feeds.outbound.formats import FORMATS
from tidings.operations.egress_policy import EgressPolicy
from tidings.store.encoding import utc_now


class CallbackSender(HttpSender):
    """Sender to callbacks of the hub."""

    purpose = PURPOSE

    def __init__(
        self,
        hub: Hub,
        policy: DeliveryPolicy,
        network: EgressPolicy | None = None,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        super().__init__(policy, network, clock)
        self._hub, self._feeds = hub, hub.feeds

    def build_request(self, to: Destination, message: Message) -> tuple[Mapping[str, str], bytes] | Refusal:
        """Render the entries of a message as a feed. If the feed was removed, the callback gets a denial instead."""
        subscription = self._hub.store.find(to.id)
        if subscription is None:
            return Refusal("the lease has ended", gone=True)
        opened = self._hub.open_feed(subscription.address)
        if opened is None:
            self._hub.store.deny(subscription)
            return Refusal("the feed no longer exists", gone=True)
        format, urls = subscription.format, self._feeds.places
        body = self._feeds.news(opened, format, message.first, message.last)
        headers = {
            "content-type": FORMATS[format].content_type,
            "link": f'<{urls.hub}>; rel="hub", <{urls.feed(opened.token, format)}>; rel="self"',
        }
        if to.secret:
            signature = hmac.new(to.secret.encode(), body, "sha256").hexdigest()
            headers["x-hub-signature"] = f"sha256={signature}"
        return headers, body

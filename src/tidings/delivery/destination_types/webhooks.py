"""Webhooks according to Standard Webhooks: signed POST requests with a CloudEvent.

webhook-id          the id of the notification or digest, the same for every attempt; receivers drop duplicates
webhook-timestamp   the time of this attempt
webhook-signature   v1,... of id, timestamp and body; two signatures while a secret is being rotated
"""

from __future__ import annotations

import secrets
from base64 import b64encode
from collections.abc import Mapping
from datetime import UTC, datetime

from standardwebhooks.webhooks import Webhook

from tidings.cloud_events import MEDIA_TYPE
from tidings.delivery.destination_types.http_sender import HttpSender
from tidings.delivery.messages import Message
from tidings.delivery.sql.destination_store import Destination
from tidings.store.encoding import format_instant

SECRET_BYTES = 32


def generate_secret() -> str:
    """Generate a secret in the format of Standard Webhooks."""
    return "whsec_" + b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def valid_secrets(destination: Destination, moment: datetime) -> list[str]:
    """Return the secrets that sign at a moment: the current one, and the old one until its end."""
    until = destination.old_until
    old = destination.old_secret if until is not None and until > format_instant(moment) else None
    return [secret for secret in (destination.secret, old) if secret]


class Webhooks(HttpSender):
    """Sender of webhooks."""

    def build_request(self, to: Destination, message: Message) -> tuple[Mapping[str, str], bytes]:
        moment = datetime.now(UTC)
        headers = {
            "content-type": MEDIA_TYPE,
            "webhook-id": message.id,
            "webhook-timestamp": str(int(moment.timestamp())),
            "webhook-signature": " ".join(
                Webhook(secret).sign(message.id, moment, message.text)
                for secret in valid_secrets(to, self._clock())
            ),
        }
        return headers, message.text.encode()

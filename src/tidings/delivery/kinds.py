"""The kinds of destinations, and what sends to them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from tidings.delivery.apprise_targets import AppriseTargets, Describe, plainly
from tidings.delivery.kafka_topics import KafkaTopics
from tidings.delivery.rules import Rules
from tidings.delivery.sending import Sender
from tidings.delivery.webhooks import Webhooks
from tidings.store import utc
from tidings.web.network import Network

WEBHOOK, APPRISE, KAFKA = "webhook", "apprise", "kafka"


def senders(
    rules: Rules,
    network: Network | None = None,
    clock: Callable[[], datetime] = utc,
    describe: Describe = plainly,
) -> dict[str, Sender]:
    """A sender for each kind. Those of libraries that are not installed say so when they are asked."""
    return {
        WEBHOOK: Webhooks(rules, network, clock),
        APPRISE: AppriseTargets(rules, network, describe),
        KAFKA: KafkaTopics(rules),
    }

"""The kinds of destinations, and what sends to them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from tidings.delivery.destination_types.apprise_targets import AppriseTargets, Describer, describe_plainly
from tidings.delivery.destination_types.kafka_topics import KafkaTopics
from tidings.delivery.destination_types.sender import Sender
from tidings.delivery.destination_types.webhooks import Webhooks
from tidings.delivery.policy import DeliveryPolicy
from tidings.operations.egress_policy import EgressPolicy
from tidings.store.encoding import utc_now

WEBHOOK, APPRISE, KAFKA = "webhook", "apprise", "kafka"


def create_senders(
    rules: DeliveryPolicy,
    network: EgressPolicy | None = None,
    clock: Callable[[], datetime] = utc_now,
    describe: Describer = describe_plainly,
) -> dict[str, Sender]:
    """A sender for each kind. Those of libraries that are not installed say so when they are asked."""
    return {
        WEBHOOK: Webhooks(rules, network, clock),
        APPRISE: AppriseTargets(rules, network, describe),
        KAFKA: KafkaTopics(rules),
    }

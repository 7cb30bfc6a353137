"""Types of destinations, and the sender of each."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from tidings.delivery.destination_types.apprise_targets import AppriseTargets, Describer, describe_plainly
from tidings.delivery.destination_types.kafka_topics import KafkaTopics
from tidings.delivery.destination_types.sender import Sender
from tidings.delivery.destination_types.webhooks import Webhooks
from tidings.delivery.retry_policy import DeliveryPolicy
from tidings.operations.egress_policy import EgressPolicy
from tidings.store.encoding import utc_now

WEBHOOK, APPRISE, KAFKA = "webhook", "apprise", "kafka"


def create_senders(
    policy: DeliveryPolicy,
    network: EgressPolicy | None = None,
    clock: Callable[[], datetime] = utc_now,
    describe: Describer = describe_plainly,
) -> dict[str, Sender]:
    """Create a sender for each type. Senders whose library is not installed raise when they are used."""
    return {
        WEBHOOK: Webhooks(policy, network, clock),
        APPRISE: AppriseTargets(policy, network, describe),
        KAFKA: KafkaTopics(policy),
    }

"""Types of destinations, and their management by subscribers: add, change, test, rotate secrets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from time import monotonic

from tidings.delivery.delivery_policy import DeliveryPolicy
from tidings.delivery.destination_types.apprise_targets import AppriseTargets, Describer, describe_plainly
from tidings.delivery.destination_types.kafka_topics import KafkaTopics
from tidings.delivery.destination_types.sender import Sender
from tidings.delivery.destination_types.webhooks import Webhooks, generate_secret
from tidings.delivery.messages import Message, build_message
from tidings.delivery.sql.destination_store import Destination
from tidings.errors import InputError, LimitExceeded, NotFound, pointing
from tidings.model import Notification, Publication, Reason
from tidings.operations.egress_policy import EgressPolicy
from tidings.store import names
from tidings.store.encoding import format_instant, utc_now
from tidings.store.notifications.subscription_entries import NumberedNotification
from tidings.store.store import Store

WEBHOOK, APPRISE, KAFKA = "webhook", "apprise", "kafka"
TEST = "tidings.test"


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


@dataclass(frozen=True, slots=True)
class SampleResult:
    """Result of sending a sample: the HTTP status, if there was one, and the problem, if it was not accepted."""

    taken: bool
    seconds: float
    status: int | None = None
    problem: str | None = None


class Destinations:
    """The destinations of a store, checked before they are stored."""

    def __init__(
        self, store: Store, senders: dict[str, Sender], policy: DeliveryPolicy | None = None
    ) -> None:
        self.store, self.senders, self.policy = store, senders, policy or DeliveryPolicy()

    def add(
        self, subscriber: str, kind: str, target: str, subscription: str | None = None, name: str = ""
    ) -> Destination:
        """Add a destination. A webhook gets a secret."""
        sender = self._sender(kind)
        with pointing("/target"):
            host = sender.check(target)
        with pointing("/subscription"):
            self._check_subscription(subscriber, subscription)
        limit = self.policy.per_subscriber
        if self.store.destinations.count(subscriber) >= limit:
            raise LimitExceeded("too many destinations of one subscriber", accepted=f"at most {limit:,}")
        secret = generate_secret() if kind == WEBHOOK else None
        return self.store.destinations.add(
            Destination("", subscriber, subscription, kind, target, host, name, secret)
        )

    def find(self, id: str) -> Destination:
        destination = self.store.destinations.find(id)
        if destination is None:
            raise NotFound("there is no such destination", received=id)
        return destination

    def change(self, id: str, target: str | None = None, name: str | None = None) -> Destination:
        """Change the target or the name of a destination."""
        values = {} if name is None else {"name": name}
        if target is not None:
            sender = self._sender(self.find(id).kind)
            with pointing("/target"):
                host = sender.check(target)
            values |= {"target": target, "host": host}
        if values and not self.store.destinations.change(id, **values):
            raise NotFound("there is no such destination", received=id)
        return self.find(id)

    def rotate(self, id: str) -> Destination:
        """Replace the secret of a webhook; the old one signs, too, for a while. There are never more than two."""
        destination = self.find(id)
        if destination.secret is None:
            raise InputError("only webhooks have a secret", received=destination.kind)
        self.store.destinations.rotate(id, generate_secret(), self.policy.secret_overlap)
        return self.find(id)

    def mask_target(self, destination: Destination) -> str:
        """Return the target without secrets."""
        return self._sender(destination.kind).mask_target(destination.target)

    def test(self, destination: Destination) -> SampleResult:
        """Send a sample notification now."""
        start = monotonic()
        sent = self._sender(destination.kind).send(destination, [_build_sample(destination)], lambda: False)
        problem = sent.refusal.problem if sent.refusal else None
        return SampleResult(sent.refusal is None, monotonic() - start, sent.status, problem)

    def close(self) -> None:
        for sender in self.senders.values():
            sender.close()

    def _sender(self, kind: str) -> Sender:
        if kind not in self.senders:
            accepted = ", ".join(self.senders)
            raise InputError(
                "unknown type of destination", where="kind", received=kind[:40], accepted=accepted
            )
        return self.senders[kind]

    def _check_subscription(self, subscriber: str, id: str | None) -> None:
        """Raise if the subscriber has no such subscription; others' subscriptions are treated as missing."""
        if id is None:
            return
        names.check("a subscription's id", id)
        subscription = self.store.subscriptions.find(id)
        rule = self.store.metadata.rules_named([id]).get(id)
        owners = {subscription.subscriber if subscription else None, rule.owner if rule else None}
        if subscriber not in owners and not self.store.numbered_notifications.is_object_source(
            subscriber, id
        ):
            raise NotFound("there is no such subscription", received=id)


def _build_sample(destination: Destination) -> Message:
    """Build a message with a type of its own, so that receivers do not mistake it for a notification."""
    publication = Publication("p-sample", "application/json", b'{"title": "A sample", "price": 180}')
    because = (Reason("price < 200", 180, "/price"),)
    name = destination.subscription or "s-sample"
    notification = Notification(
        names.new_id("n-test"),
        destination.subscriber,
        0,
        name,
        publication.id,
        because,
        format_instant(utc_now()),
    )
    message = build_message(
        NumberedNotification(0, notification.time, notification), publication, len(publication.body)
    )
    return replace(message, event=message.event | {"type": TEST})

"""Delivery: notifications go where their subscribers want them, to webhooks, mail, chat and topics of Kafka.

destinations    what a destination may be, made and changed as its subscriber says
loop            takes lanes that are due, and has a few threads work on them
courier         works on one lane: makes messages of its entries, has them sent in order, says what became of it
messages        a notification, or a digest of several, as a message
webhooks, apprise_targets, kafka_topics    how a message is sent, by kind of destination
"""

from tidings.delivery.courier import Courier
from tidings.delivery.destinations import Destinations, Tested
from tidings.delivery.happened import Happened, Listener
from tidings.delivery.loop import DeliveryLoop
from tidings.delivery.rules import Rules

__all__ = ["Courier", "DeliveryLoop", "Destinations", "Happened", "Listener", "Rules", "Tested"]

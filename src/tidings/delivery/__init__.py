"""Delivery: notifications go where their subscribers want them, to webhooks, mail, chat and topics of Kafka.

destinations    what a destination may be, made and changed as its subscriber says
loop            takes lanes that are due, has a few threads work on them, and writes down what became of that
turns           what is done with lanes that were taken: some wait, some go together, little is read for many at once
line            who waits for a thread: no host has more of them than it may have
letters         dead letters, tried again
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

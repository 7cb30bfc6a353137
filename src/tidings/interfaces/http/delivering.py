"""Delivery beside the requests: to destinations, by the hub, and telling about objects."""

from __future__ import annotations

from contextlib import ExitStack, closing

from tidings.feeds.hub_loop import HubLoop
from tidings.interfaces.http.context import Context
from tidings.interfaces.http.delivered import Delivered
from tidings.operating.settings import Part
from tidings.service.delivering import delivery_loop, rules_of
from tidings.service.tell_loop import TellLoop
from tidings.service.telling import How


class Delivering(ExitStack):
    """Runs from `with` to the end of it, if this process is to deliver; else nothing does."""

    def __init__(self, context: Context) -> None:
        super().__init__()
        self._context = context

    def __enter__(self) -> Delivering:
        if self._context.has(Part.DELIVERY):
            self._begin()
        return self

    def _begin(self) -> None:
        context, objects = self._context, self._context.settings.objects
        hub = self.enter_context(
            HubLoop(context.hub, hear=lambda outcome: context.metrics.delivered("hub", outcome))
        )
        context.health.watch("hub", lambda: hub.problem, lambda: hub.problem is None)
        context.under_way.count(lambda: hub.under_way, "hub call")
        heard = self.enter_context(closing(Delivered(context)))
        deliveries = self.enter_context(
            delivery_loop(context.tidings.store, rules_of(context.settings), heard)
        )
        context.under_way.count(lambda: deliveries.under_way, "delivery")
        ended = "delivery has ended; the log says why"
        context.health.watch(
            "delivery",
            lambda: deliveries.problem or (None if deliveries.is_alive else ended),
            lambda: deliveries.is_alive,
        )
        if objects.tell:
            how = How(tell_author=objects.tell_author, publish=objects.publish)
            telling = self.enter_context(TellLoop(context.tidings, how))
            context.health.watch("objects", lambda: telling.problem, lambda: telling.problem is None)

"""XML-RPC messages, and the service of paper 002 (section 6): publish feeds, subscribe, read notifications.

    tidings.publish(feed)                    publish the items of a feed; some of them are subscriptions
    tidings.subscribe(subscriber, gql)       return the id, and warnings about the text
    tidings.list(subscriber)                 return the subscriptions
    tidings.unsubscribe(subscriber, id)      return whether it existed
    tidings.notifications(subscriber, after) return those after a number, as structs and as an RSS 1.0 feed

An item whose title begins with the word GQL is a subscription: its description is the query, its author the subscriber.
An edited item, identified by its feed and its guid or link, replaces the subscription. With a token that may only
publish, such items are refused: they could name anyone as their author.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any
from xmlrpc.client import Binary, Fault, dumps

from tidings.api.limits import load_limits
from tidings.api.xml_rpc.xml_rpc_call import read_call
from tidings.core.arguments import check_number, check_text
from tidings.errors import DecodeProblem, IdConflict, InputError, TextWarning
from tidings.feeds.inbound.items import publication_id
from tidings.feeds.outbound.addresses import FeedUrls
from tidings.feeds.outbound.entries import build_entry, urn
from tidings.feeds.outbound.feed import Feed as OutboundFeed
from tidings.feeds.outbound.feed import Links
from tidings.feeds.outbound.formats import render_rss1
from tidings.graphs.rdf.multipart import N_TRIPLES, n_triples
from tidings.graphs.syndication.feed import Feed as FeedFacts
from tidings.graphs.syndication.feed_parser import Item, items_of
from tidings.graphs.syndication.item_graph import DC, RSS1
from tidings.model import Notification, Subscription
from tidings.objects.watches import SubscriberNames
from tidings.parsers.parser_pool import Lane, run_isolated, run_isolated_for
from tidings.service.authorization import Caller, Scope
from tidings.service.subscriptions import SubscriptionService, build_wanted
from tidings.service.tidings import Tidings
from tidings.store.notifications.subscription_entries import NumberedNotification

MEDIA_TYPES = ("text/xml", "application/xml")
"""Others are refused: a page in a browser can send forms and plain text to any site, but not these."""

NOT_XML_RPC, NO_METHOD, WRONG_PARAMETERS, REFUSED, NOT_ALLOWED = -32700, -32601, -32602, 1, 2
"""Fault codes; the negative ones are the conventional codes of XML-RPC servers."""

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def parse_call(body: bytes, media_type: str, lane: Lane = Lane.CALLERS) -> tuple[str, tuple[Any, ...]]:
    """Return the method and the parameters of a call, or raise a fault."""
    try:
        method, parameters = run_isolated_for(lane, read_call, body, media_type)
    except DecodeProblem as problem:
        raise Fault(NOT_XML_RPC, str(problem).split("\n")[0]) from problem
    if not method:
        raise Fault(NOT_XML_RPC, "the call names no method")
    return method, parameters


def render_response(value: Any) -> bytes:
    """Encode the result of a method."""
    return dumps((_convert(value),), methodresponse=True, encoding="utf-8").encode()


def render_fault(problem: Fault) -> bytes:
    """Encode a fault."""
    return dumps(
        Fault(problem.faultCode, _replace_unencodable(problem.faultString)), encoding="utf-8"
    ).encode()


def _convert(value: Any) -> Any:
    """Convert a value: XML-RPC has no null and no integers beyond 32 bits, and XML not every character."""
    if isinstance(value, str):
        return _replace_unencodable(value)
    if isinstance(value, dict):
        return {_replace_unencodable(str(name)): _convert(member) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [_convert(item) for item in value]
    if isinstance(value, bytes):
        return Binary(value)
    if isinstance(value, int) and not -(2**31) <= value < 2**31:
        return float(value)
    return "" if value is None else value


def _replace_unencodable(text: str) -> str:
    return _NOT_IN_XML.sub("\ufffd", text)


GQL = "gql"
PUBLISH = "tidings.publish"
PAGE = 100
_SAYS_GQL = re.compile(r"\s*GQL\b")


class XmlRpcService:
    """The methods of the service, by name."""

    def __init__(self, tidings: Tidings, places: FeedUrls) -> None:
        self._tidings, self._places = tidings, places
        self.methods: Mapping[str, Callable[..., Any]] = {
            PUBLISH: self.publish,
            "tidings.subscribe": self.subscribe,
            "tidings.list": self.list,
            "tidings.unsubscribe": self.unsubscribe,
            "tidings.notifications": self.notifications,
        }

    def call(self, method: str, parameters: Sequence[Any], subscribes: bool = True) -> Any:
        """Call a method, or raise a fault. `subscribes` means that published items may be subscriptions."""
        try:
            if method == PUBLISH:
                return self.publish(*parameters, subscribes=subscribes)
            return self.methods[method](*parameters)
        except InputError as problem:
            raise Fault(REFUSED, problem.message()) from problem

    def publish(self, *arguments: Any, subscribes: bool = True) -> dict[str, Any]:
        """Publish the items of a feed; an item that was published before is not published again."""
        [feed] = _check_arguments("tidings.publish(feed)", arguments, 1, 1)
        facts, items = run_isolated(items_of, feed.encode("utf-8", "surrogatepass"), "")
        outcome: dict[str, list[Any]] = {"published": [], "subscribed": [], "refused": [], "warnings": []}
        for item in items:
            try:
                if not _is_subscription(item):
                    outcome["published"].append(self._publish_item(facts, item))
                    continue
                if not subscribes:
                    message = "the item is a subscription, and this token may only publish"
                    raise InputError(message, hint="call tidings.subscribe with a token that may subscribe")
                id = subscription_id(facts, item)
                if id in outcome["subscribed"]:
                    raise InputError("another subscription of this feed has the same guid or link")
                warnings = self._subscribe_item(item, id)
                outcome["subscribed"].append(id)
                outcome["warnings"].extend({"subscription": id} | warning.facts() for warning in warnings)
            except InputError as problem:
                outcome["refused"].append({"item": item.id, "reason": str(problem)})
        return outcome

    def _publish_item(self, facts: FeedFacts, item: Item) -> str:
        id = publication_id(facts.self_link or facts.link or "", item)
        try:
            return self._tidings.publish(n_triples(item.graph), id, N_TRIPLES).id
        except IdConflict:  # the id is a hash of the content: only volatile parts differ, such as the date
            return id

    def _subscribe_item(self, item: Item, id: str) -> tuple[TextWarning, ...]:
        """Create the subscription of an item, or change its text. Return the warnings about a new text."""
        values = {edge.property.text: edge.object.text for edge in reversed(item.graph.edges)}
        author, query = values.get(DC + "creator"), values.get(RSS1 + "description")
        if not author or not query:
            accepted = "a title that begins with GQL, the query in the description, an author"
            raise InputError("a subscription without an author or a query", accepted=accepted)
        subscriber, status = self._resolve(author), self._tidings.store.subscription_view.find(id)
        if status is None:
            return self._subscribing.subscribe(build_wanted(subscriber, query, GQL, id, None)).warnings
        existing = status.subscription
        if existing.subscriber != subscriber:
            message = f"this item is already a subscription of {existing.subscriber}"
            raise IdConflict(
                message, received=subscriber, hint="give the item another guid, or unsubscribe first"
            )
        if existing.text == query:
            return ()
        return self._subscribing.change(id, query, existing.within, subscriber).warnings

    def _resolve(self, name: str) -> str:
        """Return the name under which a subscriber is notified."""
        return SubscriberNames(self._tidings.store).resolve(name)

    @property
    def _subscribing(self) -> SubscriptionService:
        return self._tidings.subscribing(load_limits().of_subscriptions)

    def subscribe(self, *arguments: Any) -> dict[str, Any]:
        """Create a subscription in GQL, and return it with the warnings about its text."""
        name, text = _check_arguments("tidings.subscribe(subscriber, gql)", arguments, 2, 2)
        accepted = self._subscribing.subscribe(build_wanted(self._resolve(name), text, GQL, None, None))
        warnings = [warning.facts() for warning in accepted.warnings]
        return {"id": accepted.id, "subscriber": accepted.subscriber, "text": text, "warnings": warnings}

    def list(self, *arguments: Any) -> list[dict[str, Any]]:
        """Return the subscriptions of a subscriber."""
        [name] = _check_arguments("tidings.list(subscriber)", arguments, 1, 1)
        return [_subscription_struct(each) for each in self._tidings.subscriptions(self._resolve(name))]

    def unsubscribe(self, *arguments: Any) -> bool:
        """Delete a subscription of a subscriber."""
        name, id = _check_arguments("tidings.unsubscribe(subscriber, id)", arguments, 2, 2)
        return bool(self._tidings.unsubscribe([id], self._resolve(name)))

    def notifications(self, *arguments: Any) -> dict[str, Any]:
        """Return a page of a subscriber's notifications after a number."""
        usage = "tidings.notifications(subscriber, after)"
        name, *optional = _check_arguments(usage, arguments, 1, 2, kinds=(str, int))
        subscriber, after = self._resolve(name), optional[0] if optional else 0
        page = self._tidings.notifications(subscriber, after, PAGE)
        last = page[-1].sequence if page else after
        structs = [_notification_struct(notification) for notification in page]
        return {"notifications": structs, "last": last, "feed": self._render_feed(subscriber, page).decode()}

    def _render_feed(self, subscriber: str, page: Sequence[Notification]) -> bytes:
        places = self._places
        here = f"{places.home}RPC2"
        journal = self._tidings.store.journal
        entries = [
            build_entry(
                NumberedNotification(notification.sequence, notification.time, notification),
                journal.find(notification.publication),
            )
            for notification in page
        ]
        newest = datetime.fromisoformat(page[-1].time if page else "1970-01-01T00:00:00Z")
        return render_rss1(
            OutboundFeed(
                id=urn(subscriber),
                title=f"Tidings for {subscriber}",
                description=f"Notifications of {subscriber}",
                updated=newest,
                links=Links(self=here, current=here, hub=places.hub, home=places.home),
                entries=tuple(reversed(entries)),
            )
        )


def subscription_id(facts: FeedFacts, item: Item) -> str:
    """Return the id of an item's subscription: a hash of its feed and its guid or link, so that edits keep it."""
    source = facts.self_link or facts.link or facts.title or ""
    named = f"{len(source)}:{source}{item.id}".encode("utf-8", "surrogatepass")
    return "s-" + hashlib.blake2b(named, digest_size=10).hexdigest()


def _is_subscription(item: Item) -> bool:
    return item.title is not None and _SAYS_GQL.match(item.title) is not None


def may_call(caller: Caller, method: str, parameters: Sequence[Any]) -> bool:
    """Return whether a token allows a call: to publish, or for the subscriber in the first parameter."""
    if method == PUBLISH:
        return caller.has_scope(Scope.PUBLISH)
    subscriber = parameters[0] if parameters else None
    return isinstance(subscriber, str) and caller.may_act_for(subscriber)


def _subscription_struct(subscription: Subscription) -> dict[str, Any]:
    names = ("id", "subscriber", "language", "text")
    return {name: getattr(subscription, name) for name in names}


def _notification_struct(notification: Notification) -> dict[str, Any]:
    names = ("id", "sequence", "subscription", "publication", "kind", "time")
    members = {name: getattr(notification, name) for name in names}
    because = [
        {"predicate": each.predicate, "value": each.value, "at": each.at} for each in notification.because
    ]
    return {**members, "because": because, "bindings": notification.bindings or {}}


def _check_arguments(
    usage: str, arguments: Sequence[Any], least: int, most: int, kinds: tuple[type, ...] = (str, str)
) -> Sequence[Any]:
    """Return the arguments of a call, or refuse those of another type and those that cannot be stored."""
    have_types = all(type(argument) is kind for argument, kind in zip(arguments, kinds, strict=False))
    if not least <= len(arguments) <= most or not have_types:
        raise Fault(WRONG_PARAMETERS, f"wrong parameters; call {usage}")
    try:
        for argument in arguments:
            if isinstance(argument, str):
                check_text("an argument", argument)
            else:
                check_number("an argument", argument)
    except InputError as problem:
        raise Fault(WRONG_PARAMETERS, f"{problem.message()}; call {usage}") from problem
    return arguments

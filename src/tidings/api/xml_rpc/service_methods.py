"""The service of the paper (section 6) over XML-RPC: feeds go in, subscriptions are made, notifications come out.

    tidings.publish(feed)                    the items of a feed, each a publication; or a subscription
    tidings.subscribe(subscriber, gql)       its id, and the warnings about its text
    tidings.list(subscriber)                 the subscriptions
    tidings.unsubscribe(subscriber, id)      whether there was one
    tidings.notifications(subscriber, after) those behind a number, as structs and as an RSS 1.0 feed

An item is a subscription if its title begins with the word GQL. Its description is the query, its author the
subscriber; an edited item, known by its guid or link and its feed, replaces the subscription. Items published with a
token that is only for publishing are not subscriptions: anybody could be their author.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any
from xmlrpc.client import Fault

from tidings.api.v1.limits import load_limits
from tidings.api.xml_rpc.messages import REFUSED, WRONG_PARAMETERS
from tidings.core.storable import check_number, check_text
from tidings.errors import IdTaken, InputError, TextWarning
from tidings.feeds.inbound.items import publication_id
from tidings.feeds.outbound.addresses import FeedUrls
from tidings.feeds.outbound.entries import build_entry, urn
from tidings.feeds.outbound.feed import Feed as Shown
from tidings.feeds.outbound.feed import Links
from tidings.feeds.outbound.writers import render_rss1
from tidings.graphs.feed_formats.entry import DC, RSS1
from tidings.graphs.feed_formats.feed_parser import Feed as FeedFacts
from tidings.graphs.feed_formats.feed_parser import Item, items_of
from tidings.graphs.rdf.multipart import N_TRIPLES, n_triples
from tidings.model import Notification, Subscription
from tidings.objects.subscriber_names import SubscriberNames
from tidings.parsers.parser_pool import isolated
from tidings.service.authorization import Caller, Scope
from tidings.service.subscriptions import SubscriptionService, build_wanted
from tidings.service.tidings import Tidings
from tidings.store.entries import SubscriptionEntry

GQL = "gql"
PUBLISH = "tidings.publish"
PAGE = 100
_SAYS_GQL = re.compile(r"\s*GQL\b")


class XmlRpcService:
    """The methods, by name."""

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
        """What a method returns, or a fault with the reason. `subscribes` says whether items may be subscriptions."""
        try:
            if method == PUBLISH:
                return self.publish(*parameters, subscribes=subscribes)
            return self.methods[method](*parameters)
        except InputError as problem:
            raise Fault(REFUSED, problem.message()) from problem

    def publish(self, *given: Any, subscribes: bool = True) -> dict[str, Any]:
        """Publish the items of a feed; what was published before is not published again."""
        [feed] = _parameters("tidings.publish(feed)", given, 1, 1)
        facts, items = isolated(items_of, feed.encode("utf-8", "surrogatepass"), "")
        done: dict[str, list[Any]] = {"published": [], "subscribed": [], "refused": [], "warnings": []}
        for item in items:
            try:
                if not _is_subscription(item):
                    done["published"].append(self._published(facts, item))
                    continue
                if not subscribes:
                    what = "a subscription, and this token is only to publish"
                    raise InputError(what, hint="tidings.subscribe")
                id = subscription_id(facts, item)
                if id in done["subscribed"]:
                    raise InputError("another subscription of this feed has the same guid or link")
                warnings = self._subscribed(item, id)
                done["subscribed"].append(id)
                done["warnings"].extend({"subscription": id} | warning.facts() for warning in warnings)
            except InputError as problem:
                done["refused"].append({"item": item.id, "reason": str(problem)})
        return done

    def _published(self, facts: FeedFacts, item: Item) -> str:
        id = publication_id(facts.self_link or facts.link or "", item)
        try:
            return self._tidings.publish(n_triples(item.graph), id, N_TRIPLES).id
        except IdTaken:  # the id is made of the content: only the date differs, or what else is fleeting
            return id

    def _subscribed(self, item: Item, id: str) -> tuple[TextWarning, ...]:
        """Take the subscription of an item, or give the one that the item made earlier its new text. Return the
        warnings about a text that is new.
        """
        said = {edge.property.text: edge.object.text for edge in reversed(item.graph.edges)}
        author, query = said.get(DC + "creator"), said.get(RSS1 + "description")
        if not author or not query:
            accepted = "a title that begins with GQL, the query in the description, an author"
            raise InputError("a subscription that says not who or not what", accepted=accepted)
        subscriber, kept = self._resolved(author), self._tidings.store.subscription_view.find(id)
        if kept is None:
            return self._subscribing.subscribe(build_wanted(subscriber, query, GQL, id, None)).warnings
        if kept.subscription.subscriber != subscriber:
            what = f"this item is already a subscription of {kept.subscription.subscriber}"
            raise IdTaken(what, received=subscriber, hint="give the item another guid, or unsubscribe first")
        if kept.subscription.text == query:
            return ()
        return self._subscribing.change(id, query, kept.subscription.within, subscriber).warnings

    def _resolved(self, named: str) -> str:
        """Return the name under which a subscriber is notified."""
        return SubscriberNames(self._tidings.store).resolve(named)

    @property
    def _subscribing(self) -> SubscriptionService:
        return self._tidings.subscribing(load_limits().of_subscriptions)

    def subscribe(self, *given: Any) -> dict[str, Any]:
        """Take a subscription in GQL, and answer it with the warnings about its text."""
        named, text = _parameters("tidings.subscribe(subscriber, gql)", given, 2, 2)
        made = self._subscribing.subscribe(build_wanted(self._resolved(named), text, GQL, None, None))
        warnings = [warning.facts() for warning in made.warnings]
        return {"id": made.id, "subscriber": made.subscriber, "text": text, "warnings": warnings}

    def list(self, *given: Any) -> list[dict[str, Any]]:
        """The subscriptions of a subscriber."""
        [named] = _parameters("tidings.list(subscriber)", given, 1, 1)
        return [_listed(one) for one in self._tidings.subscriptions(self._resolved(named))]

    def unsubscribe(self, *given: Any) -> bool:
        """Withdraw a subscriber's subscription."""
        named, id = _parameters("tidings.unsubscribe(subscriber, id)", given, 2, 2)
        return bool(self._tidings.unsubscribe([id], self._resolved(named)))

    def notifications(self, *given: Any) -> dict[str, Any]:
        """A subscriber's notifications behind a number, at most a page of them."""
        named, *rest = _parameters("tidings.notifications(subscriber, after)", given, 1, 2, kinds=(str, int))
        subscriber, after = self._resolved(named), rest[0] if rest else 0
        found = self._tidings.notifications(subscriber, after, PAGE)
        last = found[-1].sequence if found else after
        told = [_told(one) for one in found]
        return {"notifications": told, "last": last, "feed": self._feed(subscriber, found).decode()}

    def _feed(self, subscriber: str, found: Sequence[Notification]) -> bytes:
        places = self._places
        here = f"{places.home}RPC2"
        journal = self._tidings.store.journal
        entries = [
            build_entry(SubscriptionEntry(one.sequence, one.time, one), journal.find(one.publication))
            for one in found
        ]
        newest = datetime.fromisoformat(found[-1].time if found else "1970-01-01T00:00:00Z")
        return render_rss1(
            Shown(
                id=urn(subscriber),
                title=f"Tidings for {subscriber}",
                description=f"What {subscriber} is told",
                updated=newest,
                links=Links(self=here, current=here, hub=places.hub, home=places.home),
                entries=tuple(reversed(entries)),
            )
        )


def subscription_id(facts: FeedFacts, item: Item) -> str:
    """Return the id of an item's subscription: made of its feed and its guid or link, so that edits keep it."""
    source = facts.self_link or facts.link or facts.title or ""
    named = f"{len(source)}:{source}{item.id}".encode("utf-8", "surrogatepass")
    return "s-" + hashlib.blake2b(named, digest_size=10).hexdigest()


def _is_subscription(item: Item) -> bool:
    return item.title is not None and _SAYS_GQL.match(item.title) is not None


def may_call(caller: Caller, method: str, parameters: Sequence[Any]) -> bool:
    """Whether a token is for a method: to publish, or for what is the caller's own, the subscriber named first."""
    if method == PUBLISH:
        return caller.may(Scope.PUBLISH)
    named = parameters[0] if parameters else None
    return isinstance(named, str) and caller.stands_for(named)


def _listed(one: Subscription) -> dict[str, Any]:
    return {"id": one.id, "subscriber": one.subscriber, "language": one.language, "text": one.text}


def _told(one: Notification) -> dict[str, Any]:
    because = [{"predicate": each.predicate, "value": each.value, "at": each.at} for each in one.because]
    return {
        "id": one.id,
        "sequence": one.sequence,
        "subscription": one.subscription,
        "publication": one.publication,
        "kind": one.kind,
        "time": one.time,
        "because": because,
        "bindings": one.bindings or {},
    }


def _parameters(
    usage: str, given: Sequence[Any], least: int, most: int, kinds: tuple[type, ...] = (str, str)
) -> Sequence[Any]:
    """Return the arguments of a call, or refuse those of another kind and those that no database holds."""
    right = all(type(each) is kind for each, kind in zip(given, kinds, strict=False))
    if not least <= len(given) <= most or not right:
        raise Fault(WRONG_PARAMETERS, f"called as {usage}")
    try:
        for each in given:
            if isinstance(each, str):
                check_text("an argument", each)
            else:
                check_number("an argument", each)
    except InputError as problem:
        raise Fault(WRONG_PARAMETERS, f"{problem.message()}; called as {usage}") from problem
    return given

"""Poller of feeds: fetches feeds that are due, publishes new items, and schedules the next poll.

    with Poller(store) as poller:
        poller.add("http://example.org/feed")
        poller.follow(print)

A feed that cannot be fetched or parsed does not affect others: the error is stored with it, and it is retried with
exponential backoff.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from random import Random
from threading import Event

from tidings.core.lifecycle import Closeable, Worker
from tidings.errors import InputError, Overloaded, TidingsError
from tidings.feeds.inbound import response, schedule, websub
from tidings.feeds.inbound.feed_client import FeedClient, FetchPolicy, check_login, split_login
from tidings.feeds.inbound.items import ItemsByKey, plan_items
from tidings.feeds.sql.polled_feeds import PolledFeed
from tidings.feeds.sql.polled_items import ItemCounts
from tidings.graphs.syndication.feed import Feed, show_omitted
from tidings.operations.egress_policy import EgressPolicy, FetchProblem
from tidings.operations.http_client import HttpResponse
from tidings.store.encoding import Clock, format_instant, utc_now
from tidings.store.store import Store

CLAIMED = timedelta(minutes=10)
"""Time for which a feed is reserved for the process that polls it, even if that process is lost."""

APART = timedelta(minutes=1)
"""The shortest time between two polls of a feed, however often it is pinged."""

_log = logging.getLogger("tidings.feeds")

MAX_WAIT_SECONDS = 5.0
"""Interval of checks for changes by other processes: new feeds and pings."""


@dataclass(frozen=True, slots=True)
class PollResult:
    """Result of a poll: the feed now (None if it was removed), item counts (None if unchanged), or the problem."""

    url: str
    feed: PolledFeed | None
    counts: ItemCounts | None = None
    problem: TidingsError | None = None


PollListener = Callable[[PollResult], object]


class Poller(Closeable):
    """Polls the feeds of a store. Several processes may; each feed is polled by one of them at a time.

    `public_url` is where hubs reach this machine; without it no hub is used. Tests replace clock, network and chance.
    """

    def __init__(
        self,
        store: Store,
        policy: FetchPolicy | None = None,
        *,
        public_url: str | None = None,
        clock: Clock = utc_now,
        network: EgressPolicy | None = None,
        chance: Random | None = None,
    ) -> None:
        self._store, self._clock, self._public_url = store, clock, public_url
        self._client = FeedClient(policy, network)
        self._chance = chance or Random()
        self._wake = Event()
        self._stopped = False

    def add(self, url: str) -> PollResult:
        """Add a feed and poll it at once; raise, and do not add it, if it cannot be read.

        The URL was typed by the owner: it may lead to a private network, and contain a name and a password.
        """
        url, login = split_login(url)
        inside, moment = self._client.egress.leads_inside(url), self._clock()
        if login is not None:
            check_login(url, self._client.egress)
        existing = self._store.polled_feeds.find(url)
        polled = self._poll(
            self._store.polled_feeds.add(url, moment, inside, moment + CLAIMED, login), moment
        )
        if polled.problem is not None and existing is None:
            self._store.polled_feeds.remove(url)
            raise polled.problem
        return polled

    def poll_due(self, only: Collection[int] | None = None) -> Iterator[PollResult]:
        """Poll the feeds that are due: hosts in parallel, the feeds of one host one after the other."""
        due = [
            feed
            for feed in self._store.polled_feeds.due(self._clock())
            if only is None or feed.number in only
        ]
        pool = ThreadPoolExecutor(self._client.policy.at_once)
        try:
            jobs = [pool.submit(self._poll_all, feeds) for feeds in _by_host(due)]
            for job in as_completed(jobs):
                yield from job.result()
        except KeyboardInterrupt:
            self.stop()
            raise
        finally:
            pool.shutdown(cancel_futures=True)

    def _poll_all(self, feeds: Sequence[PolledFeed]) -> list[PollResult]:
        polled = [self.poll(feed) for feed in feeds if not self._stopped]
        return [each for each in polled if each is not None]

    def follow(self, listener: PollListener) -> None:
        """Poll feeds as they become due, until `stop`."""
        while not self._stopped:
            self.step(listener)

    def step(self, listener: PollListener) -> None:
        """Poll the feeds that are due, and wait until the next one is."""
        for result in self.poll_due():
            listener(result)
        self._wake.wait(self._seconds())
        if not self._stopped:
            self._wake.clear()

    def next_due(self) -> str | None:
        """Return when the next feed is due."""
        return self._store.polled_feeds.next_due()

    def _seconds(self) -> float:
        """Return the seconds until the next feed is due, at most `MAX_WAIT_SECONDS`."""
        due = self.next_due()
        left = (datetime.fromisoformat(due) - self._clock()).total_seconds() if due else MAX_WAIT_SECONDS
        return min(MAX_WAIT_SECONDS, max(0.0, left))

    def stop(self) -> None:
        """Stop `follow` and cancel requests; their feeds are due again when their claims end."""
        self._stopped = True
        self._wake.set()
        self._client.end()

    def make_due(self, feeds: Iterable[PolledFeed]) -> None:
        """Make feeds due after a ping for them."""
        self._store.polled_feeds.make_due(feeds, self._clock(), APART)
        self._wake.set()

    def poll(self, feed: PolledFeed) -> PollResult | None:
        """Poll a feed now; return None if another process polls it."""
        moment = self._clock()
        claimed = self._store.polled_feeds.claim(feed, moment, moment + CLAIMED)
        return self._poll(claimed, moment) if claimed else None

    def _poll(self, feed: PolledFeed, moment: datetime) -> PollResult:
        try:
            answer, read = self._fetch_feed(feed, moment)
        except (FetchProblem, InputError, Overloaded) as problem:
            if self._stopped:
                return PollResult(feed.url, feed, problem=problem)
            return self._failed(feed, problem, moment)
        except Exception as error:  # noqa: BLE001  a bug with one feed must not stop the others
            _log.error("reading %s failed", feed.url, exc_info=error)
            message, hint = "reading the feed failed", "this is a bug in Tidings"
            mistake = TidingsError(message, where=feed.url, received=type(error).__name__, hint=hint)
            return self._failed(feed, mistake, moment)
        if read is None:
            return self._record_unchanged(feed, answer, moment)
        return self._published(feed, answer, *read, moment)

    def _fetch_feed(
        self, feed: PolledFeed, moment: datetime
    ) -> tuple[HttpResponse, tuple[Feed, ItemsByKey] | None]:
        """Fetch and parse a feed; the second value is None if it has not changed."""
        conditions, inside_host = response.conditional_headers(feed), response.inside_host(feed)
        answer = self._client.fetch_feed(feed.url, conditions, inside_host, feed.login)
        if answer.status == 304:
            return answer, None
        response.check_status(answer, moment)
        return answer, response.parse_response(answer)

    def _record_unchanged(self, feed: PolledFeed, answer: HttpResponse, moment: datetime) -> PollResult:
        due = self._next(feed, answer, feed.ttl, feed.skips, moment)
        changes = {**response.success_columns(moment), "next_poll": format_instant(due)}
        changes |= response.location_columns(feed, answer)
        stored = self._store.polled_feeds.record(feed, changes)
        if stored and stored.hub and stored.topic:
            stored = self._request_push(stored, websub.HubLink(stored.hub, stored.topic), moment)
        return PollResult(feed.url, stored)

    def _failed(self, feed: PolledFeed, problem: TidingsError, moment: datetime) -> PollResult:
        failures = feed.failures + 1
        fetching = problem if isinstance(problem, FetchProblem) else None
        due = schedule.after_failure(moment, failures, fetching.after if fetching else None, self._chance)
        due = schedule.next_allowed(due, feed.skips, self._chance)
        next_poll = None if fetching and fetching.gone else format_instant(due)
        changes = {
            "polled": format_instant(moment),
            "failures": failures,
            "problem": str(problem).split("\n")[0],
            "next_poll": next_poll,
        }
        return PollResult(feed.url, self._store.polled_feeds.record(feed, changes), problem=problem)

    def _published(
        self, feed: PolledFeed, answer: HttpResponse, facts: Feed, items: ItemsByKey, moment: datetime
    ) -> PollResult:
        skips = schedule.skips_of(facts.skip_hours, facts.skip_days)
        changes = {
            **response.success_columns(moment),
            **response.feed_columns(facts),
            **response.location_columns(feed, answer),
            "etag": answer.headers.get("etag"),
            "modified": answer.headers.get("last-modified"),
            "next_poll": format_instant(self._next(feed, answer, facts.ttl, skips, moment)),
        }
        outcome = self._take(feed, items, changes, moment)
        if outcome is None:
            return PollResult(feed.url, None)
        stored, counts = outcome
        pushing = websub.find_hub(answer, facts)
        return PollResult(
            feed.url, self._request_push(stored, pushing, moment) if pushing else stored, counts
        )

    def _take(
        self, feed: PolledFeed, items: ItemsByKey, changes: dict[str, object], moment: datetime
    ) -> tuple[PolledFeed, ItemCounts] | None:
        hashes = {key: item.hash for key, item in items.items()}
        return self._store.polled_feeds.take(
            feed, moment, hashes, lambda seen: plan_items(feed, items, seen), changes
        )

    def _next(
        self, feed: PolledFeed, answer: HttpResponse, ttl: int | None, skips: int | None, moment: datetime
    ) -> datetime:
        pushed = websub.is_pushed(feed, moment)
        due = schedule.after_success(moment, ttl, answer.headers, self._chance, pushed)
        due = schedule.next_allowed(due, skips, self._chance)
        return min(due, datetime.fromisoformat(feed.lease)) if pushed and feed.lease else due

    def _request_push(self, feed: PolledFeed, pushing: websub.HubLink, moment: datetime) -> PolledFeed | None:
        """Request pushes from the hub, if it can reach this machine and has not confirmed them already."""
        if self._public_url is None or not websub.needs_request(feed, pushing, moment):
            return feed
        asking = self._store.polled_feeds.record(feed, websub.request_columns(feed, pushing))
        if asking is None:
            return None
        problem = websub.request_push(self._client, asking, self._public_url, response.inside_host(feed))
        # Read again: the hub may have called back by now.
        return self._store.polled_feeds.record(asking, {"problem": problem} if problem else {})

    def take_push(self, feed: PolledFeed, body: bytes, media_type: str) -> PollResult:
        """Publish the items of a push whose signature was checked."""
        moment, topic = self._clock(), feed.topic or feed.url
        answer = HttpResponse(200, topic, None, {"content-type": media_type}, body)
        try:
            facts, items = response.parse_response(answer)
        except InputError as problem:
            stored = self._store.polled_feeds.record(feed, {"problem": str(problem).split("\n")[0]})
            return PollResult(feed.url, stored, problem=problem)
        left_out = show_omitted(facts.left_out)
        title = facts.title or feed.title
        changes: dict[str, object] = {"title": title, "problem": None, "left_out": left_out}
        outcome = self._take(feed, items, changes, moment)
        return PollResult(feed.url, *outcome) if outcome else PollResult(feed.url, None)

    def close(self) -> None:
        self.stop()
        self._client.close()


def _by_host(feeds: Iterable[PolledFeed]) -> list[list[PolledFeed]]:
    ordered = sorted(feeds, key=lambda feed: response.host_name(feed.url))
    return [list(same) for _, same in groupby(ordered, key=lambda feed: response.host_name(feed.url))]


class PollWorker(Worker):
    """A worker that polls feeds as they become due. Requests that it interrupts at the end are due again later."""

    def __init__(self, poller: Poller) -> None:
        super().__init__("feeds", MAX_WAIT_SECONDS)
        self._poller = poller

    def run_once(self) -> None:
        self._poller.step(_log_problem)

    def interrupt(self) -> None:
        self._poller.stop()

    def close(self) -> None:
        self._poller.close()


def _log_problem(result: PollResult) -> None:
    if result.problem is not None:
        _log.info("%s: %s", result.url, result.problem)

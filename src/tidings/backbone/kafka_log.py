"""A log that is a Kafka topic: any of the providers that share it writes to it, and all of them apply it.

offset      0   1   2   3        the broker gives them out
position    1   2   3   4        where the log begins is what retention has left: position 1, if it keeps all
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import closing
from time import monotonic

from tidings.backbone.kafka_client import Client
from tidings.backbone.kafka_reading import Reader
from tidings.backbone.kafka_topic import ANSWER_SECONDS, Topic
from tidings.backbone.kafka_writing import Writer
from tidings.backbone.log import Shared
from tidings.metadata.log import Draft, Entry, What
from tidings.metadata.log_pages import Page
from tidings.provider import Provider
from tidings.store.encoding import storable
from tidings.store.metadata_log import PAGE, refuse_trimmed
from tidings.web.kafka_address import Address


class KafkaLog(Shared):
    """The log in a topic, for one of the providers that share it."""

    def __init__(self, address: Address, provider: Provider) -> None:
        super().__init__(address.name, provider)
        self._client = Client(address)
        self._topic = Topic(self._client)
        self._reader, self._writer = Reader(self._client), Writer(self._client)
        self._steady = False

    def page(self, after: int, limit: int, wait: float) -> Page:
        """Entries after a position. After a failure nobody waits for new ones, so that its end is seen at once."""
        first_wait, self._steady = wait if self._steady else 0.0, False
        page = self._page(after, limit, first_wait) or self._page(after, limit, max(wait, ANSWER_SECONDS))
        if page is None:
            raise self._client.problem()
        self._steady = True
        return page

    def _page(self, after: int, limit: int, wait: float) -> Page | None:
        """Nothing if the log goes on after the position, but what stands there did not come yet.

        The topic is looked at after it was read: if another one has taken its place, the page has the id of that one,
        and the follower compares before it applies anything.
        """
        entries = self._reader.read(after, limit, monotonic() + wait)
        seen = self._topic.look()
        if not entries:
            refuse_trimmed(seen.first, after)
            if seen.head > after:
                return None
        return Page(seen.id, seen.first, seen.head, tuple(entries))

    def append(self, draft: Draft) -> int:
        return self._writer.append(draft)

    def last_of(self, uris: Collection[str], after: int) -> dict[str, What]:
        """Mostly all is applied here, and there is nothing to read. What is read is not what `page` waits for."""
        by_name = {storable(uri): uri for uri in uris}
        entries = [each for each in self._behind(after) if each.what is not What.SCHEMA]
        return {by_name[each.uri]: each.what for each in entries if each.uri in by_name}

    def _behind(self, after: int) -> Iterator[Entry]:
        """All that stands behind a position now."""
        seen = self._topic.look()
        refuse_trimmed(seen.first, after)
        if after >= seen.head:
            return
        with closing(Reader(self._client)) as reader:
            while after < seen.head:
                entries = reader.read(after, PAGE, monotonic() + ANSWER_SECONDS)
                if not entries:
                    raise self._client.problem()
                yield from entries
                after = entries[-1].position

    def end(self) -> None:
        self._client.ended.set()

    def close(self) -> None:
        self._reader.close()
        self._writer.close()

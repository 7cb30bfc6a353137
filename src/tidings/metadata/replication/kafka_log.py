"""Shared log in a Kafka topic: all providers that share it append to it and apply it.

offset      0   1   2   3        assigned by the broker
position    1   2   3   4        the first position depends on retention: 1, if all messages are kept
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import closing
from time import monotonic

from tidings.metadata.log import LogDraft, LogEntry, LogPage, Operation
from tidings.metadata.provider.provider import Provider
from tidings.metadata.replication.kafka_client import ADMIN_TIMEOUT_SECONDS, KafkaClient, KafkaTopic
from tidings.metadata.replication.kafka_transport import KafkaLogReader, KafkaLogWriter
from tidings.metadata.replication.log_protocol import SharedReplicationLog
from tidings.metadata.sql.log_rows import LOG_PAGE_ENTRIES, check_not_trimmed
from tidings.operations.kafka_address import KafkaAddress
from tidings.store.encoding import escape_unstorable


class KafkaLog(SharedReplicationLog):
    """A shared log in a topic, for one of its providers."""

    def __init__(self, address: KafkaAddress, provider: Provider) -> None:
        super().__init__(address.name, provider)
        self._client = KafkaClient(address)
        self._topic = KafkaTopic(self._client)
        self._reader, self._writer = KafkaLogReader(self._client), KafkaLogWriter(self._client)
        self._steady = False

    def page(self, after: int, limit: int, wait: float) -> LogPage:
        """Return entries after a position. The first call after a failure does not wait, to detect recovery at once."""
        first_wait, self._steady = wait if self._steady else 0.0, False
        page = self._page(after, limit, first_wait) or self._page(
            after, limit, max(wait, ADMIN_TIMEOUT_SECONDS)
        )
        if page is None:
            raise self._client.problem()
        self._steady = True
        return page

    def _page(self, after: int, limit: int, wait: float) -> LogPage | None:
        """Return a page; None if there are later entries that have not been received yet.

        The state of the topic is read last: if the topic was replaced, the page has the id of the new one, and the
        follower compares logs before it applies anything.
        """
        entries = self._reader.read(after, limit, monotonic() + wait)
        seen = self._topic.look()
        if not entries:
            check_not_trimmed(seen.first, after)
            if seen.head > after:
                return None
        return LogPage(seen.id, seen.first, seen.head, tuple(entries))

    def append(self, draft: LogDraft) -> int:
        return self._writer.append(draft)

    def last_of(self, uris: Collection[str], after: int) -> dict[str, Operation]:
        """Return the last operation on documents, with a separate reader. Mostly there is nothing to read."""
        by_name = {escape_unstorable(uri): uri for uri in uris}
        entries = [each for each in self._entries_after(after) if each.what is not Operation.SCHEMA]
        return {by_name[each.uri]: each.what for each in entries if each.uri in by_name}

    def _entries_after(self, after: int) -> Iterator[LogEntry]:
        """Yield all current entries after a position."""
        seen = self._topic.look()
        check_not_trimmed(seen.first, after)
        if after >= seen.head:
            return
        with closing(KafkaLogReader(self._client)) as reader:
            while after < seen.head:
                entries = reader.read(after, LOG_PAGE_ENTRIES, monotonic() + ADMIN_TIMEOUT_SECONDS)
                if not entries:
                    raise self._client.problem()
                yield from entries
                after = entries[-1].position

    def end(self) -> None:
        self._client.ended.set()

    def close(self) -> None:
        self._reader.close()
        self._writer.close()

"""A log that is a Kafka topic: any of the providers that share it writes to it, and all of them apply it.

offset      0   1   2   3        the broker gives them out
position    1   2   3   4        where the log begins is what retention has left: position 1, if it keeps all
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
    """The log in a topic, for one of the providers that share it."""

    def __init__(self, address: KafkaAddress, provider: Provider) -> None:
        super().__init__(address.name, provider)
        self._client = KafkaClient(address)
        self._topic = KafkaTopic(self._client)
        self._reader, self._writer = KafkaLogReader(self._client), KafkaLogWriter(self._client)
        self._steady = False

    def page(self, after: int, limit: int, wait: float) -> LogPage:
        """Entries after a position. After a failure nobody waits for new ones, so that its end is seen at once."""
        first_wait, self._steady = wait if self._steady else 0.0, False
        page = self._page(after, limit, first_wait) or self._page(
            after, limit, max(wait, ADMIN_TIMEOUT_SECONDS)
        )
        if page is None:
            raise self._client.problem()
        self._steady = True
        return page

    def _page(self, after: int, limit: int, wait: float) -> LogPage | None:
        """Nothing if the log goes on after the position, but what stands there did not come yet.

        The topic is looked at after it was read: if another one has taken its place, the page has the id of that one,
        and the follower compares before it applies anything.
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
        """Mostly all is applied here, and there is nothing to read. What is read is not what `page` waits for."""
        by_name = {escape_unstorable(uri): uri for uri in uris}
        entries = [each for each in self._behind(after) if each.what is not Operation.SCHEMA]
        return {by_name[each.uri]: each.what for each in entries if each.uri in by_name}

    def _behind(self, after: int) -> Iterator[LogEntry]:
        """All that stands behind a position now."""
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

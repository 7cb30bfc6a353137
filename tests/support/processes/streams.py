"""A stream in a thread, and functions that wait for its results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Condition, Event, Thread
from time import monotonic
from typing import Any

from tidings.spark.stream.runner import run_stream
from tidings.spark.stream.stream_events import Activity

PATIENCE = 120.0


class Running:
    """A running stream: `until` waits for a condition, which is evaluated after each progress event."""

    def __init__(self) -> None:
        self.news: list[Any] = []
        self.activities: list[Activity] = []
        self.failure: BaseException | None = None
        self.stop = Event()
        self._changed = Condition()

    def hear(self, news: Any) -> None:
        with self._changed:
            (self.activities if isinstance(news, Activity) else self.news).append(news)
            self._changed.notify_all()

    def until(self, condition: Callable[[], Any]) -> Any:
        deadline = monotonic() + PATIENCE
        with self._changed:
            while not (result := condition()):
                assert self.failure is None, self.failure
                assert monotonic() < deadline, f"condition not met in time; last events {self.news[-3:]}"
                self._changed.wait(0.1)
        return result


@contextmanager
def running(session: Any, home: Any, store_url: str, **options: Any) -> Iterator[Running]:
    """Run a stream in a thread until the block ends, and raise its failure."""
    state = Running()

    def work() -> None:
        try:
            run_stream(session, home, store_url, stop=state.stop, listener=state.hear, **options)
        except BaseException as failure:  # noqa: BLE001 - raised again in the thread of the test
            state.failure = failure

    thread = Thread(target=work)
    thread.start()
    try:
        yield state
    finally:
        state.stop.set()
        thread.join()
    if state.failure is not None:
        raise state.failure


def read_notifications(store: Any, *subscribers: str) -> dict[str, list[tuple[int, str, str]]]:
    """Return sequence, publication and subscription of all notifications by subscriber."""
    return {name: list(_read_pages(store, name)) for name in subscribers}


def _read_pages(store: Any, subscriber: str) -> Iterator[tuple[int, str, str]]:
    after = 0
    while page := store.notifications.read(subscriber, after):
        for notification in page:
            yield notification.sequence, notification.publication, notification.subscription
        after = page[-1].sequence


def check_gapless(store: Any, *subscribers: str) -> None:
    """Check that sequences start with one and have no gap, and that no pair is repeated."""
    for rows in read_notifications(store, *subscribers).values():
        assert [row[0] for row in rows] == list(range(1, len(rows) + 1))
        assert len({row[1:] for row in rows}) == len(rows)

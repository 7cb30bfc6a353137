"""Any history: providers that apply one log, however it was cut into pages, are equal at equal positions."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.metadata.replication.nodes import SCHEMA, everything, host, uri
from tests.support.strategies.effort import share
from tidings.errors import Absent
from tidings.metadata.log import LogDraft, Operation
from tidings.metadata.provider.provider import Provider
from tidings.metadata.replication.log_follower import LogFollower
from tidings.metadata.replication.routing import DatabaseLog
from tidings.store.database import sqlite_url
from tidings.store.store import open_store

RULES = {
    "large": "search CycleProvider c register c where c.serverInformation.memory > 64",
    "all": "search ServerInformation s register s",
}
BROKEN = LogDraft(Operation.REGISTER, uri(9), "text/turtle", b"<#x> a <#Nothing> .")
NUMBERS = st.integers(0, 2)

registered = st.builds(
    lambda number, memory: LogDraft(Operation.REGISTER, uri(number), "application/rdf+xml", host(memory)),
    NUMBERS,
    st.sampled_from([32, 92]),
)
removed = st.builds(lambda number: LogDraft(Operation.REMOVE, uri(number)), NUMBERS)
steps = st.tuples(st.integers(0, 1), st.one_of(registered, removed, st.none()))
"""At which of two providers something is registered, or how it takes a step; what is broken comes from elsewhere."""


def forward(log: DatabaseLog, draft: LogDraft, there: set[str]) -> None:
    """Removing what is not there is refused, whatever is applied where."""
    if draft.what is Operation.REMOVE and draft.uri not in there:
        with pytest.raises(Absent):
            log.forward(draft)
        return
    log.forward(draft)
    there.add(draft.uri) if draft.what is Operation.REGISTER else there.remove(draft.uri)


@share(4)
@given(st.lists(steps, max_size=8), st.tuples(st.integers(1, 3), st.integers(1, 3)), st.booleans())
def test_two_providers_and_one_that_comes_later(history, pages: tuple[int, int], broken: bool) -> None:
    with TemporaryDirectory() as folder, ExitStack() as stack:
        urls = [sqlite_url(Path(folder) / f"{name}.db") for name in ("one", "two", "late", "log")]
        one, two, late, log = (stack.enter_context(open_store(url)) for url in urls)
        providers = [Provider(one), Provider(two)]
        logs = [stack.enter_context(DatabaseLog(urls[-1], each)) for each in providers]
        followers = [
            LogFollower(store, provider, log, page)
            for store, provider, log, page in zip((one, two), providers, logs, pages, strict=True)
        ]
        logs[0].forward(LogDraft(Operation.SCHEMA, "", "text/turtle", SCHEMA))
        for provider, follower in zip(providers, followers, strict=True):
            follower.step()
            provider.add_rules(RULES, "ana")
        there: set[str] = set()
        for which, draft in history:
            if draft is None:
                followers[which].step()
            else:
                forward(logs[which], draft, there)
        if broken:
            log.metadata.log.append([BROKEN])
        for follower in followers:
            follower.catch_up()
        Provider(late).apply(log.metadata.log.read(0))
        assert everything(one) == everything(two) == everything(late)
        for name in RULES:
            assert providers[0].results(name) == providers[1].results(name)

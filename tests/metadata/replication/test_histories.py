"""Random histories: providers that apply one log, in any pages, are equal at equal positions."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.metadata.replication.nodes import SCHEMA, host, replicated_state, uri
from tests.support.strategies.effort import share
from tidings.errors import NotFound
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
"""Which of two providers registers something or takes a step. Broken entries come from another source."""


def forward(log: DatabaseLog, draft: LogDraft, uris: set[str]) -> None:
    """Forward an entry; removing a missing document is rejected at any provider."""
    if draft.what is Operation.REMOVE and draft.uri not in uris:
        with pytest.raises(NotFound):
            log.forward(draft)
        return
    log.forward(draft)
    uris.add(draft.uri) if draft.what is Operation.REGISTER else uris.remove(draft.uri)


@share(4)
@given(st.lists(steps, max_size=8), st.tuples(st.integers(1, 3), st.integers(1, 3)), st.booleans())
def test_followers_of_one_log_are_equal_after_random_history(
    history, pages: tuple[int, int], broken: bool
) -> None:
    with TemporaryDirectory() as folder, ExitStack() as stack:
        urls = [sqlite_url(Path(folder) / f"{name}.db") for name in ("one", "two", "late", "log")]
        first, second, latecomer, log = (stack.enter_context(open_store(url)) for url in urls)
        providers = [Provider(first), Provider(second)]
        logs = [stack.enter_context(DatabaseLog(urls[-1], each)) for each in providers]
        followers = [
            LogFollower(store, provider, log, page)
            for store, provider, log, page in zip((first, second), providers, logs, pages, strict=True)
        ]
        logs[0].forward(LogDraft(Operation.SCHEMA, "", "text/turtle", SCHEMA))
        for provider, follower in zip(providers, followers, strict=True):
            follower.step()
            provider.add_rules(RULES, "ana")
        uris: set[str] = set()
        for index, draft in history:
            if draft is None:
                followers[index].step()
            else:
                forward(logs[index], draft, uris)
        if broken:
            log.metadata.log.append([BROKEN])
        for follower in followers:
            follower.catch_up()
        Provider(latecomer).apply(log.metadata.log.read(0))
        assert replicated_state(first) == replicated_state(second) == replicated_state(latecomer)
        for name in RULES:
            assert providers[0].results(name) == providers[1].results(name)

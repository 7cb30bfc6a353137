"""Synchronization of a repository with one of several providers.

    connect    compare positions, agree on rules, then continue with the moves after the cursor or fetch the whole state
    step       apply one change set, in one transaction with the cursor

The moves after the cursor are sufficient if the provider is the same as before and still has the last move. Otherwise
(another provider, other rules, a provider restored from an older backup, trimmed moves) the whole state is fetched, and
the differences are applied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from random import Random
from threading import Event

from tidings.errors import Gone, InputError, TidingsError
from tidings.metadata.change_sets import ChangeSet, Cursor, compute_mark
from tidings.metadata.documents import Document
from tidings.metadata.provider.log_applier import SchemaCache, SchemaContext
from tidings.metadata.replication.log_follower import INITIAL_BACKOFF_SECONDS, WAIT_SECONDS, backoff_seconds
from tidings.metadata.replication.peer import Unreachable
from tidings.metadata.repository.links import ProviderLink, ProviderPosition
from tidings.metadata.resources import Resource, check_conformance, document_uri_of
from tidings.metadata.rules.rule_files import RuleFile
from tidings.metadata.sql.metadata_reader import SchemaFile
from tidings.metadata.sql.repository.change_application import ApplyCounts
from tidings.metadata.sql.resource_rows import check_document
from tidings.store.store import Store

# Events of a running repository.


@dataclass(frozen=True, slots=True)
class Connected:
    """A provider was reached, and synchronization continues at the cursor. `moved` if it is another one than before."""

    link: str
    position: int
    moved: bool


@dataclass(frozen=True, slots=True)
class Refreshed:
    """The whole state was fetched for a reason, and the differences were applied."""

    link: str
    position: int
    because: str
    applied: ApplyCounts
    resources: int


@dataclass(frozen=True, slots=True)
class Followed:
    """Moves were applied."""

    link: str
    position: int
    moves: int
    applied: ApplyCounts
    resources: int


@dataclass(frozen=True, slots=True)
class CutOff:
    """A provider cannot be followed now; the next one is tried, or the same again after `retry` seconds."""

    link: str
    problem: str
    retry: float
    resources: int


SyncEvent = Connected | Refreshed | Followed | CutOff
SyncListener = Callable[[SyncEvent], None]


BATCH_MOVES = 1_000
"""The default limit of moves in a change set, which is applied in one transaction."""


class ProviderBehind(TidingsError):
    """A provider whose position is before that of the repository."""


class ProviderFollower:
    """Synchronization with the provider of one link. After any error, start again with `connect`."""

    def __init__(
        self, store: Store, link: ProviderLink, rules: RuleFile, tell: SyncListener, batch: int = BATCH_MOVES
    ) -> None:
        self._cache, self._link, self._rules, self._notify = store.repository, link, rules, tell
        self._batch = batch
        self._schemas = SchemaCache()
        self._file: SchemaFile | None = None
        self._has_reconnected = False

    def connect(self) -> None:
        """Reach a state in which only the moves after the cursor are missing."""
        provider_position, cursor = self._link.provider_position(), self._cache.cursor()
        self._check_not_behind(provider_position, cursor)
        self._rules.check(self._schema(None).schema)
        self._synchronize_rules()
        reason = self._find_refresh_reason(provider_position, self._cache.cursor())
        moved = cursor is not None and cursor.provider != provider_position.provider
        if reason is None:
            self._notify(Connected(self._link.name, provider_position.position, moved))
        else:
            self._refresh(reason)

    def step(self, wait: float) -> bool:
        """Apply the next moves, waiting for some if there are none; return whether there are more now."""
        since = self._cache.cursor()
        if since is None or not since.is_settled:
            self._refresh("a local document was removed that the provider may have, too")
            return True
        changes = self._fetch_changes(since, wait)
        if changes is None:
            self._reconnect()
            return True
        self._has_reconnected = False
        if changes.moves or changes.sequence != since.sequence or changes.position != since.position:
            self._apply(changes, since)
        return changes.more

    def _reconnect(self) -> None:
        """Connect again. If that is necessary twice in a row, one address may have several providers behind it."""
        if self._has_reconnected:
            self._has_reconnected = False
            hint = (
                "does the address balance load between several providers? name each of them with --provider"
            )
            raise Unreachable("the provider does not stay the same", where=self._link.name, hint=hint)
        self._has_reconnected = True
        self.connect()

    def _fetch_changes(self, since: Cursor, wait: float) -> ChangeSet | None:
        """Fetch the moves after the cursor; None if they are not available, or the provider is another one."""
        try:
            changes = self._link.changes(since.sequence, self._batch, wait)
        except Gone:
            return None
        ahead = changes.position >= since.position and changes.sequence >= since.sequence + changes.more
        same = changes.provider == since.provider and ahead
        return changes if same else None

    def _check_not_behind(self, provider: ProviderPosition, cursor: Cursor | None) -> None:
        """Reject a provider behind the repository: it has to catch up. Only a restored leader may go back."""
        if cursor is None or provider.position >= cursor.position:
            return
        if provider.provider == cursor.provider and provider.leads:
            return
        hint = "it has to catch up first" if not provider.leads else "does it belong to the same backbone?"
        raise ProviderBehind(
            f"the provider is at position {provider.position}, but the repository already at {cursor.position}",
            where=self._link.name,
            hint=hint,
        )

    def _synchronize_rules(self) -> None:
        """Make the provider's rules equal to those of the file.

        The cursor is unsettled before: a process that ends in between must not continue with moves of other rules.
        """
        texts, provider_rules = self._rules.texts, self._link.rules()
        if texts != provider_rules or texts != self._cache.rules():
            self._cache.unsettle()
        if texts != provider_rules:
            self._link.set_rules(texts)

    def _find_refresh_reason(self, provider: ProviderPosition, cursor: Cursor | None) -> str | None:
        """Return the reason why the moves after the cursor are not sufficient, if they are not."""
        if cursor is None:
            return "this is the first time"
        if cursor.provider != provider.provider:
            return "it is another provider than before"
        if not cursor.is_settled:
            return "the rules have changed, or a local document was removed"
        if provider.position < cursor.position or cursor.mark != self._mark(cursor.sequence):
            return "the provider was restored from an older store, or no longer has the last changes"
        return None

    def _mark(self, sequence: int) -> str:
        """Return the mark of the provider's move with a sequence number; empty before the first."""
        try:
            changes = self._link.changes(max(0, sequence - 1), 1, 0)
        except Gone:
            return "nothing any more"
        if sequence == 0:
            return ""
        return compute_mark(changes.moves[0]) if changes.moves else "nothing of this repository"

    def _refresh(self, reason: str) -> None:
        state = self._link.state()
        schema = self._schema(state.schema)
        self._check(state.resources, schema)
        mark = self._mark(state.sequence)
        applied = self._cache.replace(schema.file, schema.schema, self._rules.texts, state, mark)
        count = self._cache.counts().resources
        self._notify(Refreshed(self._link.name, state.position, reason, applied, count))

    def _apply(self, changes: ChangeSet, since: Cursor) -> None:
        """Apply changes, unless another process has moved the cursor in between."""
        schema = self._schema(changes.schema)
        self._check(changes.resources, schema)
        applied = self._cache.apply(schema.file, schema.schema, changes, since)
        if applied is not None and changes.moves:
            count = self._cache.counts().resources
            self._notify(Followed(self._link.name, changes.position, len(changes.moves), applied, count))

    def _check(self, resources: Iterable[Resource], schema: SchemaContext) -> None:
        """Check resources against the provider's schema. A violation is the provider's fault, and may be transient."""
        try:
            for resource in resources:
                check_conformance(resource, schema.schema)
                check_document(Document(document_uri_of(resource.uri), (resource,)))
        except InputError as problem:
            message = "the provider sent resources that break its schema"
            raise Unreachable(message, where=self._link.name, received=str(problem)) from problem

    def _schema(self, version: int | None) -> SchemaContext:
        """Return the provider's schema, fetched again for another version.

        Schemas only grow, so a newer one than that of a change set is valid, too.
        """
        if self._file is None or self._file.version != version:
            self._file = self._link.schema()
        return self._schemas.context(self._file)


TRANSIENT_ERRORS = (Unreachable, Gone, ProviderBehind)
"""Errors after which the next provider is tried. Any other ends synchronization."""


class Synchronizer:
    """Synchronization with one of several providers.

    If the current one fails, the next is tried at once; if all fail, they are retried with backoff. The repository
    answers queries all the time.
    """

    def __init__(
        self,
        store: Store,
        links: Sequence[ProviderLink],
        rules: RuleFile,
        tell: SyncListener = lambda _: None,
        batch: int = BATCH_MOVES,
        random: Random | None = None,
    ) -> None:
        self._store, self._links, self._notify = store, links, tell
        self._followers = [ProviderFollower(store, link, rules, tell, batch) for link in links]
        self._random, self._stop, self._failures = random or Random(), Event(), 0

    def catch_up_once(self) -> None:
        """Catch up with the first provider that responds, and return."""
        problems: list[TidingsError] = []
        for follower in self._followers:
            try:
                follower.connect()
                while follower.step(wait=0):
                    pass
                return
            except TRANSIENT_ERRORS as problem:
                problems.append(problem)
        raise problems[0]

    def run(self) -> None:
        """Follow providers until `stop` is called by another thread or a signal."""
        attempts = 0
        while not self._stop.is_set():
            index = attempts % len(self._links)
            try:
                self._follow(self._followers[index])
            except TRANSIENT_ERRORS as problem:
                attempts += 1
                self._failed(self._links[index], problem)

    def stop(self) -> None:
        """Cancel waiting, and finish a change set that is being applied."""
        self._stop.set()
        for link in self._links:
            link.end()

    def _follow(self, follower: ProviderFollower) -> None:
        follower.connect()
        while not self._stop.is_set():
            cursor_before = self._store.repository.cursor()
            follower.step(WAIT_SECONDS)
            self._failures = 0
            if (
                self._store.repository.cursor() == cursor_before
            ):  # a server without long polling: no tight loop
                self._stop.wait(INITIAL_BACKOFF_SECONDS)

    def _failed(self, link: ProviderLink, problem: TidingsError) -> None:
        if self._stop.is_set():
            return
        self._failures += 1
        rounds, position_in_round = divmod(self._failures, len(self._links))
        seconds = 0.0 if position_in_round else backoff_seconds(rounds, self._random)
        count = self._store.repository.counts().resources
        self._notify(CutOff(link.name, str(problem), seconds, count))
        self._stop.wait(seconds)

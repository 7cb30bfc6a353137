"""Following one provider: finding out where to go on, and applying what it tells.

    connect    the provider's position; the rules; then either the moves after the cursor, or the whole state
    step       one change set, in one transaction with the cursor

The moves after the cursor are enough if the provider is the one that told the last of them, and still knows that it
did. After anything else (another provider, other rules, a provider that was restored from an older store, moves that
are not kept any more) the state is asked for, and what is different is applied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from random import Random
from threading import Event

from tidings.errors import Gone, InputError, TidingsError
from tidings.graphs.rdf import rdf_decoder
from tidings.metadata.change_sets import ChangeSet, Cursor, compute_mark
from tidings.metadata.documents import Document
from tidings.metadata.replication.log_follower import INITIAL_BACKOFF_SECONDS, WAIT_SECONDS, backoff_seconds
from tidings.metadata.replication.peer import Unreachable
from tidings.metadata.repository.links import ProviderLink, ProviderPosition
from tidings.metadata.resources import Resource, check_conformance, document_uri_of
from tidings.metadata.rules.rule_files import RuleFile
from tidings.metadata.schema.schema_parser import parse_schema
from tidings.metadata.sql.document_changes import check_document
from tidings.metadata.sql.repository.change_application import ApplyCounts, RepositorySchema
from tidings.store.store import Store

# What a repository says while it runs.


@dataclass(frozen=True, slots=True)
class Connected:
    """A provider was reached, and goes on from where it told last. `moved` if it is another one than before."""

    link: str
    position: int
    moved: bool


@dataclass(frozen=True, slots=True)
class Refreshed:
    """Everything was asked for, because of something, and what was different was applied."""

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
    """A provider cannot be followed now; the next is tried, or the same again after so many seconds."""

    link: str
    problem: str
    retry: float
    resources: int


SyncEvent = Connected | Refreshed | Followed | CutOff
SyncListener = Callable[[SyncEvent], None]


BATCH_MOVES = 1_000
"""How many moves a change set has at most, if nothing else is said: they are applied in one transaction."""


class Behind(TidingsError):
    """A provider that has not seen all that this repository has seen."""


class ProviderFollower:
    """Follows the provider behind a link. Whatever goes wrong is raised, and `connect` is the way back."""

    def __init__(
        self, store: Store, link: ProviderLink, rules: RuleFile, tell: SyncListener, batch: int = BATCH_MOVES
    ) -> None:
        self._cache, self._link, self._rules, self._tell = store.repository, link, rules, tell
        self._batch = batch
        self._known: tuple[int, RepositorySchema] | None = None
        self._is_lost = False

    def connect(self) -> None:
        """Be where the moves after the cursor are all that is missing."""
        at, before = self._link.standing(), self._cache.cursor()
        self._refuse_behind(at, before)
        self._rules.check(self._schema(None).schema)
        self._agree_on_rules()
        because = self._gap(at, self._cache.cursor())
        moved = before is not None and before.provider != at.provider
        if because is None:
            self._tell(Connected(self._link.name, at.position, moved))
        else:
            self._refresh(because)

    def step(self, wait: float) -> bool:
        """Apply what moved, and say whether there is more now. If nothing did, that is waited for."""
        since = self._cache.cursor()
        if since is None or not since.is_settled:
            self._refresh("something local was removed that the provider has, too")
            return True
        told = self._told(since, wait)
        if told is None:
            self._reconnect()
            return True
        self._is_lost = False
        if told.moves or told.sequence != since.sequence or told.position != since.position:
            self._apply(told, since)
        return told.more

    def _reconnect(self) -> None:
        """Begin anew. If that leads nowhere twice in a row, one address has several providers behind it, perhaps."""
        if self._is_lost:
            self._is_lost = False
            hint = "does the address lead to several providers in turn? name each of them with --provider"
            raise Unreachable("the provider does not stay the same", where=self._link.name, hint=hint)
        self._is_lost = True
        self.connect()

    def _told(self, since: Cursor, wait: float) -> ChangeSet | None:
        """What follows the cursor; None if that cannot be said, or not by the same provider as before."""
        try:
            told = self._link.changes(since.sequence, self._batch, wait)
        except Gone:
            return None
        ahead = told.position >= since.position and told.sequence >= since.sequence + told.more
        same = told.provider == since.provider and ahead
        return told if same else None

    def _refuse_behind(self, at: ProviderPosition, cursor: Cursor | None) -> None:
        """A provider that leads and is behind itself was restored, and what it has counts. Any other will catch up."""
        if cursor is None or at.position >= cursor.position:
            return
        if at.provider == cursor.provider and at.leads:
            return
        hint = "it has to catch up first" if not at.leads else "is it one of the same backbone?"
        raise Behind(
            f"this provider is at position {at.position}, the repository at {cursor.position} already",
            where=self._link.name,
            hint=hint,
        )

    def _agree_on_rules(self) -> None:
        """Have the provider follow exactly the rules of the file.

        The cursor is given up before they are changed there: a process that ends in between must not go on with moves
        of other rules than it had.
        """
        wanted, there = self._rules.texts, self._link.rules()
        if wanted != there or wanted != self._cache.rules():
            self._cache.unsettle()
        if wanted != there:
            self._link.set_rules(wanted)

    def _gap(self, at: ProviderPosition, cursor: Cursor | None) -> str | None:
        """Why the moves after the cursor are not enough, if they are not."""
        if cursor is None:
            return "this is the first time"
        if cursor.provider != at.provider:
            return "it is another provider than before"
        if not cursor.is_settled:
            return "the rules are other ones than before, or something local was removed"
        if at.position < cursor.position or cursor.mark != self._mark(cursor.sequence):
            return "the provider has forgotten what it told, or was restored from an older store"
        return None

    def _mark(self, sequence: int) -> str:
        """What the provider says that it told under a number; nothing came before the first."""
        try:
            told = self._link.changes(max(0, sequence - 1), 1, 0)
        except Gone:
            return "nothing any more"
        if sequence == 0:
            return ""
        return compute_mark(told.moves[0]) if told.moves else "nothing of this repository"

    def _refresh(self, because: str) -> None:
        state = self._link.state()
        known = self._schema(state.schema)
        self._check(state.resources, known)
        mark = self._mark(state.sequence)
        done = self._cache.replace(known, self._rules.texts, state, mark)
        held = self._cache.counts().resources
        self._tell(Refreshed(self._link.name, state.position, because, done, held))

    def _apply(self, told: ChangeSet, since: Cursor) -> None:
        """Another process may have changed something in between: then the cursor is another one, and this is left."""
        known = self._schema(told.schema)
        self._check(told.resources, known)
        done = self._cache.apply(known, told, since)
        if done is not None and told.moves:
            held = self._cache.counts().resources
            self._tell(Followed(self._link.name, told.position, len(told.moves), done, held))

    def _check(self, resources: Iterable[Resource], known: RepositorySchema) -> None:
        """What does not go with the provider's own schema is no fault of who runs the repository: it is asked again."""
        try:
            for each in resources:
                check_conformance(each, known.schema)
                check_document(Document(document_uri_of(each.uri), (each,)))
        except InputError as problem:
            what = "what the provider tells does not go with its schema"
            raise Unreachable(what, where=self._link.name, received=str(problem)) from problem

    def _schema(self, version: int | None) -> RepositorySchema:
        """The provider's schema, asked for again when another version is told of. A schema only grows, so that one that
        came after something that was told knows it, too."""
        if self._known is None or self._known[0] != version:
            text = self._link.schema()
            made = RepositorySchema(
                text.media_type, text.body, parse_schema(rdf_decoder.decode(text.body, text.media_type))
            )
            self._known = text.version, made
        return self._known[1]


# Keeping a repository up to date, whatever becomes of its providers.
#
# One provider is followed. When it cannot be, the next one is tried at once; when none can be, all of them are tried
# again, later and later. What is held stays, and answers queries all the while.


TRANSIENT_ERRORS = (Unreachable, Gone, Behind)
"""What may be over the next time. Anything else ends it."""


class Synchronizer:
    """Follows one of several providers."""

    def __init__(
        self,
        store: Store,
        links: Sequence[ProviderLink],
        rules: RuleFile,
        tell: SyncListener = lambda _: None,
        batch: int = BATCH_MOVES,
        chance: Random | None = None,
    ) -> None:
        self._store, self._links, self._tell = store, links, tell
        self._followers = [ProviderFollower(store, link, rules, tell, batch) for link in links]
        self._chance, self._stop, self._failures = chance or Random(), Event(), 0

    def once(self) -> None:
        """Catch up with the first provider that answers, and end."""
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
        """Follow until `stop` is called, maybe by another thread, or by a signal."""
        turn = 0
        while not self._stop.is_set():
            at = turn % len(self._links)
            try:
                self._follow(self._followers[at])
            except TRANSIENT_ERRORS as problem:
                turn += 1
                self._failed(self._links[at], problem)

    def stop(self) -> None:
        """What is waited for is ended; a change set that is being applied is applied."""
        self._stop.set()
        for link in self._links:
            link.end()

    def _follow(self, follower: ProviderFollower) -> None:
        follower.connect()
        while not self._stop.is_set():
            before = self._store.repository.cursor()
            follower.step(WAIT_SECONDS)
            self._failures = 0
            if (
                self._store.repository.cursor() == before
            ):  # a server that lets nobody wait is not asked all the time
                self._stop.wait(INITIAL_BACKOFF_SECONDS)

    def _failed(self, link: ProviderLink, problem: TidingsError) -> None:
        if self._stop.is_set():
            return
        self._failures += 1
        rounds, rest = divmod(self._failures, len(self._links))
        seconds = 0.0 if rest else backoff_seconds(rounds, self._chance)
        held = self._store.repository.counts().resources
        self._tell(CutOff(link.name, str(problem), seconds, held))
        self._stop.wait(seconds)

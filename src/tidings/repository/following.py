"""Following one provider: finding out where to go on, and applying what it tells.

    connect    the provider's position; the rules; then either the moves after the cursor, or the whole state
    step       one change set, in one transaction with the cursor

The moves after the cursor are enough if the provider is the one that told the last of them, and still knows that it
did. After anything else (another provider, other rules, a provider that was restored from an older store, moves that
are not kept any more) the state is asked for, and what is different is applied.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidings.backbone.peer import Unreachable
from tidings.errors import Gone, InputError, TidingsError
from tidings.metadata.as_json import document_of
from tidings.metadata.change_sets import ChangeSet
from tidings.metadata.documents import Document
from tidings.metadata.fitting import check_fits
from tidings.metadata.resources import Resource
from tidings.metadata.schema_reading import read_schema
from tidings.publications import rdf
from tidings.repository.links import Link, Standing
from tidings.repository.news import Connected, Followed, Listener, Refreshed
from tidings.repository.rule_files import RuleFile
from tidings.store import Store
from tidings.store.cursors import Cursor, mark_of
from tidings.store.registering import check_document
from tidings.store.repository_schema import KnownSchema

BATCH = 1_000
"""How many moves a change set has at most, if nothing else is said: they are applied in one transaction."""


class Behind(TidingsError):
    """A provider that has not seen all that this repository has seen."""


class Follower:
    """Follows the provider behind a link. Whatever goes wrong is raised, and `connect` is the way back."""

    def __init__(self, store: Store, link: Link, rules: RuleFile, tell: Listener, batch: int = BATCH) -> None:
        self._cache, self._link, self._rules, self._tell = store.repository, link, rules, tell
        self._batch = batch
        self._known: tuple[int, KnownSchema] | None = None
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

    def _refuse_behind(self, at: Standing, cursor: Cursor | None) -> None:
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

    def _gap(self, at: Standing, cursor: Cursor | None) -> str | None:
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
        return mark_of(told.moves[0]) if told.moves else "nothing of this repository"

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

    def _check(self, resources: Iterable[Resource], known: KnownSchema) -> None:
        """What does not go with the provider's own schema is no fault of who runs the repository: it is asked again."""
        try:
            for each in resources:
                check_fits(each, known.schema)
                check_document(Document(document_of(each.uri), (each,)))
        except InputError as problem:
            what = "what the provider tells does not go with its schema"
            raise Unreachable(what, where=self._link.name, received=str(problem)) from problem

    def _schema(self, version: int | None) -> KnownSchema:
        """The provider's schema, asked for again when another version is told of. A schema only grows, so that one that
        came after something that was told knows it, too."""
        if self._known is None or self._known[0] != version:
            text = self._link.schema()
            made = KnownSchema(
                text.media_type, text.body, read_schema(rdf.decode(text.body, text.media_type))
            )
            self._known = text.version, made
        return self._known[1]

"""Removing a document that is not there: whoever asks for it has mistaken its URI, and the log has no use for it.

What stands in the log all the same is harmless: two may remove the same document at the same moment.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Protocol

from tidings.errors import Absent
from tidings.languages.rules_refusals import near
from tidings.metadata.log import Draft, What
from tidings.store.metadata import Metadata, Work

_NEIGHBOURS = 1_000
"""Among so many documents of the same folder, one is looked for that somebody may have meant."""

Near = Callable[[str, int], Sequence[str]]
"""The URIs of documents after one, so many."""


def removed(drafts: Iterable[Draft]) -> list[str]:
    """The URIs of what is to be removed."""
    return [draft.uri for draft in drafts if draft.what is What.REMOVE]


def refuse_absent(work: Work, drafts: Sequence[Draft]) -> None:
    """Refuse to remove what is not there, when all that stands in the log is applied."""
    if uris := removed(drafts):
        _refuse(drafts, work.documents_among(uris), work.document_uris)


class Log(Protocol):
    """A log, the own one or one that is shared, as far as it is looked at here."""

    def last_of(self, uris: Collection[str], after: int) -> dict[str, What]:
        """What the last entry after a position does with each of these documents, if there is one."""


def refuse_absent_later(metadata: Metadata, log: Log, drafts: Sequence[Draft]) -> None:
    """The same behind all that stands in a log and is not applied yet.

    The log is looked at before the documents: what is applied in between is found there. The other way round, a
    document that was registered just now would be found in neither.
    """
    if uris := removed(drafts):
        last = log.last_of(uris, metadata.position())
        there = metadata.documents_among(uris) - last.keys()
        there |= {uri for uri, what in last.items() if what is What.REGISTER}
        _refuse(drafts, there, metadata.document_uris)


def _refuse(drafts: Sequence[Draft], there: set[str], after: Near) -> None:
    for draft in drafts:
        if draft.what is What.REGISTER:
            there.add(draft.uri)
        elif draft.what is What.REMOVE:
            if draft.uri not in there:
                raise _absent(draft.uri, after)
            there.remove(draft.uri)


def _absent(uri: str, after: Near) -> Absent:
    folder = uri[: uri.rstrip("/").rfind("/") + 1]
    close = near(uri, after(folder, _NEIGHBOURS))
    return Absent("there is no such document", received=uri, hint=close or "tidings provider documents")

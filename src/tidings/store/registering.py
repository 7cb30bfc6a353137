"""Documents on their way into the store: what is different in them, and which triggering rules they satisfy now."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from sqlalchemy import Connection, select

from tidings.metadata.changes import Changes, compare
from tidings.metadata.documents import Document
from tidings.metadata.resources import Resource
from tidings.store import atom_rows, bulk, counters, names, rule_base
from tidings.store.atom_rows import Placed
from tidings.store.rule_tables import atomic_rules

if TYPE_CHECKING:
    from tidings.metadata.triggers import (
        Triggers,
    )  # with it comes the index, which whoever only reads does not need


def check_document(document: Document) -> None:
    """Refuse what no database keeps. This is known before anything is written."""
    for resource in document.resources:
        names.check("a resource's URI", resource.uri)
        for values in resource.values.values():
            for value in values:
                if not isinstance(value, bool | int | float):
                    names.check_text("a value", value if isinstance(value, str) else value.uri)


def compared(
    connection: Connection, documents: Sequence[Document]
) -> tuple[dict[str, Changes], dict[str, Placed | None]]:
    """What becomes of each resource of documents, and the versions that are to be written."""
    before = _versions(connection, [document.uri for document in documents])
    changes = {document.uri: compare(before[document.uri], document.resources) for document in documents}
    versions: dict[str, Placed | None] = {}
    for uri, change in changes.items():
        versions |= dict.fromkeys((each.uri for each in change.deleted), None)
        written = (*change.new, *(each.after for each in change.changed))
        versions |= {each.uri: Placed(each, uri) for each in written}
    return changes, versions


def _versions(connection: Connection, documents: Sequence[str]) -> dict[str, list[Resource]]:
    """The resources that are stored of each of these documents."""
    uris = atom_rows.of_documents(connection, documents)
    found = atom_rows.load(connection, [uri for each in uris.values() for uri in each])
    return {document: [found[uri].resource for uri in sorted(uris[document])] for document in documents}


def satisfied(
    connection: Connection, triggers: Triggers, resources: Collection[Resource]
) -> list[tuple[str, int]]:
    """Which triggering rules resources satisfy. Others may have added and removed rules since the index was asked."""
    _catch_up(connection, triggers)
    found = list(triggers.satisfied(resources))
    named = {number for _, number in found}
    there = bulk.select_numbered(connection, _THERE, atomic_rules.c.rule, sorted(named))
    gone = named.difference(row.rule for row in there)
    if not gone:
        return found
    triggers.remove(gone)
    return [(uri, number) for uri, number in found if number not in gone]


def _catch_up(connection: Connection, triggers: Triggers) -> None:
    """Add the rules that came. Mostly none has, and of all rules that would cost a look at each."""
    upto = counters.current(connection, rule_base.COUNTER)
    if upto > triggers.known:
        triggers.add(rule_base.load_triggering(connection, triggers.last))
        triggers.known = upto


_THERE = select(atomic_rules.c.rule)

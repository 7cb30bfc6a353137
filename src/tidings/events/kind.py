"""Events: JSON objects and CloudEvents, matched with predicates (paper 004, Le Subscribe)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from tidings.atoms import AtomShape, Event
from tidings.core.text import escape_html, shorten
from tidings.events import json_decoder
from tidings.events.schema.event_schema import EventSchema
from tidings.kinds import (
    JSON,
    Claims,
    Environment,
    Example,
    Kind,
    LanguageGuide,
    Part,
    PublicationSummary,
    Reader,
    Rehearsal,
    summarize_fields,
)
from tidings.model import Publication

if TYPE_CHECKING:
    from tidings.matching.compiler.language import Language

CLOUD_EVENT = "application/cloudevents+json"
JSON_LINES = "application/jsonl"

MOST_FIELDS = 100
"""Maximum number of fields of an event in a summary."""


class Events(Kind):
    name = "event"
    shape = AtomShape.FLAT
    media_types = (JSON, CLOUD_EVENT)
    line_types = {"application/x-ndjson": JSON, JSON_LINES: JSON, "application/x-jsonlines": JSON}
    languages = ("predicates",)
    suffixes = {".json": JSON}
    titles = {JSON: "JSON", JSON_LINES: "JSON Lines: one event per line", CLOUD_EVENT: "CloudEvent"}
    sample = Part(JSON, b"{}")
    is_quick = True
    has_id_field = True

    def language(self, name: str) -> Language:
        from tidings.events.predicate_compiler import PredicateLanguage

        return PredicateLanguage()

    def guide(self, name: str) -> LanguageGuide:
        from tidings.events.samples import PREDICATES

        return PREDICATES

    def generate_examples(self, name: str, schema: EventSchema) -> Iterable[Example]:
        from tidings.events.samples import generate_event_examples

        return generate_event_examples(schema)

    def rehearse(self) -> Rehearsal:
        from tidings.events.samples import REHEARSAL

        return REHEARSAL

    def decode(self, body: bytes, media_type: str, schema: EventSchema | None = None) -> Event:
        return json_decoder.decode(body, schema)

    def check(self, body: bytes, media_type: str, schema: EventSchema | None = None) -> Claims:
        event = json_decoder.decode(body, schema)
        audience = json_decoder.audience_of(event)
        return Claims(json_decoder.cloud_event_id(event, body), json_decoder.source_of(event), audience)

    def find_id(self, body: bytes, id_field: str) -> str | None:
        return json_decoder.publication_id(body, id_field)

    def open(self, environment: Environment) -> Reader:
        from tidings.events.reader import EventReader

        return EventReader(environment)

    def summarize(self, publication: Publication, about: Sequence[str] = ()) -> PublicationSummary:
        event = json_decoder.decode(publication.body)
        fields = {path: [str(value) for value in values] for path, values in event.items()}
        return summarize_fields(
            fields, _table([(path, ", ".join(values)) for path, values in fields.items()])
        )

    def sniff(self, text: str) -> str | None:
        """Return JSON for unrecognised content as well: its error message explains the problem."""
        if is_lines(text):
            return JSON_LINES
        return CLOUD_EVENT if '"specversion"' in text[:2_000] else JSON


def is_lines(text: str) -> bool:
    """Return whether a text has a JSON object on its first line, and further lines."""
    first, _, others = text.strip().partition("\n")
    if not others.strip():
        return False
    try:
        return isinstance(json.loads(first), dict)
    except (ValueError, RecursionError):
        return False


def _table(rows: Sequence[tuple[str, str]]) -> str:
    """Return the fields of an event as an HTML table."""
    shown = [(shorten(name, 200), shorten(value, 1_000)) for name, value in rows[:MOST_FIELDS]]
    note = f"<p>and {len(rows) - MOST_FIELDS:,} more fields</p>" if len(rows) > MOST_FIELDS else ""
    cells = (f"<tr><th>{escape_html(name)}</th><td>{escape_html(value)}</td></tr>" for name, value in shown)
    return f"<table>{''.join(cells)}</table>{note}"


EVENTS = Events()

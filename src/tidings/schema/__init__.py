"""The integrated event schema: what events may say, and how the schema grows.

`tidings.schema.files` reads and writes schemas as YAML, `tidings.schema.rows` as rows of a table.
"""

from tidings.schema.consistency import check, violations
from tidings.schema.domains import Domain, DomainKind
from tidings.schema.event_schema import Attribute, EventSchema, EventType, Member, SchemaParts, View
from tidings.schema.extension import Change, Extended, extend
from tidings.schema.names import EVENT_TYPE
from tidings.schema.summary import summary

__all__ = [
    "EVENT_TYPE",
    "Attribute",
    "Change",
    "Domain",
    "DomainKind",
    "EventSchema",
    "EventType",
    "Extended",
    "Member",
    "SchemaParts",
    "View",
    "check",
    "extend",
    "summary",
    "violations",
]

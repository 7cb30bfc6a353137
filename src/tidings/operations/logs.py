"""Structured logging: one line per event, as text or JSON, with ids and without secrets.

    log = logs.get_logger("tidings.stream")
    log.info("batch", batch=7, publications=100)
    with logs.bind_fields(publication="p-1"): ...       everything logged in here has the id

Records of Python's own logging take the same way. No code logs secrets on purpose; `redact_fields` removes those that
slip in: tokens, passwords, and the paths of URLs, which may belong to a feed or a webhook.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Literal, TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

Format = Literal["console", "json"]
Level = Literal["debug", "info", "warning", "error"]

HIDDEN = "***"
SECRET_FIELDS = frozenset(
    {"token", "secret", "password", "authorization", "cookie", "target", "address", "url", "headers"}
)
"""Fields whose values are always redacted."""

_PATTERNS = (
    (re.compile(r"tdg_[A-Za-z0-9_-]+"), f"tdg_{HIDDEN}"),
    (re.compile(r"whsec_[A-Za-z0-9+/=_-]+"), f"whsec_{HIDDEN}"),
    (re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9+/=._~-]+"), rf"\1 {HIDDEN}"),
    (re.compile(r"/(feeds|opml|websub)/[^\s\"'<>{]+"), rf"/\1/{HIDDEN}"),
    (
        re.compile(r"\b(https?)://(?:[^\s/@\"']*@)?([^\s/\"'<>?#]+)(?:[/?#][^\s\"'<>,;)]+)"),
        rf"\1://\2/{HIDDEN}",
    ),
    (re.compile(r"\b([a-z][a-z0-9+.-]*)://([^\s/@:\"']*):[^\s/@\"']*@"), rf"\1://\2:{HIDDEN}@"),
)
"""Patterns of secrets, with their replacements."""

PLAIN_SCHEMES = frozenset({"http", "https", "sqlite", "postgresql", "spark", "sc", "k8s", "kafka", "file"})
_TARGET = re.compile(r"\b([a-z][a-z0-9+.-]*)://[^\s\"'<>]+")


def get_logger(name: str) -> Any:
    """Return a logger that accepts fields."""
    return structlog.stdlib.get_logger(name)


def bind_fields(**ids: str) -> AbstractContextManager[Any]:
    """Add ids to everything that any module logs inside the `with` block."""
    return structlog.contextvars.bound_contextvars(**ids)


@contextmanager
def configure_logging(level: Level = "warning", format: Format = "console") -> Iterator[None]:
    """Log to standard error, from a level on, until the end of the `with` block."""
    root = logging.getLogger()
    handlers_before, level_before = root.handlers, root.level
    root.handlers = [_handler(format)]
    root.setLevel(level.upper())
    try:
        yield
    finally:
        root.handlers = handlers_before
        root.setLevel(level_before)
        structlog.reset_defaults()


def _handler(format: Format) -> logging.Handler:
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.PositionalArgumentsFormatter(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    handler = StderrStream()
    handler.addFilter(_is_not_py4j_noise)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.stdlib.ExtraAdder()],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *_rendering(format)],
        )
    )
    return handler


def _rendering(format: Format) -> list[Processor]:
    if format == "json":
        return [
            structlog.processors.format_exc_info,
            redact_fields,
            structlog.processors.JSONRenderer(ensure_ascii=False),
        ]
    plain = structlog.dev.plain_traceback
    return [
        structlog.processors.format_exc_info,
        redact_fields,
        structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=plain),
    ]


class StderrStream(logging.StreamHandler[TextIO]):
    """Handler for the current standard error, which is replaced by a file while Spark starts."""

    def __init__(self) -> None:
        super().__init__(sys.stderr)

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stderr
        super().emit(record)


def _is_not_py4j_noise(record: logging.LogRecord) -> bool:
    """Drop records of Py4J: it logs each call to a dead JVM in full, and the stream's failure is logged once."""
    return "py4j" not in record.pathname and not record.name.startswith("py4j")


def redact_fields(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Redact secrets in the fields of a log event."""
    return {name: HIDDEN if name in SECRET_FIELDS else _redact_value(value) for name, value in event.items()}


def _redact_value(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: HIDDEN if name in SECRET_FIELDS else _redact_value(inner) for name, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [_redact_value(inner) for inner in value]
    return redact_text(value) if isinstance(value, str) else value


def redact_text(text: str) -> str:
    """Redact everything in a text that looks like a secret."""
    for pattern, replacement in _PATTERNS:
        text = pattern.sub(replacement, text)
    return _TARGET.sub(
        lambda match: match[0] if match[1] in PLAIN_SCHEMES else f"{match[1]}://{HIDDEN}", text
    )

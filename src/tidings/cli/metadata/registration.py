"""Registration of many metadata documents, and of those that `tidings run` applies later."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from tidings.cli import inputs, output
from tidings.cli.output import Output, exit_if_rejects
from tidings.core.text import plural
from tidings.errors import InputError
from tidings.graphs.rdf.media_types import FEEDS, SUFFIXES, graph_media_type_of
from tidings.metadata.log import LogDraft, Operation
from tidings.metadata.schema.findings import MAX_SHOWN, MetadataError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidings.metadata.provider.provider import Provider
    from tidings.metadata.sql.transaction import RegistrationResult


# Many documents are the files of a folder, or one document per line:
#
#     {"uri": "http://example.org/doc.rdf", "media_type": "text/turtle", "body": "<#host> a ..."}
#
# The media type is optional if the URI ends in a known suffix.


BATCH_SIZE = 1_000
"""Number of documents that are appended to the log in one transaction."""
LINE_FORMAT = '{"uri": ..., "media_type": ..., "body": ...}'
ACCEPTED_SUFFIXES = ", ".join(ending for ending, kind in SUFFIXES.items() if kind not in FEEDS)


@dataclass(frozen=True, slots=True)
class InputDocument:
    """A document or the error in its place, and where it was read."""

    where: str
    document: LogDraft | InputError


def read_document_batches(place: str, base: str | None) -> Iterator[list[InputDocument]]:
    """Read documents in batches: those of a folder, whose URIs begin with `base`, or those of lines."""
    if inputs.is_line_input(place):
        if base is not None:
            raise InputError("--base is for the files of a folder: lines contain their URIs")
        for lines in inputs.read_line_batches(place):
            yield from _split_batches(InputDocument(line.where, _parse_line(line.body)) for line in lines)
    else:
        yield from _split_batches(_read_folder(Path(place), base))


def _split_batches(documents: Iterable[InputDocument]) -> Iterator[list[InputDocument]]:
    remaining = iter(documents)
    while batch := list(islice(remaining, BATCH_SIZE)):
        yield batch


def _read_folder(folder: Path, base: str | None) -> Iterator[InputDocument]:
    if not folder.is_dir():
        accepted = "a folder, a .jsonl file (.ndjson, .jsonl.gz), or - for standard input"
        raise InputError(f"no folder '{folder}'", accepted=accepted)
    if base is None:
        accepted = "--base IRI, to which the path in the folder is appended"
        raise InputError("the URIs of the documents are missing", accepted=accepted)
    for path in sorted(folder.rglob("*")):
        media_type = graph_media_type_of(path.name)
        if path.is_file() and media_type is not None and media_type not in FEEDS:
            yield InputDocument(str(path), _read_file(path, base, folder, media_type))


def _read_file(path: Path, base: str, folder: Path, media_type: str) -> LogDraft | InputError:
    uri = base + quote(path.relative_to(folder).as_posix())
    try:
        return LogDraft(Operation.REGISTER, uri, media_type, path.read_bytes())
    except OSError as problem:
        return InputError("cannot read the file", received=problem.strerror or str(problem))


def _parse_line(line: bytes) -> LogDraft | InputError:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as problem:
        return InputError(f"this line is not JSON: {problem}", accepted=LINE_FORMAT)
    fields = [record.get(name) for name in ("uri", "media_type", "body")] if isinstance(record, dict) else []
    match fields:
        case [str(uri), str() | None as media_type, str(body)]:
            return _build_draft(uri, media_type or graph_media_type_of(uri), body)
        case _:
            received = line[:80].decode("utf-8", "replace")
            return InputError("this line is not a document", received=received, accepted=LINE_FORMAT)


def _build_draft(uri: str, media_type: str | None, body: str) -> LogDraft | InputError:
    if media_type is None:
        accepted = f"a media_type, or a URI that ends in {ACCEPTED_SUFFIXES}"
        return InputError("the media type of this document is unknown", received=uri, accepted=accepted)
    # Half a surrogate pair is not UTF-8: the decoder of the bytes refuses it.
    return LogDraft(Operation.REGISTER, uri, media_type, body.encode("utf-8", "surrogatepass"))


def append_draft(provider: Provider, draft: LogDraft, out: Output) -> None:
    """Append an entry to the log, and leave it to `tidings run` to apply it."""
    [position] = provider.append([draft])
    cells = f"position {position}", ("for tidings run", "dim")
    out.print_record({"uri": draft.uri, "position": position}, (draft.uri, "bold cyan"), *cells)


def register_many(provider: Provider, place: str, base: str | None, later: bool, out: Output) -> None:
    """Append documents to the log in batches; apply each batch immediately, unless that is deferred."""
    tally = RegistrationTally()
    for batch in read_document_batches(place, base):
        for source, outcome in zip(batch, _append_batch(provider, batch), strict=True):
            tally.refused += isinstance(outcome, InputError)
            tally.registered += isinstance(outcome, int)
            _print_outcome(source, outcome, out)
        if not later:
            for done in provider.catch_up():
                tally.count(done)
    if not out.as_json:
        output.print_line(tally.describe(later))
    exit_if_rejects(tally.refused)


def _append_batch(provider: Provider, batch: Sequence[InputDocument]) -> list[int | InputError]:
    """Append the documents of a batch; return the position in the log or the error of each."""
    drafts = [source.document for source in batch if isinstance(source.document, LogDraft)]
    outcomes = iter(provider.append_valid(drafts))
    return [next(outcomes) if isinstance(source.document, LogDraft) else source.document for source in batch]


@dataclass
class RegistrationTally:
    """Counts of registered and refused documents, and of changes in the results of rules."""

    registered: int = 0
    refused: int = 0
    moved: Counter[str] = field(default_factory=Counter)

    def count(self, done: RegistrationResult) -> None:
        for kind in ("entered", "changed", "left"):
            self.moved[kind] += len(getattr(done.outcome, kind))

    def describe(self, later: bool) -> str:
        refused = f", {self.refused:,} refused" if self.refused else ""
        done, then = ("in the log", "; tidings run applies them") if later else ("registered", "")
        moves = "".join(f", {count:,} {kind}" for kind, count in self.moved.items() if count)
        return f"{plural(self.registered, 'document')} {done}{refused}{moves}{then}"


def _print_outcome(source: InputDocument, outcome: int | InputError, out: Output) -> None:
    if isinstance(outcome, InputError):
        _print_refusal(source.where, outcome, out)
    elif out.as_json and isinstance(source.document, LogDraft):
        output.print_json({"uri": source.document.uri, "position": outcome})


def _print_refusal(where: str, problem: InputError, out: Output) -> None:
    """Print one line for each error of a document."""
    if out.as_json:
        output.print_json({"document": where, **problem.facts()}, stderr=True)
    elif isinstance(problem, MetadataError):
        for finding in problem.findings[:MAX_SHOWN]:
            output.print_refusal(where, finding.error().message())
    else:
        output.print_refusal(where, problem.message(), problem.hint)

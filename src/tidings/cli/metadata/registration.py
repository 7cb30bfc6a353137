"""Documents on their way into the log of metadata: many at once, and those that `tidings run` applies."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import typer

from tidings.cli import inputs, output
from tidings.core.text import plural
from tidings.errors import InputError
from tidings.graphs.rdf.media_types import FEEDS, SUFFIXES, graph_media_type_of
from tidings.metadata.log import LogDraft, Operation
from tidings.metadata.schema.findings import MAX_SHOWN, MetadataError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidings.metadata.provider.provider import Provider
    from tidings.metadata.sql.transaction import RegistrationResult


# Many metadata documents, wherever they stand: the files of a folder, or a document a line.
#
#     {"uri": "http://example.org/doc.rdf", "media_type": "text/turtle", "body": "<#host> a ..."}
#
# A line may leave its media type out if the end of the URI says it.


BATCH_SIZE = 1_000
"""How many documents go into the log in one transaction."""
LINE_FORMAT = '{"uri": ..., "media_type": ..., "body": ...}'
ACCEPTED_SUFFIXES = ", ".join(ending for ending, kind in SUFFIXES.items() if kind not in FEEDS)


@dataclass(frozen=True, slots=True)
class InputDocument:
    """A document, or why there is none; and where it stands."""

    where: str
    document: LogDraft | InputError


def read_document_batches(place: str, base: str | None) -> Iterator[list[InputDocument]]:
    """The documents of a folder, whose URIs begin with `base`, or of lines, in batches as they come."""
    if inputs.is_line_input(place):
        if base is not None:
            raise InputError("--base is for the files of a folder: lines have their URIs")
        for lines in inputs.read_line_batches(place):
            yield from _in_batches(InputDocument(line.where, _of_line(line.body)) for line in lines)
    else:
        yield from _in_batches(_of_folder(Path(place), base))


def _in_batches(given: Iterable[InputDocument]) -> Iterator[list[InputDocument]]:
    rest = iter(given)
    while batch := list(islice(rest, BATCH_SIZE)):
        yield batch


def _of_folder(folder: Path, base: str | None) -> Iterator[InputDocument]:
    if not folder.is_dir():
        accepted = "a folder, a .jsonl file (.ndjson, .jsonl.gz), or - for standard input"
        raise InputError(f"no folder '{folder}'", accepted=accepted)
    if base is None:
        raise InputError(
            "what are the documents of a folder called?",
            accepted="--base IRI, to which the path in it is added",
        )
    for path in sorted(folder.rglob("*")):
        media_type = graph_media_type_of(path.name)
        if path.is_file() and media_type is not None and media_type not in FEEDS:
            yield InputDocument(str(path), _of_file(path, base, folder, media_type))


def _of_file(path: Path, base: str, folder: Path, media_type: str) -> LogDraft | InputError:
    uri = base + quote(path.relative_to(folder).as_posix())
    try:
        return LogDraft(Operation.REGISTER, uri, media_type, path.read_bytes())
    except OSError as problem:
        return InputError("the file cannot be read", received=problem.strerror or str(problem))


def _of_line(line: bytes) -> LogDraft | InputError:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as problem:
        return InputError(f"this line is no JSON: {problem}", accepted=LINE_FORMAT)
    fields = [record.get(name) for name in ("uri", "media_type", "body")] if isinstance(record, dict) else []
    match fields:
        case [str(uri), str() | None as media_type, str(body)]:
            return _draft(uri, media_type or graph_media_type_of(uri), body)
        case _:
            received = line[:80].decode("utf-8", "replace")
            return InputError("this line is no document", received=received, accepted=LINE_FORMAT)


def _draft(uri: str, media_type: str | None, body: str) -> LogDraft | InputError:
    if media_type is None:
        accepted = f"a media_type, or a URI that ends in {ACCEPTED_SUFFIXES}"
        return InputError("no idea what is in this document", received=uri, accepted=accepted)
    # Half a surrogate pair is no UTF-8: whoever reads the bytes says so.
    return LogDraft(Operation.REGISTER, uri, media_type, body.encode("utf-8", "surrogatepass"))


def register_later(provider: Provider, draft: LogDraft, as_json: bool) -> None:
    """Something for the log, that is all."""
    [position] = provider.append([draft])
    if as_json:
        output.print_json({"uri": draft.uri, "position": position})
    else:
        output.print_line((draft.uri, "bold cyan"), f"position {position}", ("for tidings run", "dim"))


def register_many(provider: Provider, place: str, base: str | None, later: bool, as_json: bool) -> None:
    """Documents in batches, as they come; each batch is in the log, and applied unless that is for later."""
    tally = RegistrationTally()
    for batch in read_document_batches(place, base):
        outcomes = _offered(provider, batch)
        for given, outcome in zip(batch, outcomes, strict=True):
            tally.refused += isinstance(outcome, InputError)
            tally.registered += isinstance(outcome, int)
            _print_outcomes(given, outcome, as_json)
        if not later:
            for done in provider.catch_up():
                tally.count(done)
    if not as_json:
        output.print_line(tally.describe(later))
    if tally.refused:
        raise typer.Exit(output.EXIT_WITH_REJECTS)


def _offered(provider: Provider, batch: Sequence[InputDocument]) -> list[int | InputError]:
    """What became of each: where it stands in the log, or why it does not."""
    drafts = [given.document for given in batch if isinstance(given.document, LogDraft)]
    outcomes = iter(provider.append_valid(drafts))
    return [next(outcomes) if isinstance(given.document, LogDraft) else given.document for given in batch]


@dataclass
class RegistrationTally:
    """What became of many documents so far."""

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


def _print_outcomes(given: InputDocument, outcome: int | InputError, as_json: bool) -> None:
    if isinstance(outcome, InputError):
        _refuse(given.where, outcome, as_json)
    elif as_json and isinstance(given.document, LogDraft):
        output.print_json({"uri": given.document.uri, "position": outcome})


def _refuse(where: str, problem: InputError, as_json: bool) -> None:
    """A line for all that is wrong with a document."""
    if as_json:
        sys.stderr.write(json.dumps({"document": where, **problem.facts()}, ensure_ascii=False) + "\n")
    elif isinstance(problem, MetadataError):
        for finding in problem.findings[:MAX_SHOWN]:
            output.print_refusal(where, finding.error().message())
    else:
        output.print_refusal(where, problem.message(), problem.hint)

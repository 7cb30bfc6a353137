"""Compiling ahead: everything that is compiled on first use is used once, and kept on disk from then on.

Otherwise the first event of a new installation would wait for it, for a minute or so. Readers of publications are
compiled meanwhile by another process (`python -m tidings.service.precompilation`): the compiler uses one core only.
"""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from tidings.errors import SetupError
from tidings.kinds import JSON, Environment, Rehearsal, kinds
from tidings.service import sample_auctions

if TYPE_CHECKING:
    from tidings.atoms import Event
    from tidings.events.schema.event_schema import EventSchema

EVENTS = 60
RANGES = 1200


def precompile() -> int:
    """Match a few auctions as a task of the stream would, with a schema and without; the number of matches."""
    from tidings.events.schema.event_schema import EventSchema
    from tidings.events.schema.extension import extend
    from tidings.events.schema.files import parts_of_text

    with subprocess.Popen([sys.executable, "-m", __name__]) as reading:
        matches = _in_every_layout()
    if reading.returncode:
        raise SetupError(
            "reading publications cannot be compiled", received=f"exit code {reading.returncode}"
        )
    schema = EventSchema()
    for name in (sample_auctions.FURNITURE, sample_auctions.CURIOSITIES):
        schema = extend(schema, parts_of_text(sample_auctions.schema_text(name))).schema
    wishes = [wish.text for wish in (*sample_auctions.SUBSCRIPTIONS, sample_auctions.LATER_SUBSCRIPTION)]
    auctions = [json.dumps(item).encode() for item in islice(sample_auctions.items(seed=1), EVENTS)]
    matches += match_rehearsal(Rehearsal("predicates", wishes, JSON, auctions), schema)
    return matches + sum(map(match_rehearsal, _rehearsals())) + _from_files()


def precompile_decoding() -> None:
    """Decode the publications that each kind rehearses with."""
    from tidings.atoms import AtomShape
    from tidings.spark.decoder import Decoder

    environment = Environment({AtomShape.FLAT: ["price", "title"]})
    for rehearsal in _rehearsals():
        ends = np.cumsum([len(body) for body in rehearsal.bodies])
        buffer = np.frombuffer(b"".join(rehearsal.bodies), np.uint8)
        starts = np.concatenate(([0], ends[:-1]))
        Decoder(environment).decode(rehearsal.media_type, buffer, starts, ends)


def _rehearsals() -> list[Rehearsal]:
    return [rehearsal for kind in kinds() if (rehearsal := kind.rehearse()) is not None]


def match_rehearsal(rehearsal: Rehearsal, schema: EventSchema | None = None) -> int:
    """Match publications as a task of the stream would; return the number of matches."""
    from tidings.events.schema.files import dump
    from tidings.matching.compiler.compilation import compile_many
    from tidings.matching.index.index import Index
    from tidings.model import Subscription
    from tidings.spark.stream.match_task import MatchJob, build_match_stage

    subscriptions = [
        Subscription(f"s{i}", "warm", rehearsal.language, text) for i, text in enumerate(rehearsal.texts)
    ]
    with TemporaryDirectory() as folder:
        index = Index.create(Path(folder, "segments"))
        for subscription in subscriptions:
            index.add(compile_many([subscription], schema))
        index.remove([subscriptions[-1].id])
        version = index.add(compile_many([subscriptions[-1]], schema))
        job = MatchJob(str(index.folder), version, dump(schema) if schema else None, "id", folder, True)
        [report] = build_match_stage(job)([_rows(rehearsal)])
    return int(json.loads(report["report"][0].as_py())["found"])


def _in_every_layout() -> int:
    """Match one event, many, and after a removal, with enough clauses for the layout of millions."""
    from tidings.matching.compiler.compilation import compile_many
    from tidings.matching.index.index import Index
    from tidings.model import Subscription

    quotes = [f"symbol = 'S{n % 5}' and price > {n}" for n in range(RANGES)]
    ranges = [
        " and ".join(f"a{(n + 3 * k) % 20} between {n} and {n + 9}" for k in range(8)) for n in range(RANGES)
    ]
    event: Event = {"symbol": ["S1"], "price": [300], **{f"a{k}": [200] for k in range(20)}}
    matches = 0
    for texts in (quotes, ranges):
        index = Index.create()
        index.add(compile_many(Subscription(str(n), "warm", "predicates", t) for n, t in enumerate(texts)))
        index.remove(["0"])
        matches += len(index.match([event])) + len(index.match([event] * EVENTS * 5))
    return matches


def _from_files() -> int:
    """Match files as tasks of the batch job would: one with fewer matches than subscriptions, one with more."""
    from tidings.matching.compiler.compilation import compile_many
    from tidings.matching.index.index import Index
    from tidings.model import Subscription
    from tidings.spark.batch.batch_task import BatchTaskJob, match_chunk
    from tidings.spark.sources.chunks import ChunkList, plan_chunks
    from tidings.spark.sources.files import Location

    texts = [f"price > {n}" for n in range(EVENTS)]
    with TemporaryDirectory() as folder:
        index = Index.create(Path(folder, "segments"))
        index.add(compile_many(Subscription(str(n), "warm", "predicates", t) for n, t in enumerate(texts)))
        events, place = Path(folder, "events"), Location.of(folder)
        events.mkdir()
        for name, count in (("few", 2), ("many", EVENTS)):
            (events / f"{name}.jsonl").write_text('{"price": 9}\n' * count)
        job = BatchTaskJob(
            place.uri, place.uri, ChunkList("", ()), str(index.folder), index.version, "id", None
        )
        return sum(
            match_chunk(job, number, chunk).matches for number, chunk in enumerate(plan_chunks(events))
        )


def _rows(rehearsal: Rehearsal) -> Any:
    """Return publications as the journal hands them to a task."""
    import pyarrow as pa

    count = len(rehearsal.bodies)
    names = [f"p{i}" for i in range(count)]
    columns = {"position": range(count), "publication": names, "name": names, "body": rehearsal.bodies}
    columns |= {"media_type": [rehearsal.media_type] * count, "problem": [None] * count}
    return pa.RecordBatch.from_pydict({name: list(values) for name, values in columns.items()})


if __name__ == "__main__":
    precompile_decoding()

"""python -m benchmarks.json_decoding: readers of the same stock events, in CPU time of one thread.

Our decoder returns atoms and ids. Arrow's reader returns a table, the others a dictionary per event; converting those
to atoms is not counted. orjson is measured if it is installed.
"""

from __future__ import annotations

import importlib
import io
import json
import statistics
import time
from collections.abc import Callable
from importlib.util import find_spec

import numpy as np
import pyarrow as pa
import pyarrow.json

from tidings.events.json_batch_decoder import decode_many, split_lines
from tidings.events.json_decoder import decode
from tidings.events.kernel_tables import Conformity, PathTable
from tidings.events.schema.event_schema import Attribute, EventSchema, EventType, Member

EVENTS, BATCH, RUNS = 400_000, 20_000, 7
NUMBERS = ("price", "open", "high", "low", "close", "volume")
SCHEMA = EventSchema.of(
    [],
    [Attribute("symbol", "string"), *(Attribute(name, "numeric") for name in NUMBERS)],
    [EventType("quote", tuple(Member(name, mandatory=True) for name in ("symbol", *NUMBERS)))],
)


def main() -> None:
    lines = stock_lines(EVENTS)
    print(f"{EVENTS:,} events of {len(lines[0])} bytes, in batches of {BATCH:,}; median of {RUNS} runs")
    ours = 0.0
    for name, read in readers(lines).items():
        seconds = statistics.median(measure(read) for _ in range(RUNS))
        ours = ours or seconds
        print(f"{name:30} {EVENTS / seconds / 1e6:6.2f} million events/s   time x {seconds / ours:.1f}")


def stock_lines(count: int) -> list[bytes]:
    random = np.random.default_rng(7)
    price = random.integers(1_000, 50_000, count)
    moves = random.integers(0, 500, (4, count))
    columns = (price, price - moves[0], price + moves[1], price - moves[2], price + moves[3])
    rows = zip(random.integers(0, 5000, count), *columns, random.integers(0, 10**6, count), strict=True)
    return [_line(i, *row) for i, row in enumerate(rows)]


def _line(i: int, symbol: int, *numbers: int) -> bytes:
    values = ",".join(f'"{name}":{value}' for name, value in zip(NUMBERS, numbers, strict=True))
    return f'{{"id":"e{i}","symbol":"S{symbol:04d}",{values}}}'.encode()


def readers(lines: list[bytes]) -> dict[str, Callable[[], object]]:
    batches = [b"\n".join(lines[i : i + BATCH]) for i in range(0, len(lines), BATCH)]
    buffers = [np.frombuffer(batch, np.uint8) for batch in batches]
    fields = [("id", pa.string()), ("symbol", pa.string()), *((name, pa.int64()) for name in NUMBERS)]
    explicit = pyarrow.json.ParseOptions(explicit_schema=pa.schema(fields))
    table, conformity = PathTable(["symbol", *NUMBERS]), Conformity(SCHEMA, ["symbol", *NUMBERS], "id")
    typed = [line[:-1] + b',"event_type":"quote"}' for line in lines]
    checked = [np.frombuffer(b"\n".join(typed[i : i + BATCH]), np.uint8) for i in range(0, len(typed), BATCH)]
    ways: dict[str, Callable[[], object]] = {
        "split_lines + decode_many": lambda: [_ours(buffer, table) for buffer in buffers],
        "Arrow, types inferred": lambda: [_arrow(batch, None) for batch in batches],
        "Arrow, explicit types": lambda: [_arrow(batch, explicit) for batch in batches],
        "json.loads": lambda: sum(len(json.loads(line)) for line in lines),
        "the definition": lambda: sum(len(decode(line)) for line in lines),
        "ours, with a schema": lambda: [_ours(buffer, conformity.paths, conformity) for buffer in checked],
        "the definition, with a schema": lambda: sum(len(decode(line, SCHEMA)) for line in typed),
    }
    if find_spec("orjson"):
        loads = importlib.import_module("orjson").loads
        ways["orjson.loads"] = lambda: sum(len(loads(line)) for line in lines)
    return ways


def _ours(buffer: np.ndarray, table: PathTable, conformity: Conformity | None = None) -> int:
    lines = split_lines(buffer)
    return decode_many(buffer, lines.starts, lines.ends, table, "id", conformity).atoms.count


def _arrow(batch: bytes, parsing: pyarrow.json.ParseOptions | None) -> int:
    options = pyarrow.json.ReadOptions(use_threads=False)
    return pyarrow.json.read_json(io.BytesIO(batch), options, parsing).num_rows


def measure(read: Callable[[], object]) -> float:
    start = time.process_time()
    read()
    return time.process_time() - start


if __name__ == "__main__":
    main()

"""What the relational engine is for: more subscriptions than the memory of the driver holds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.relational import corpus

pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.xdist_group("limited memory")]

ROOT = Path(__file__).parents[2]
SUBSCRIPTIONS, PART, MEGABYTES = 400_000, 10_000, 160


def match_within_memory(engine, folder):
    words = (sys.executable, "-m", "tests.relational.limited_memory", engine, folder, MEGABYTES)
    return subprocess.run([*map(str, words)], cwd=ROOT, capture_output=True, text=True, timeout=600)


@pytest.mark.timeout(900)
@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not enforce RLIMIT_DATA")
def test_relational_engine_matches_where_index_does_not_fit_into_memory(tmp_path):
    """The same input under the same limit: the index ends with a MemoryError, the joins lose nothing."""
    texts = {f"s{n}": f"/q/s = 'S{n // 3:06d}' and /q/p{'<>'[n % 2]} {n % 11}" for n in range(SUBSCRIPTIONS)}
    lines = [
        json.dumps({"id": id, "subscriber": "ana", "language": "xpath", "text": text})
        for id, text in texts.items()
    ]
    (tmp_path / "subs").mkdir()
    for first in range(0, SUBSCRIPTIONS, PART):
        (tmp_path / "subs" / f"{first:06d}.jsonl").write_text("\n".join(lines[first : first + PART]))
    (tmp_path / "all.jsonl").write_text("\n".join(lines))
    bodies = {f"d{n}.xml": f"<q><s>S{n * 79_190:06d}</s><p>{n + 4}</p></q>".encode() for n in range(2)}
    (tmp_path / "docs").mkdir()
    for name, body in bodies.items():
        (tmp_path / "docs" / name).write_bytes(body)

    indexed = match_within_memory("index", tmp_path)
    assert indexed.returncode == 1 and "MemoryError" in indexed.stderr, indexed.stderr
    joined = match_within_memory("relational", tmp_path)
    assert joined.returncode == 0, joined.stderr
    pairs = [tuple(pair) for pair in json.loads(joined.stdout.splitlines()[-1])]
    assert len(pairs) == len(set(pairs))
    assert set(pairs) == corpus.expected_pairs(bodies, texts) != set()

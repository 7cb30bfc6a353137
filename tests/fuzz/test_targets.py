"""Every parser has a fuzz target, and a few hundred mutated inputs for each target find no bug.

`make fuzz` runs longer, guided by coverage.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fuzz import language_targets, publication_targets, web_targets
from fuzz.publication_targets import ALIASES
from fuzz.registry import TARGETS
from fuzz.target import Target
from tests.support.paths import ROOT
from tidings.ingest.submission import accepted_media_types
from tidings.kinds import LANGUAGES

SOURCES = ROOT / "src" / "tidings"
INPUTS = 150

PARSERS = frozenset(
    {
        *("etree.fromstring", "etree.parse", "etree.iterparse", "etree.XMLParser", "etree.XMLPullParser"),
        *(
            "expat.ParserCreate",
            "ParserCreate",
            "parseString",
            "loads",
            "json.loads",
            "JSONDecoder",
            "ox.parse",
        ),
        *(
            "yaml.compose",
            "yaml.load",
            "yaml.safe_load",
            "tomllib.loads",
            "tomllib.load",
            "csv.reader",
            "Lark",
        ),
        *(
            "pq.ParquetFile",
            "nh3.clean",
            "html.unescape",
            "b64decode",
            "base64.b64decode",
            "urlsplit",
            "ZoneInfo",
        ),
        *("parsedate_to_datetime", "unquote_to_bytes", "ip_address"),
    }
)
"""Calls that parse bytes or text from outside."""

OWN = {
    "metadata/replication/log_follower.py": "compares addresses that metadata/replication/peer.py has checked",
    "client/request_body.py": "reads what the caller sends, to name its id or the refused line; the service checks it",
    "metadata/sql/transaction.py": "reads rows of the store, which it wrote itself",
    "delivery/destination_types/apprise_process.py": "reads the answers of its own worker process",
    "delivery/destination_types/apprise_worker.py": "reads the requests of its own parent process",
    "delivery/destination_types/http_sender.py": "splits addresses after host_of, which has a target",
    "feeds/hub/hub.py": "splits addresses after host_of, which has a target",
    "feeds/outbound/addresses.py": "reads a setting of the operator's, checked when settings are loaded",
    "cli/metadata/replication.py": "reads files that `tidings provider` wrote, for the operator",
    "cli/objects/changes.py": "reads rows of the outbox that triggers wrote",
    "cli/metadata/query.py": "reads answers that it has just computed",
    "service/precompilation.py": "reads a report of its own Spark task",
    "objects/outbox/database.py": "reads the address of the operator's own database",
    "objects/outbox/tables.py": "reads rows of the outbox that triggers wrote",
    "reference_data/enrichment.py": "reads rows that reference_data/table_rows.py wrote",
    "service/backup.py": "reads backups, which the operator made and restores",
    "operations/http_client.py": "splits addresses after host_of, which has a target",
}
OWN_FOLDERS = {
    "metadata/spark/": "checkpoints and reports of its own Spark jobs",
    "matching/": "segments of the index, which it wrote itself",
    "relational/": "tables and reports of its own Spark jobs",
    "spark/": "checkpoints and reports of its own Spark jobs",
    "store/": "rows of the store, which it wrote itself",
}
"""Modules that parse data of this program or its operator, with the reason."""


@pytest.mark.parametrize("name", TARGETS)
def test_target_accepts_some_of_its_samples(name: str) -> None:
    """A target that rejects all samples would not reach the code behind the first check."""
    target = TARGETS[name]
    assert any(_is_accepted(target, sample) for sample in target.seeds)


def _is_accepted(target: Target, sample: bytes) -> bool:
    try:
        target.run(sample)
    except target.accepts:
        return False
    return True


def test_every_media_type_and_language_has_target() -> None:
    published = {f"publish:{ALIASES.get(media_type, media_type)}" for media_type in accepted_media_types()}
    assert published <= TARGETS.keys()
    assert LANGUAGES.keys() <= TARGETS.keys()


def test_every_parsing_module_is_reached_by_target() -> None:
    run = [sys.executable, "-m", "fuzz.reached"]
    process = subprocess.run(run, cwd=ROOT, env=_environment(), capture_output=True, text=True, check=True)
    reached, parsing = {*process.stdout.split()}, {*_parsing()}
    missing = {module for module in parsing - reached if not _is_own(module)}
    assert missing == set(), "give it a target in fuzz/, or a reason in OWN"
    assert OWN.keys() - parsing == set() and OWN.keys() & reached == set(), "remove it from OWN"


def _is_own(module: str) -> bool:
    return module in OWN or module.startswith(tuple(OWN_FOLDERS))


def _parsing() -> Iterator[str]:
    for path in SOURCES.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if _NAMES.search(text) and any(call in PARSERS for call in _calls(ast.parse(text))):
            yield path.relative_to(SOURCES).as_posix()


_NAMES = re.compile("|".join(sorted({name.rpartition(".")[2] for name in PARSERS})))


def _calls(tree: ast.Module) -> Iterator[str]:
    return (ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call))


def _environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(ROOT)}


@pytest.mark.parametrize(
    "targets",
    [publication_targets.TARGETS, language_targets.TARGETS, web_targets.TARGETS],
    ids=["publications", "languages", "web"],
)
def test_fuzz_mutated_samples_give_values_or_expected_errors(
    targets: tuple[Target, ...], tmp_path: Path
) -> None:
    names = [target.name for target in targets]
    run = [sys.executable, "-m", "fuzz", f"--inputs={INPUTS}", f"--folder={tmp_path}", "--only", *names]
    process = subprocess.run(run, cwd=ROOT, env=_environment(), capture_output=True, text=True)
    assert process.returncode == 0, process.stdout + process.stderr


@pytest.mark.parametrize(
    ("damage", "seconds", "message"),
    [
        ("raise KeyError(1)", 600, "KeyError"),
        ("raise SystemExit(3)", 600, "SystemExit"),
        ("while True: pass", 600, "SIGPROF: more than 1 s of CPU time"),
        ("time.sleep(600)", 1, "SIGALRM: one input blocked"),
        ("os.abort()", 600, "SIGABRT"),
        ("bytearray(8_000_000_000)", 600, "MemoryError"),
    ],
)
def test_run_mutations_failing_target_reports_input(
    damage: str, seconds: int, message: str, tmp_path: Path
) -> None:
    program = f"""
import os, resource, time
from pathlib import Path
from fuzz import execution, runner
from fuzz.target import Target
resource.setrlimit(resource.RLIMIT_CORE, (1, 1))
execution.CPU_SECONDS, execution.WALL_SECONDS, execution.SHRINK_SECONDS = 1.0, {seconds}, 0.5
runner.MAX_CRASHES = 1
def run(data):
    if data == b"bad" and resource.getrlimit(resource.RLIMIT_CORE) == (0, 0):
        {damage}
report = runner.run_mutations(Target("t", run, (b"good", b"bad")), Path({str(tmp_path)!r}), 1, 10, 1)
for path in report.findings:
    print(path.read_bytes(), path.with_suffix(".txt").read_text().splitlines()[0])
"""
    run = [sys.executable, "-c", program]
    process = subprocess.run(run, cwd=ROOT, env=_environment(), capture_output=True, text=True)
    assert process.stdout.startswith("b'bad' ") and message in process.stdout, process.stdout + process.stderr

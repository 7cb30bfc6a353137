"""A sandboxed library cannot reach private addresses, read files or run programs."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT


def test_sandbox_blocks_network_files_and_programs(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(type=socket.SOCK_DGRAM) as udp:
        port = server.getsockname()[1]
        udp.bind(("127.0.0.1", port))
        program = [sys.executable, str(ROOT / "tests/support/processes/sandboxed.py"), str(port), str(secret)]
        report = json.loads(subprocess.run(program, capture_output=True, check=True, text=True).stdout)
        refused = {
            f"{part}: {name}": outcome
            for part in ("inside", "here")
            for name, outcome in report[part].items()
        }
        assert len(refused) > 25 and {k: v for k, v in refused.items() if v != "refused"} == {}
        assert set(report["free"].values()) == {"done"}, report["free"]
        for each in (server.accept, lambda: udp.recv(1)):
            server.setblocking(False)
            udp.setblocking(False)
            with pytest.raises(BlockingIOError):
                each()
    assert secret.read_text() == "secret"

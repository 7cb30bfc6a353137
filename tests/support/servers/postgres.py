"""A real PostgreSQL server for tests and benchmarks, started from the system's binaries and gone when they end."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import psycopg

STARTS_WITHIN = 60


@dataclass(frozen=True)
class Server:
    """A running server; `empty` gives the address of a new place without tables."""

    port: int
    password: str
    folder: Path
    binaries: Path
    settings: str
    _numbers: Iterator[int]

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://tidings:{self.password}@127.0.0.1:{self.port}/{database}"

    def empty(self) -> str:
        """A schema of its own: a database for each test would be hundreds of files to make and to remove."""
        name = f"test_{next(self._numbers)}"
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}".encode())
        return f"{self.url()}?options=-csearch_path%3D{name}"

    def process(self) -> int:
        """The server's own process, above all those that work for a connection."""
        return int((self.folder / "data" / "postmaster.pid").read_text().split()[0])

    def start(self) -> None:
        _control(self.binaries, self.folder, "start", "-l", self.folder / "log", "-o", self.settings)

    def stop(self) -> None:
        """At once, without a goodbye: what was not written out is replayed from its log by the next start."""
        _control(self.binaries, self.folder, "stop", "-m", "immediate")


def find_binaries() -> Path | None:
    """The folder with initdb and postgres: Debian keeps them off the PATH, one folder for each version."""
    found = [Path(there).resolve().parent for there in [shutil.which("initdb")] if there]
    found += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((bin for bin in found if (bin / "initdb").exists() and (bin / "postgres").exists()), None)


@contextmanager
def running_server(binaries: Path, durable: bool = False) -> Iterator[Server]:
    """A server in a temporary folder, on loopback, with a password that nobody else knows."""
    folder = Path(tempfile.mkdtemp(prefix="tidings-postgres-"))
    port, password = _free_port(), secrets.token_hex(16)
    server = Server(port, password, folder, binaries, _settings(folder, port, durable), count(1))
    try:
        _initialise(binaries, folder, password)
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _unprivileged() -> dict[str, object]:
    """PostgreSQL refuses to run as root; as root it gets a user of its own."""
    if os.geteuid() != 0:
        return {}
    names = {entry.pw_name: entry for entry in pwd.getpwall()}
    entry = names.get("postgres") or names["nobody"]
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def _initialise(binaries: Path, folder: Path, password: str) -> None:
    (folder / "password").write_text(password)
    become = _unprivileged()
    if become:
        for path in (folder, folder / "password"):
            os.chown(path, become["user"], become["group"])  # type: ignore[arg-type]
    command = [binaries / "initdb", "-D", folder / "data", "-U", "tidings", "-E", "UTF8", "--no-sync"]
    command += ["--locale=C", "--auth=scram-sha-256", f"--pwfile={folder / 'password'}"]
    subprocess.run(command, check=True, capture_output=True, cwd=folder, **become)  # type: ignore[call-overload]


def _settings(folder: Path, port: int, durable: bool) -> str:
    """Loopback only. Not durable for tests, because the machine that runs them does not lose its power in between."""
    settings = {"listen_addresses": "127.0.0.1", "port": port, "unix_socket_directories": folder}
    if not durable:
        settings |= {
            "fsync": "off",
            "full_page_writes": "off",
            "shared_buffers": "32MB",
            "max_connections": 60,
        }
        # Hundreds of tests leave their tables behind, and nobody asks for statistics of them.
        settings |= {"autovacuum": "off", "wal_level": "minimal", "max_wal_senders": 0}
    return " ".join(f"--{name}={value}" for name, value in settings.items())


def _control(binaries: Path, folder: Path, *command: str | Path) -> None:
    """Start or stop the server of this folder, by the process id it keeps there, and wait until that is done."""
    pg_ctl = [binaries / "pg_ctl", "-D", folder / "data", "-w", "-s", "-t", str(STARTS_WITHIN), *command]
    silent = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
    if subprocess.run(pg_ctl, cwd=folder, **silent, **_unprivileged()).returncode != 0:  # type: ignore[call-overload]
        raise RuntimeError(f"PostgreSQL did not {command[0]}:\n{(folder / 'log').read_text()}")

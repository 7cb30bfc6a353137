"""A real PostgreSQL server for tests and benchmarks, started from the system's binaries and deleted at the end."""

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
    """A running server; `empty` returns the address of a new schema without tables."""

    port: int
    password: str
    folder: Path
    binaries: Path
    settings: str
    _numbers: Iterator[int]

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://tidings:{self.password}@127.0.0.1:{self.port}/{database}"

    def empty(self) -> str:
        """Create a schema and return its address: a database for each test would have hundreds of files."""
        name = f"test_{next(self._numbers)}"
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}".encode())
        return f"{self.url()}?options=-csearch_path%3D{name}"

    def process(self) -> int:
        """Return the id of the server's main process, the parent of those of connections."""
        return int((self.folder / "data" / "postmaster.pid").read_text().split()[0])

    def start(self) -> None:
        _control(self.binaries, self.folder, "start", "-l", self.folder / "log", "-o", self.settings)

    def stop(self) -> None:
        """Stop immediately: the next start replays the log."""
        _control(self.binaries, self.folder, "stop", "-m", "immediate")


def find_binaries() -> Path | None:
    """Return the folder with initdb and postgres: Debian has one for each version, outside of the PATH."""
    folders = [Path(there).resolve().parent for there in [shutil.which("initdb")] if there]
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((bin for bin in folders if (bin / "initdb").exists() and (bin / "postgres").exists()), None)


@contextmanager
def running_server(binaries: Path, durable: bool = False) -> Iterator[Server]:
    """Run a server in a temporary folder, on loopback, with a random password."""
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
    """Return the options for an unprivileged user, because PostgreSQL refuses to run as root."""
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
    """Return the settings: loopback only, and not durable for tests, which need not survive a power failure."""
    settings = {"listen_addresses": "127.0.0.1", "port": port, "unix_socket_directories": folder}
    if not durable:
        settings |= {
            "fsync": "off",
            "full_page_writes": "off",
            "shared_buffers": "32MB",
            "max_connections": 60,
        }
        # Hundreds of tests leave tables behind, which need no statistics.
        settings |= {"autovacuum": "off", "wal_level": "minimal", "max_wal_senders": 0}
    return " ".join(f"--{name}={value}" for name, value in settings.items())


def _control(binaries: Path, folder: Path, *command: str | Path) -> None:
    """Start or stop the server of this folder by the process id in it, and wait until it has started or stopped."""
    pg_ctl = [binaries / "pg_ctl", "-D", folder / "data", "-w", "-s", "-t", str(STARTS_WITHIN), *command]
    silent = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
    if subprocess.run(pg_ctl, cwd=folder, **silent, **_unprivileged()).returncode != 0:  # type: ignore[call-overload]
        raise RuntimeError(f"PostgreSQL did not {command[0]}:\n{(folder / 'log').read_text()}")

"""`tidings store` and `tidings config`: migrations, backup and restore while everything runs, and settings."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import stat
import subprocess
import tarfile
import threading
from pathlib import Path

import psycopg
import pytest

from tests.support.processes.command_line import Tidings
from tests.support.processes.terminal import Terminal
from tests.support.servers.postgres import Server, find_binaries
from tidings.cli.operations.config import LIMIT_MODULES
from tidings.operations.settings import Limits
from tidings.service.tidings import Tidings as Service
from tidings.store.migrations import NEWEST
from tidings.store.store import open_store


def test_store_version_and_migrate(tidings: Tidings, tmp_path: Path) -> None:
    absent = tidings("store", "version")
    assert (
        absent.exit_code == 4
        and "there is no store" in absent.stderr
        and not (tmp_path / ".tidings").exists()
    )
    tidings("subscriptions")
    store = tmp_path / ".tidings" / "store.db"
    with sqlite3.connect(store) as database:
        database.execute("DELETE FROM tidings_migrations WHERE version = ?", (NEWEST,))
        database.execute("DROP TABLE time_series")
        database.execute("DROP TABLE traces")
        database.execute("DELETE FROM counters WHERE name = 'match_position'")
    assert "run tidings store migrate" in tidings("store", "version").stdout
    (tmp_path / ".tidings" / "tidings.toml").write_text("migrate = false\n")
    refused = tidings("serve", "--only", "api", "--port", "0")
    assert refused.exit_code == 1 and "migrate it: tidings store migrate" in refused.stderr
    result = json.loads(tidings("store", "migrate", "--json").stdout)
    assert result["after"] == NEWEST > result["before"]
    assert f"version {NEWEST} of {NEWEST}  current" in tidings("store", "version").stdout


@pytest.mark.spark
def test_store_backup_during_publishing_restores_consistent_store(
    tidings: Tidings, terminal: Terminal, tmp_path: Path
) -> None:
    """The backup has all publications acknowledged before it. After the restore, matched publications are not
    notified again, the others are, and a new subscriber gets no old ones.
    """
    run = ("run", "--once", "--master", "local[2]")
    tidings("subscribe", "--as", "ana", "n >= 0")
    tidings("feeds", "--as", "ana")
    for number in range(3):
        tidings("publish", json.dumps({"n": number}), "--id", f"p-{number}")
    assert terminal.call(tmp_path, *run).exit_code == 0
    published, stop = [], threading.Event()

    def publish() -> None:
        with Service(tmp_path / ".tidings") as service:
            number = 3
            while not stop.is_set() or number < 30:
                service.publish(json.dumps({"n": number}), f"p-{number}")
                published.append(f"p-{number}")
                number += 1

    publisher = threading.Thread(target=publish)
    publisher.start()
    while len(published) < 10:
        stop.wait(0.01)
    acknowledged = {f"p-{number}" for number in range(3)} | set(published)
    (tmp_path / "backups").mkdir()
    created = tidings("store", "backup", "backups/one.tar", "--json")
    stop.set()
    publisher.join()
    assert created.exit_code == 0, created.output
    summary = json.loads(created.stdout)
    assert summary["matched"] == summary["notifications"] == 3 and summary["publications"] >= len(
        acknowledged
    )
    assert stat.S_IMODE((tmp_path / "backups" / "one.tar").stat().st_mode) == 0o600
    assert tidings("store", "backup", "backups/one.tar").exit_code == 2, "nothing is overwritten"

    restored = tidings("store", "restore", "backups/one.tar", "--home", "restored")
    assert restored.exit_code == 0 and "matched up to 3" in restored.stdout
    again = tidings("store", "restore", "backups/one.tar", "--home", "restored")
    assert again.exit_code == 2 and "not empty" in again.stderr
    tidings("subscribe", "--as", "late", "n < 3", "--home", "restored")
    assert terminal.call(tmp_path, *run, "--home", "restored").exit_code == 0
    with Service(tmp_path / "restored") as service:
        notifications = service.notifications("ana")
        publications = [one.id for one in service.store.journal.read(0)]
        assert service.notifications("late") == []
    assert [one.sequence for one in notifications] == list(range(1, len(publications) + 1))
    assert [one.publication for one in notifications] == publications and acknowledged <= set(publications)
    assert (tmp_path / "restored" / "feeds.key").read_bytes() == (
        tmp_path / ".tidings" / "feeds.key"
    ).read_bytes()


def test_store_restore_invalid_archive_is_rejected(tidings: Tidings, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no tar")
    with tarfile.open(tmp_path / "other.tar", "w") as tar:
        tar.add(tmp_path / "text", "../outside")
    for name, message in (
        ("text", "not a backup"),
        ("other.tar", "not a backup"),
        ("missing", "no such file"),
    ):
        result = tidings("store", "restore", name, "--home", "restored")
        assert result.exit_code == 2 and message in result.stderr
        assert len(result.stderr.splitlines()) == 1, "without the errors of each compression"
    assert tidings("store", "backup", "b.tar").exit_code == 4
    assert not (tmp_path / "restored" / "store.db").exists()
    result = tidings("store", "backup", "b.tar", "--store", "postgresql://tidings@127.0.0.1:1/tidings")
    assert result.exit_code == 2 and "pg_dump" in result.stderr


def test_store_backup_into_missing_folder_is_rejected(tidings: Tidings, tmp_path: Path) -> None:
    """The folder may be the mount point of a disk that is not mounted; creating it would fill another disk."""
    assert tidings("subscribe", "--as", "ana", "price < 200").exit_code == 0
    result = tidings("store", "backup", "not mounted/b.tar")
    assert result.exit_code == 2 and not (tmp_path / "not mounted").exists()
    assert (
        "there is no such folder" in result.stderr and f"mkdir -p '{tmp_path}/not mounted'" in result.stderr
    )
    (tmp_path / "a file").touch()
    assert tidings("store", "backup", "a file/b.tar").exit_code == 2


def test_postgresql_dump_and_restore_keep_match_position(postgres_server: Server, tmp_path: Path) -> None:
    """As in the docs: pg_dump while the service runs, and pg_restore into an empty database."""
    binaries = find_binaries()
    dump, load = (
        shutil.which(name, path=str(binaries)) or shutil.which(name) for name in ("pg_dump", "pg_restore")
    )
    if not dump or not load:
        pytest.skip("no pg_dump here")
    with psycopg.connect(postgres_server.url(), autocommit=True) as connection:
        for name in ("live", "restored"):
            connection.execute(f"CREATE DATABASE {name}".encode())
    before, after = postgres_server.url("live"), postgres_server.url("restored")
    with Service(tmp_path, before) as service:
        service.subscribe("ana", "n >= 0", id="s-1")
        service.publish('{"n": 1}', "p-1")
        service.store.notifications.reach(1)
    file = tmp_path / "tidings.dump"
    subprocess.run([dump, "--format=custom", f"--file={file}", before], check=True)
    subprocess.run([load, f"--dbname={after}", str(file)], check=True)
    with open_store(after, migrates=False) as store:
        assert store.journal.head() == 1 and store.notifications.matched() == 1
        assert [one.id for one in store.subscriptions.list()] == ["s-1"]


def test_config_show_prints_origin_and_masks_secrets(
    tidings: Tidings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".tidings").mkdir()
    (tmp_path / ".tidings" / "tidings.toml").write_text('port = 8000\n[logging]\nformat = "json"\n')
    monkeypatch.setenv("TIDINGS_RPC_TOKEN", "geheim")
    result = tidings("config", "show", "--store", "postgresql://ana:geheim@db/x", "--json")
    rows = {
        row["setting"]: (row["value"], row["from"]) for row in map(json.loads, result.stdout.splitlines())
    }
    assert rows["port"] == ("8000", ".tidings/tidings.toml, line 1")
    assert rows["logging.format"] == ("json", ".tidings/tidings.toml, line 3")
    assert rows["rpc_token"] == ("***", "TIDINGS_RPC_TOKEN")
    assert rows["store"] == ("postgresql://ana:***@db/x", "--store")
    assert rows["host"] == ("127.0.0.1", "default") and "geheim" not in result.output
    table = tidings("config", "show")
    assert "geheim" not in table.output
    rows_shown = table.stdout.splitlines()
    assert [re.split(" {2,}", row)[1:] for row in rows_shown if row.startswith("port ")] == [
        [".tidings/tidings.toml, line 1", "8000"]
    ]
    assert not any(row.endswith(" ") or " " * 60 in row for row in rows_shown), (
        "columns are not padded to a long value"
    )
    good = tidings("config", "check")
    assert good.exit_code == 0 and "3 settings" in good.stdout


def test_config_check_reports_all_problems(
    tidings: Tidings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "t.toml").write_text('prot = 8000\n[logging]\nlevel = "loud"\n')
    monkeypatch.setenv("TIDINGS_HOTS", "x")
    result = tidings("config", "check", "--config", "t.toml")
    assert result.exit_code == 2
    assert (
        "there is no setting 'prot' (line 1, column 1)" in result.stderr
        and "did you mean 'port'?" in result.stderr
    )
    assert "logging.level is invalid" in result.stderr and "did you mean TIDINGS_HOST?" in result.stderr
    assert tidings("serve", "--config", "t.toml").exit_code == 2


def test_config_check_validates_limits(
    tidings: Tidings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "t.toml").write_text(
        '[limits]\napi = "rat=5"\nxpath = "steps=0"\ngraph = "attributes=5000"\n'
    )
    result = tidings("config", "check", "--config", "t.toml")
    assert result.exit_code == 2 and len(result.stderr.splitlines()) == 2
    assert (
        "not a limit (t.toml, line 2); received rat=5" in result.stderr and "t.toml, line 3" in result.stderr
    )
    (tmp_path / "t.toml").write_text('[limits]\napi = "rate=5 body=1_000"\n')
    assert tidings("config", "check", "--config", "t.toml").exit_code == 0
    monkeypatch.setenv("TIDINGS_API_LIMITS", "body=much")
    result = tidings("config", "check", "--config", "t.toml")
    assert result.exit_code == 2 and "not a limit (TIDINGS_API_LIMITS); received body=much" in result.stderr


def test_config_check_validates_spark_master(tidings: Tidings, tmp_path: Path) -> None:
    (tmp_path / "t.toml").write_text('[spark]\nmaster = "locla[2]"\n')
    result = tidings("config", "check", "--config", "t.toml")
    assert result.exit_code == 2 and "(t.toml, line 2); received 'locla[2]'" in result.stderr
    (tmp_path / "t.toml").write_text('[spark]\nmaster = "local[2]"\n')
    assert tidings("config", "check", "--config", "t.toml").exit_code == 0


def test_limit_modules_cover_all_limit_settings() -> None:
    assert list(LIMIT_MODULES) == list(Limits.model_fields)


def test_commands_use_store_and_home_of_config_file(
    tidings: Tidings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`tidings subscribe` writes the store that `tidings serve` reads."""
    (tmp_path / ".tidings").mkdir()
    (tmp_path / ".tidings" / "tidings.toml").write_text(f'store = "sqlite:///{tmp_path}/elsewhere.db"\n')
    tidings("subscribe", "--as", "ana", "n = 1", "--id", "s-1")
    assert (tmp_path / "elsewhere.db").exists() and not (tmp_path / ".tidings" / "store.db").exists()
    (tmp_path / "etc.toml").write_text(f'home = "{tmp_path}/other"\n')
    monkeypatch.setenv("TIDINGS_CONFIG", str(tmp_path / "etc.toml"))
    tidings("subscribe", "--as", "bo", "n = 1", "--id", "s-2")
    assert (tmp_path / "other" / "store.db").exists()

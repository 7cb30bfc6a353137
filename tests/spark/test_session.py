"""Settings of Spark sessions: sockets between processes, plans, checkpoints, names of files."""

from __future__ import annotations

import os
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tidings.spark import session as sessions


def test_session_processes_use_private_unix_sockets(session: Any) -> None:
    conf = session.sparkContext.getConf()
    assert conf.get("spark.python.unix.domain.socket.enabled") == "true"
    folder = Path(conf.get("spark.python.unix.domain.socket.dir"))
    assert folder.stat().st_mode & 0o777 == 0o700
    assert session.range(10).mapInArrow(lambda batches: batches, "id long").count() == 10
    assert [path for path in folder.iterdir() if path.is_socket()]


@pytest.mark.parametrize(
    ("master", "remote"), [("spark://cluster:7077", None), ("yarn", None), ("local[*]", "sc://cluster:15002")]
)
def test_settings_of_cluster_do_not_change_plans(master: str, remote: str | None) -> None:
    settings = sessions._settings(master, remote)
    assert not settings.keys() & {"spark.sql.shuffle.partitions", "spark.sql.codegen.wholeStage"}
    assert sessions._settings("local[*]", None)["spark.sql.shuffle.partitions"] == "4"


@pytest.mark.parametrize("name", ["far" * 20, "\N{WHITE SMILING FACE}"])
def test_sockets_unsuitable_temporary_folder_uses_tcp(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The path is too long for a socket, or Java can write its name only in some locales."""
    folder = tmp_path / name
    folder.mkdir()
    monkeypatch.setattr(sessions, "LONGEST_FOLDER", max(55, len(str(tmp_path)) + 40))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setattr(sessions, "_socket_folder", cache(sessions._socket_folder.__wrapped__))
    assert sessions._sockets() == {}


def test_session_checkpoint_file_manager_starts_no_process(session: Any) -> None:
    """The class belongs to Spark; the test fails if a later version renames it."""
    name = session.conf.get("spark.sql.streaming.checkpointFileManagerClass")
    assert name.endswith(".FileSystemBasedCheckpointFileManager")
    assert session.sparkContext._jvm.java.lang.Class.forName(name).getName() == name


@pytest.mark.parametrize(
    ("locale", "expected"), [("C", "C.UTF-8"), ("POSIX", "C.UTF-8"), ("de_DE.UTF-8", "de_DE.UTF-8")]
)
def test_prepare_environment_sets_utf8_locale(
    monkeypatch: pytest.MonkeyPatch, locale: str, expected: str
) -> None:
    """With LC_ALL=C, Java would wait for ever for a folder with another name."""
    monkeypatch.setattr(os, "environ", os.environ | {"LC_ALL": locale})
    sessions._prepare_environment("spark://cluster:7077")
    assert os.environ["LC_ALL"] == expected

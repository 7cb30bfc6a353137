"""How Spark's processes talk to each other on this machine, and how it keeps its checkpoints."""

from __future__ import annotations

import os
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tidings.spark import session as sessions


def test_processes_talk_through_sockets_that_nobody_else_reaches(session: Any) -> None:
    conf = session.sparkContext.getConf()
    assert conf.get("spark.python.unix.domain.socket.enabled") == "true"
    folder = Path(conf.get("spark.python.unix.domain.socket.dir"))
    assert folder.stat().st_mode & 0o777 == 0o700
    assert session.range(10).mapInArrow(lambda batches: batches, "id long").count() == 10
    assert [path for path in folder.iterdir() if path.is_socket()]


@pytest.mark.parametrize(
    ("master", "remote"), [("spark://cluster:7077", None), ("yarn", None), ("local[*]", "sc://cluster:15002")]
)
def test_settings_of_a_cluster_leave_its_plans_alone(master: str, remote: str | None) -> None:
    settings = sessions._settings(master, remote)
    assert not settings.keys() & {"spark.sql.shuffle.partitions", "spark.sql.codegen.wholeStage"}
    assert sessions._settings("local[*]", None)["spark.sql.shuffle.partitions"] == "4"


@pytest.mark.parametrize("name", ["far" * 20, "\N{WHITE SMILING FACE}"])
def test_where_temporary_files_are_too_far_away_for_a_socket_it_is_tcp(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Or where the name of their folder is one that Java can only write in some locales."""
    far = tmp_path / name
    far.mkdir()
    monkeypatch.setattr(sessions, "LONGEST_FOLDER", max(55, len(str(tmp_path)) + 40))
    monkeypatch.setattr(tempfile, "tempdir", str(far))
    monkeypatch.setattr(sessions, "_socket_folder", cache(sessions._socket_folder.__wrapped__))
    assert sessions._sockets() == {}


def test_no_process_is_started_for_the_mode_of_a_file_of_a_checkpoint(session: Any) -> None:
    """It is a class of Spark's own, which a later version may call otherwise: then it says so here."""
    name = session.conf.get("spark.sql.streaming.checkpointFileManagerClass")
    assert name.endswith(".FileSystemBasedCheckpointFileManager")
    assert session.sparkContext._jvm.java.lang.Class.forName(name).getName() == name


@pytest.mark.parametrize(
    ("said", "becomes"), [("C", "C.UTF-8"), ("POSIX", "C.UTF-8"), ("de_DE.UTF-8", "de_DE.UTF-8")]
)
def test_java_reads_names_of_files_as_python_does(
    monkeypatch: pytest.MonkeyPatch, said: str, becomes: str
) -> None:
    """With LC_ALL=C a folder of another name would be looked for, and waited for without end."""
    monkeypatch.setattr(os, "environ", os.environ | {"LC_ALL": said})
    sessions._prepare_environment("spark://cluster:7077")
    assert os.environ["LC_ALL"] == becomes

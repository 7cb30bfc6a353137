"""The class archive of Spark: created once, used by all drivers, optional."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tidings.errors import SetupError
from tidings.spark.class_archive import archive_file, make_archive, use_archive
from tidings.spark.session import find_java


def test_make_archive_returns_archive_that_drivers_use() -> None:
    java = find_java()
    assert make_archive(java) == archive_file(java)
    assert use_archive(java)[0] == f"-XX:SharedArchiveFile={archive_file(java)}"


@pytest.mark.spark
def test_use_archive_driver_maps_archive(session) -> None:
    maps = Path("/proc", str(session._jvm.java.lang.ProcessHandle.current().pid()), "maps")
    if not maps.exists():
        pytest.skip("only Linux lists the files that a process has mapped")
    assert str(archive_file(find_java())) in maps.read_text()


def test_use_archive_other_installation_has_no_options(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert use_archive(find_java()) == []


def test_make_archive_failure_is_setup_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An interpreter that exits at once leaves no archive and no partial file."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(SetupError, match="cannot be archived"):
        make_archive(find_java())
    assert list((tmp_path / "share" / "tidings").iterdir()) == []

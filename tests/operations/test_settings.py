"""Settings: files, the environment, the command line, and errors with their place."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tidings.errors import InputError
from tidings.operations.settings import RENAMED_SETTINGS
from tidings.operations.settings_sources import (
    find_unknown_variables,
    format_setting,
    format_value,
    list_setting_names,
    load_settings,
    locate_setting,
    read_sources,
    variable_name,
)


def test_format_setting_of_spark_conf_hides_secrets(tmp_path: Path) -> None:
    conf = {
        "spark.hadoop.fs.s3a.secret.key": "hunter2",
        "spark.authenticate.secret": "hunter2",
        "spark.a": "b",
    }
    settings = load_settings({"home": tmp_path, "spark.conf": conf}).settings
    assert format_setting(settings, "spark.conf") == (
        "spark.hadoop.fs.s3a.secret.key=***, spark.authenticate.secret=***, spark.a=b"
    )


def test_load_settings_later_sources_take_precedence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "tidings.toml"
    file.write_text('port = 1\nhost = "file"\n\n[spark]\nmaster = "local"\n[spark.conf]\n"spark.a.b" = "c"\n')
    monkeypatch.setenv("TIDINGS_PORT", "2")
    monkeypatch.setenv("TIDINGS_CONTACT", "environment")
    monkeypatch.setenv("TIDINGS_STREAM__RESTARTS", "9")
    loaded = load_settings({"home": tmp_path, "contact": "option", "delivery.private_callbacks": True})
    settings = loaded.settings
    assert (settings.port, settings.host, settings.contact) == (2, "file", "option")
    assert settings.spark.conf == {"spark.a.b": "c"} and settings.stream.restarts == 9
    assert settings.delivery.private_callbacks and settings.drain == 20
    assert loaded.origins["port"] == "TIDINGS_PORT" and loaded.origins["contact"] == "--contact"
    assert loaded.origins["spark.master"] == f"{file}, line 5"
    assert loaded.origins["stream.restarts"] == "TIDINGS_STREAM__RESTARTS"
    assert "drain" not in loaded.origins


def test_load_settings_reads_named_file_and_rejects_invalid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.toml").write_text("port = 1")
    (tmp_path / "b.toml").write_text("port = 2")
    monkeypatch.setenv("TIDINGS_CONFIG", str(tmp_path / "a.toml"))
    assert load_settings().settings.port == 1
    assert load_settings(config=tmp_path / "b.toml").settings.port == 2
    for name, text, message in (
        ("missing", None, "cannot be read"),
        ("broken", "port = ", "invalid TOML"),
        ("bytes", b"\xff", "not UTF-8"),
    ):
        if text is not None:
            (tmp_path / name).write_bytes(text.encode() if isinstance(text, str) else text)
        with pytest.raises(InputError, match=message):
            load_settings(config=tmp_path / name)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[stream]\nwaits = 1",
            "there is no setting 'stream.waits' (line 2, column 1)\n  waits = 1\n"
            "  ^^^^^   stream has batch_size, restarts, max_backoff",
        ),
        (
            "[delivery]\nworker = 1",
            "there is no setting 'delivery.worker' (line 2, column 1)\n  worker = 1\n"
            "  ^^^^^^   did you mean 'delivery.workers'?",
        ),
        ("prot = 1", "there is no setting 'prot' (column 1)\n  prot = 1\n  ^^^^   did you mean 'port'?"),
        (
            "[spark]\nmaster = 3\n",
            "spark.master is invalid (line 2, column 1); received 3; accepted: a text\n"
            "  master = 3\n  ^^^^^^",
        ),
        (
            "[stream]\n[streem]\nrestarts = 1\n",
            "there is no setting 'streem' (line 2, column 2)\n  [streem]\n   ^^^^^^   did you mean 'stream'?",
        ),
        (
            "spark.mastr = 'x'",
            "there is no setting 'spark.mastr' (column 1)\n  spark.mastr = 'x'\n  ^^^^^^^^^^^   ",
        ),
        (
            "[retention]\npipeline = 'often'\n",
            "retention.pipeline: not a duration; received 'often'; accepted: ",
        ),
        ("rpc_token = 7", "rpc_token is invalid (column 1); accepted: a text\n"),
        (
            "port = 70000",
            "port is invalid (column 1); received 70000; accepted: 65535 or less",
        ),
    ],
)
def test_load_settings_invalid_file_error_has_place(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "tidings.toml").write_text(text)
    [problem] = read_sources({"home": tmp_path}).refusals()
    assert str(problem).startswith(message), str(problem)
    assert problem.place is not None


def test_load_settings_invalid_variable_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDINGS_PORT", "many")
    with pytest.raises(InputError, match=r"port is invalid.*\(TIDINGS_PORT\); received 'many'"):
        load_settings()


@pytest.mark.parametrize(("old", "new"), RENAMED_SETTINGS.items())
def test_renamed_setting_in_a_file_raises_its_new_name(tmp_path: Path, old: str, new: str) -> None:
    (tmp_path / "tidings.toml").write_text(f"{old} = 'geheim'\n")
    [found] = read_sources({"home": tmp_path}).refusals()
    assert str(found).startswith(f"the setting '{old}' was renamed (line 1, column 1)\n  {old} =")
    assert found.hint == f"use '{new}'" and found.received is None
    assert new in list_setting_names() and old not in list_setting_names()


@pytest.mark.parametrize(("old", "new"), RENAMED_SETTINGS.items())
def test_renamed_setting_in_a_variable_raises_its_new_variable(
    monkeypatch: pytest.MonkeyPatch, old: str, new: str
) -> None:
    monkeypatch.setenv(variable_name(old), "geheim")
    [found] = read_sources().refusals()
    assert str(found) == f"the setting '{old}' was renamed ({variable_name(old)}); use {variable_name(new)}"
    assert find_unknown_variables({variable_name(old): "geheim"}, frozenset()) == []


def test_format_value_and_repr_hide_secrets(tmp_path: Path) -> None:
    (tmp_path / "tidings.toml").write_text(
        'store = "postgresql://tidings:geheim@db/tidings"\nrpc_token = "geheim"\n[traces.headers]\nkey = "geheim"\n'
    )
    settings = load_settings({"home": tmp_path}).settings
    assert format_value(settings.store) == "postgresql://tidings:***@db/tidings"
    assert format_value(settings.rpc_token) == "***" and "geheim" not in repr(settings)
    assert settings.store_url() == "postgresql://tidings:geheim@db/tidings"


def test_export_sets_variables_of_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tidings.toml").write_text('[limits]\ndocument = "depth=7"\ngraph = "edges=9"\n')
    monkeypatch.setenv("TIDINGS_GRAPH_LIMITS", "edges=8")
    monkeypatch.setenv("TIDINGS_DOCUMENT_LIMITS", "")
    monkeypatch.delenv("TIDINGS_DOCUMENT_LIMITS")
    load_settings({"home": tmp_path}).export()
    assert (
        os.environ["TIDINGS_DOCUMENT_LIMITS"] == "depth=7" and os.environ["TIDINGS_GRAPH_LIMITS"] == "edges=8"
    )


def test_locate_setting_finds_key() -> None:
    text = 'a = 1\n[b]\n"c" = 2\n[d.e]\nf = 3\n'
    places = {path: locate_setting(text, path) for path in (("a",), ("b", "c"), ("d", "e", "f"), ("x",))}
    assert {path: place and place.line for path, place in places.items()} == {
        ("a",): 1,
        ("b", "c"): 3,
        ("d", "e", "f"): 5,
        ("x",): None,
    }
    assert "spark.master" in list_setting_names() and "spark" not in list_setting_names()

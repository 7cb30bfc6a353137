"""Settings: a file, the environment, the command line; what is wrong with them, and where."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tidings.errors import InputError
from tidings.operations.settings_sources import (
    format_setting,
    format_value,
    list_setting_names,
    load_settings,
    locate_setting,
    read_sources,
)


def test_value_of_spark_settings_hides_secrets(tmp_path: Path) -> None:
    given = {
        "spark.hadoop.fs.s3a.secret.key": "hunter2",
        "spark.authenticate.secret": "hunter2",
        "spark.a": "b",
    }
    settings = load_settings({"home": tmp_path, "spark.conf": given}).settings
    assert format_setting(settings, "spark.conf") == (
        "spark.hadoop.fs.s3a.secret.key=***, spark.authenticate.secret=***, spark.a=b"
    )


def test_load_settings_later_sources_take_precedence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "tidings.toml"
    file.write_text('port = 1\nhost = "file"\n\n[spark]\nmaster = "local"\n[spark.conf]\n"spark.a.b" = "c"\n')
    monkeypatch.setenv("TIDINGS_PORT", "2")
    monkeypatch.setenv("TIDINGS_CONTACT", "environment")
    monkeypatch.setenv("TIDINGS_STREAM__RESTARTS", "9")
    found = load_settings({"home": tmp_path, "contact": "option", "delivery.private_callbacks": True})
    settings = found.settings
    assert (settings.port, settings.host, settings.contact) == (2, "file", "option")
    assert settings.spark.conf == {"spark.a.b": "c"} and settings.stream.restarts == 9
    assert settings.delivery.private_callbacks and settings.drain == 20
    assert found.origins["port"] == "TIDINGS_PORT" and found.origins["contact"] == "--contact"
    assert found.origins["spark.master"] == f"{file}, line 5"
    assert found.origins["stream.restarts"] == "TIDINGS_STREAM__RESTARTS"
    assert "drain" not in found.origins


def test_load_settings_reads_the_named_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.toml").write_text("port = 1")
    (tmp_path / "b.toml").write_text("port = 2")
    monkeypatch.setenv("TIDINGS_CONFIG", str(tmp_path / "a.toml"))
    assert load_settings().settings.port == 1
    assert load_settings(config=tmp_path / "b.toml").settings.port == 2
    for name, text, told in (
        ("missing", None, "cannot be read"),
        ("broken", "port = ", "invalid TOML"),
        ("bytes", b"\xff", "not UTF-8"),
    ):
        if text is not None:
            (tmp_path / name).write_bytes(text.encode() if isinstance(text, str) else text)
        with pytest.raises(InputError, match=told):
            load_settings(config=tmp_path / name)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "[stream]\nwaits = 1",
            "there is no setting 'stream.waits' (line 2, column 1)\n  waits = 1\n"
            "  ^^^^^   stream has publications, restarts, longest_pause",
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
def test_load_settings_with_an_invalid_file_raises_its_place(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "tidings.toml").write_text(text)
    [found] = read_sources({"home": tmp_path}).refusals()
    assert str(found).startswith(told), str(found)
    assert found.place is not None


def test_load_settings_with_an_invalid_variable_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDINGS_PORT", "many")
    with pytest.raises(InputError, match=r"port is invalid.*\(TIDINGS_PORT\); received 'many'"):
        load_settings()


def test_errors_and_values_hide_secrets(tmp_path: Path) -> None:
    (tmp_path / "tidings.toml").write_text(
        'store = "postgresql://tidings:geheim@db/tidings"\nrpc_token = "geheim"\n[traces.headers]\nkey = "geheim"\n'
    )
    settings = load_settings({"home": tmp_path}).settings
    assert format_value(settings.store) == "postgresql://tidings:***@db/tidings"
    assert format_value(settings.rpc_token) == "***" and "geheim" not in repr(settings)
    assert settings.store_url() == "postgresql://tidings:geheim@db/tidings"


def test_export_sets_the_variables_of_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tidings.toml").write_text('[limits]\ndocument = "depth=7"\ngraph = "edges=9"\n')
    monkeypatch.setenv("TIDINGS_GRAPH_LIMITS", "edges=8")
    monkeypatch.setenv("TIDINGS_DOCUMENT_LIMITS", "")
    monkeypatch.delenv("TIDINGS_DOCUMENT_LIMITS")
    load_settings({"home": tmp_path}).export()
    assert (
        os.environ["TIDINGS_DOCUMENT_LIMITS"] == "depth=7" and os.environ["TIDINGS_GRAPH_LIMITS"] == "edges=8"
    )


def test_locate_setting_finds_the_key() -> None:
    text = 'a = 1\n[b]\n"c" = 2\n[d.e]\nf = 3\n'
    places = {path: locate_setting(text, path) for path in (("a",), ("b", "c"), ("d", "e", "f"), ("x",))}
    assert {path: place and place.line for path, place in places.items()} == {
        ("a",): 1,
        ("b", "c"): 3,
        ("d", "e", "f"): 5,
        ("x",): None,
    }
    assert "spark.master" in list_setting_names() and "spark" not in list_setting_names()

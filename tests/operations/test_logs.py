"""Logs: one line per event, with ids, and without secrets."""

from __future__ import annotations

import json
import logging

import pytest

from tidings.operations import logs

SECRETS = (
    "tdg_KSdu2DhTN4E0HhZiHT-Zb0STx_8",
    "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    "4Qx9Zb0STx8ZutXF8gGeXyGBnY4Qx9Zb",
    "geheim",
)
LEAKS = (
    f"Authorization: Bearer {SECRETS[0]}",
    f"the token {SECRETS[0]} is good",
    f"signed with {SECRETS[1]}",
    f"GET /feeds/{SECRETS[2]}.atom",
    f"http://127.0.0.1:8080/feeds/{SECRETS[2]}",
    f"posting to https://hooks.example.org/services/{SECRETS[2]}?key={SECRETS[3]}",
    f"mailto://ana:{SECRETS[3]}@example.org",
    f"discord://4174216298/{SECRETS[2]}",
    f"postgresql://tidings:{SECRETS[3]}@db/tidings",
    f"https://ana:{SECRETS[3]}@example.org",
)


@pytest.mark.parametrize("format", ["json", "console"])
def test_redaction_removes_secrets(format: logs.Format, capsys: pytest.CaptureFixture[str]) -> None:
    with logs.configure_logging("debug", format):
        log, plain = logs.get_logger("tidings.test"), logging.getLogger("tidings.other")
        for leak in LEAKS:
            log.info(leak, detail=leak, nested={"a": [leak]})
            plain.warning("it says %s", leak)
            plain.warning("x", extra={"words": leak})
        log.info("named", token=SECRETS[3], password=SECRETS[3], target=SECRETS[3], headers={"x": SECRETS[3]})
        try:
            raise ValueError(LEAKS[0])
        except ValueError:
            log.exception("failed")
            plain.exception("failed")
    output = capsys.readouterr().err
    assert output.count("\n") >= len(LEAKS) * 3 and "ValueError" in output
    assert not [secret for secret in SECRETS if secret in output]
    assert "https://hooks.example.org/***" in output and "postgresql://tidings:***@db/tidings" in output


def test_bind_fields_adds_ids_to_records_of_any_module(capsys: pytest.CaptureFixture[str]) -> None:
    with (
        logs.configure_logging("info", "json"),
        logs.bind_fields(request="r-1"),
        logs.bind_fields(publication="p-1"),
    ):
        logs.get_logger("tidings.a").info("taken", position=7)
        logging.getLogger("tidings.b").warning("from %s", "elsewhere")
        logging.getLogger("tidings.b").debug("not shown")
        logging.getLogger("py4j.clientserver").error("chatter")
    first, second = (json.loads(line) for line in capsys.readouterr().err.splitlines())
    assert first["event"] == "taken" and first["position"] == 7 and first["level"] == "info"
    assert second["event"] == "from elsewhere" and second["logger"] == "tidings.b"
    assert all(line["request"] == "r-1" and line["publication"] == "p-1" for line in (first, second))

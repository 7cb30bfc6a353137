"""A kind of publications from a plug-in works end to end: subscribe, publish, preview and stream."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.support.paths import ROOT
from tests.support.processes.streams import read_notifications
from tests.support.servers.api_server import served_api
from tidings import kinds
from tidings.cli.main import app
from tidings.console.examples import list_languages
from tidings.console.publish import list_titles
from tidings.errors import SetupError, SubscriptionError
from tidings.service.precompilation import match_rehearsal
from tidings.service.tidings import Tidings
from tidings.spark.stream.runner import run_stream

PLUG_IN = ROOT / "tests" / "support" / "log_lines.py"
ADDRESS = "log_lines:LOG_LINES"
LOG = "text/x-log"


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[kinds.Registry]:
    """A registry for one test, and a plug-in that can be imported."""
    registry = kinds.Registry()
    monkeypatch.setattr(kinds, "_REGISTRY", registry)
    monkeypatch.syspath_prepend(str(PLUG_IN.parent))
    yield registry
    sys.modules.pop("log_lines", None)


def test_further_kind_is_subscribed_published_previewed_matched_and_explained(
    session: Any, registry: kinds.Registry, tmp_path: Path
) -> None:
    session.sparkContext.addPyFile(str(PLUG_IN))  # on a cluster the package is installed
    kinds.register(ADDRESS)
    home = tmp_path / "home"
    with Tidings(home) as tidings, served_api(tidings) as service:
        ana = service.caller("ana")
        subscription = {"id": "s1", "language": "log", "text": "warning payments"}
        assert ana.post("/v1/subscriptions", json=subscription).status_code == 201
        tidings.subscribe("bo", "level >= 0", id="s2")
        answer = service.shop.post(
            "/v1/publications?id=p1", content=b"ERROR payments timeout", headers={"Content-Type": LOG}
        )
        assert answer.status_code == 201, answer.text
        refused = service.shop.post("/v1/publications", content=b"oops", headers={"Content-Type": LOG})
        assert (refused.status_code, refused.json()["error"]) == (422, "DecodeProblem")
        tidings.publish(b"INFO payments paid", "p2", LOG)
        tidings.publish(b'{"level": 3, "service": "payments"}', "p3")
        (tmp_path / "last.log").write_text("WARNING payments slow\n")
        result = CliRunner().invoke(
            app, ["publish", str(tmp_path / "last.log"), "--home", str(home), "--id", "p4"]
        )
        assert result.exit_code == 0, result.output
        preview = ana.post("/v1/preview", json={"language": "log", "text": "warning payments"}).json()
        assert [match["publication"]["id"] for match in preview["matches"]] == ["p4", "p1"]
        run_stream(session, home, tidings.store_url, once=True)
        assert read_notifications(tidings.store, "ana", "bo") == {
            "ana": [(1, "p1", "s1"), (2, "p4", "s1")],
            "bo": [(1, "p3", "s2")],
        }
        first = tidings.notifications("ana")[0]
        assert [(reason.predicate, reason.value) for reason in first.because] == [
            ("level >= 2", 3),
            ("service = 'payments'", "payments"),
        ]
        assert tidings.dead_letters() == []


def test_registry_reads_kinds_from_environment_variable(
    registry: kinds.Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(kinds.VARIABLE, f" {ADDRESS},")
    assert (kinds.registered_addresses(), kinds.kind_of(LOG).name) == ((ADDRESS,), "log line")
    assert list_titles()[LOG] == "Log line" and "log" in kinds.LANGUAGES
    kinds.register(ADDRESS)  # again, as each task does
    assert len(kinds.kinds()) == 4


def test_further_kind_appears_in_forms_hints_and_warm_up(registry: kinds.Registry, tmp_path: Path) -> None:
    kinds.register(ADDRESS)
    with Tidings(tmp_path) as tidings:
        languages = list_languages(tidings.subscribing().check, tidings.schema(), None)
        assert [language.name for language in languages] == ["predicates", "xpath", "gql", "log", "rules"]
        assert [example.text for example in languages[3].examples] == ["error"]
        with pytest.raises(SubscriptionError) as refused:
            tidings.subscribe("ana", "warning payments")
    assert refused.value.hint == "a level of logs? the language is log: --language log"
    rehearsals = [match_rehearsal(each) for kind in kinds.kinds() if (each := kind.rehearse())]
    assert len(rehearsals) == 4 and rehearsals[3] == 3 and all(rehearsals)


@pytest.mark.parametrize("address", ["nowhere:KIND", "log_lines:NONE", "log_lines:LEVELS", "log_lines"])
def test_register_address_without_kind_is_setup_error(registry: kinds.Registry, address: str) -> None:
    with pytest.raises(SetupError, match="kind of publications"):
        kinds.register(address)

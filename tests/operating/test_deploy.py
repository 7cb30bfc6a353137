"""What stands in deploy/ is true: commands, options, settings and probes that it names are there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from tests.operating.served import served
from tidings.interfaces.cli.config import OTHERS
from tidings.interfaces.cli.main import app
from tidings.operating.loading import sources
from tidings.operating.refusals import unknown_variables

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
MANIFESTS = list(yaml.safe_load_all((DEPLOY / "kubernetes" / "tidings.yaml").read_text()))


def understood(words: list[str]) -> None:
    """A command line that `tidings` understands; it is not carried out."""
    command: Any = get_command(app)
    while hasattr(command, "commands"):
        command = command.commands[words[0]]
        words = words[1:]
    command.make_context("tidings", words)


def known(variables: dict[str, str]) -> None:
    """Variables of the environment that are settings, with values that can be."""
    assert not unknown_variables(variables, OTHERS)
    given = {name: value for name, value in variables.items() if name not in OTHERS}
    before = dict(os.environ)
    os.environ.update(given)
    try:
        assert not sources().refusals()
    finally:
        os.environ.clear()
        os.environ.update(before)


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd(unit: Path, tmp_path: Path) -> None:
    lines = [line.partition("=") for line in unit.read_text().splitlines() if "=" in line and line[0] != "#"]
    known(dict(value.split("=", 1) for name, _, value in lines if name == "Environment"))
    commands = [value for name, _, value in lines if name.startswith("ExecStart")]
    assert len(commands) == 2
    for command in commands:
        program, *words = command.replace("%i", "api").split()
        assert program == "/opt/tidings/.venv/bin/tidings"
        understood(words)
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("no systemd-analyze here")
    name = unit.name.replace("@", "@api")
    text = unit.read_text().replace("/opt/tidings/.venv/bin/tidings", sys.executable)
    text = re.sub(r"^Documentation=.*\n", "", text, flags=re.MULTILINE)
    (tmp_path / name).write_text(text)
    done = subprocess.run(
        [analyze, "verify", "--man=no", tmp_path / name], capture_output=True, text=True, check=False
    )
    complaints = [line for line in done.stderr.splitlines() if name in line or unit.name in line]
    assert not complaints, done.stderr


def instructions() -> Iterator[tuple[str, str]]:
    text = re.sub(r"\\\n", " ", (DEPLOY / "Containerfile").read_text())
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            word, _, rest = line.partition(" ")
            yield word, rest.strip()


def test_containerfile() -> None:
    found = list(instructions())
    assert {word for word, _ in found} <= {
        *("FROM", "RUN", "WORKDIR", "COPY", "ENV", "USER", "VOLUME", "EXPOSE"),
        *("STOPSIGNAL", "HEALTHCHECK", "ENTRYPOINT"),
    }
    assert found[0][0] == "FROM" and "/" not in found[0][1], "no registry is named"
    for word, rest in found:
        if word == "COPY":
            assert all((ROOT / source).exists() for source in rest.split()[:-1]), rest
    [environment] = [rest for word, rest in found if word == "ENV"]
    variables = dict(each.split("=", 1) for each in environment.split())
    known(variables)
    [entry] = [yaml.safe_load(rest) for word, rest in found if word == "ENTRYPOINT"]
    assert entry[:3] == ["tini", "--", "tidings"]
    understood(entry[3:])
    extras = re.search(r"\[([a-z,]+)\]", next(rest for word, rest in found if "pip install" in rest))
    known_extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert extras and set(extras[1].split(",")) <= set(known_extras)
    [health] = [rest for word, rest in found if word == "HEALTHCHECK"]
    assert f"127.0.0.1:{variables['TIDINGS_PORT']}/healthz" in health


def containers() -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    for manifest in MANIFESTS:
        pod = manifest.get("spec", {}).get("template", {}).get("spec")
        for container in pod["containers"] if pod else ():
            yield manifest, container


def test_kubernetes(tmp_path: Path) -> None:
    kinds = [manifest["kind"] for manifest in MANIFESTS]
    assert kinds == ["ConfigMap", "Job", "Deployment", "Deployment", "StatefulSet", "Service", "Ingress"]
    settings = tmp_path / "tidings.toml"
    settings.write_text(MANIFESTS[0]["data"]["tidings.toml"])
    assert not sources(config=settings).refusals()
    with served(tmp_path / "home") as service:
        routes = {"/healthz": 200, "/readyz": 200}
        for path, status in routes.items():
            assert service.get(path).status_code == status
    parts = set()
    for manifest, container in containers():
        words = container.get("command", ["tidings", "serve", *container.get("args", ())])
        assert words[0] == "tidings"
        understood(words[1:])
        parts |= set(container.get("args", ()))
        known({each["name"]: each.get("value", "postgresql://x/y") for each in container["env"]})
        pod = manifest["spec"]["template"]["spec"]
        volumes = {each["name"] for each in pod["volumes"]}
        volumes |= {each["metadata"]["name"] for each in manifest["spec"].get("volumeClaimTemplates", ())}
        assert {each["name"] for each in container["volumeMounts"]} <= volumes
        if manifest["kind"] == "Job":
            continue
        assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"
        assert container["readinessProbe"]["httpGet"]["path"] in routes
        assert pod["terminationGracePeriodSeconds"] > sources().settings().drain + 20
        labels = manifest["spec"]["template"]["metadata"]["labels"]
        assert manifest["spec"]["selector"]["matchLabels"] == labels
    assert parts == {"--only", "api", "delivery", "stream"}
    stream = next(each for each in MANIFESTS if each["kind"] == "StatefulSet")
    assert stream["spec"]["replicas"] == 1, "one process runs the stream of a home"


def test_proxies_pass_on_what_the_service_needs() -> None:
    nginx, caddy = (DEPLOY / "nginx.conf").read_text(), (DEPLOY / "Caddyfile").read_text()
    for word in ("X-Forwarded-For", "X-Forwarded-Proto", "X-Request-ID", "Upgrade", "proxy_buffering off"):
        assert word in nginx
    assert nginx.count("{") == nginx.count("}") and caddy.count("{") == caddy.count("}")
    assert "access_log off" in nginx

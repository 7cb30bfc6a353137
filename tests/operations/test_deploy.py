"""The files in deploy/ name existing commands, options, settings and probes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from tests.support.paths import ROOT
from tests.support.servers.application import served
from tidings.cli.main import app
from tidings.cli.operations.config import OTHER_VARIABLES
from tidings.operations.settings_sources import find_unknown_variables, read_sources

DEPLOY = ROOT / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
MANIFESTS = list(yaml.safe_load_all((DEPLOY / "kubernetes" / "tidings.yaml").read_text()))


@cache
def commands() -> Any:
    return get_command(app)


def check_command_line(words: list[str]) -> None:
    """Check that `tidings` accepts a command line, without running it."""
    command = commands()
    while hasattr(command, "commands"):
        command = command.commands[words[0]]
        words = words[1:]
    command.make_context("tidings", words)


def check_settings(variables: dict[str, str]) -> None:
    """Check that environment variables are settings with valid values."""
    assert not find_unknown_variables(variables, OTHER_VARIABLES)
    own = {name: value for name, value in variables.items() if name not in OTHER_VARIABLES}
    before = dict(os.environ)
    os.environ.update(own)
    try:
        assert not read_sources().refusals()
    finally:
        os.environ.clear()
        os.environ.update(before)


def check_not_overridden(file: Path, variables: dict[str, str]) -> None:
    """Check that no variable of the same deployment overrides a setting of a file, which would have no effect."""
    sources = read_sources(config=file)
    assert not sources.refusals()
    overridden = {variable(name) for name in sources.origins} & set(variables)
    assert not overridden, f"{file.name} has settings that the environment overrides"


def variable(setting: str) -> str:
    return "TIDINGS_" + setting.upper().replace(".", "__")


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd_unit_is_valid_and_hardened(unit: Path, tmp_path: Path) -> None:
    lines = [line.partition("=") for line in unit.read_text().splitlines() if "=" in line and line[0] != "#"]
    check_settings(
        environment := dict(value.split("=", 1) for name, _, value in lines if name == "Environment")
    )
    assert environment["TIDINGS_HOME"] == "/var/lib/tidings" and ("StateDirectory", "=", "tidings") in lines
    assert (
        environment["NUMBA_CACHE_DIR"] == "/var/cache/tidings" and ("CacheDirectory", "=", "tidings") in lines
    )
    check_not_overridden(DEPLOY / "systemd" / "tidings.toml", environment)
    seconds = next(int(value) for name, _, value in lines if name == "TimeoutStopSec")
    assert seconds > read_sources().settings().drain + 20
    commands_started = [value for name, _, value in lines if name.startswith("ExecStart")]
    assert len(commands_started) == 2
    for command in commands_started:
        program, *words = command.replace("%i", "api").split()
        assert program == "/opt/tidings/.venv/bin/tidings"
        check_command_line(words)
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("no systemd-analyze here")
    name = unit.name.replace("@", "@api")
    text = unit.read_text().replace("/opt/tidings/.venv/bin/tidings", sys.executable)
    text = re.sub(r"^Documentation=.*\n", "", text, flags=re.MULTILINE)
    (tmp_path / name).write_text(text)
    process = subprocess.run(
        [analyze, "verify", "--man=no", tmp_path / name], capture_output=True, text=True, check=False
    )
    warnings = [line for line in process.stderr.splitlines() if name in line or unit.name in line]
    assert not warnings, process.stderr
    words = [analyze, "security", "--offline=true", "--threshold=35", tmp_path / name]
    assessment = subprocess.run(words, capture_output=True, text=True, check=False)
    assert assessment.returncode == 0, assessment.stdout


def instructions() -> Iterator[tuple[str, str]]:
    text = re.sub(r"\\\n", " ", (DEPLOY / "Containerfile").read_text())
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            word, _, rest = line.partition(" ")
            yield word, rest.strip()


def image() -> dict[str, str]:
    """Return the environment of the image."""
    [environment] = [rest for word, rest in instructions() if word == "ENV"]
    return dict(each.split("=", 1) for each in environment.split())


def test_containerfile_instructions_are_valid() -> None:
    parsed = list(instructions())
    assert {word for word, _ in parsed} <= {
        *("FROM", "RUN", "WORKDIR", "COPY", "ENV", "USER", "VOLUME", "EXPOSE"),
        *("STOPSIGNAL", "HEALTHCHECK", "ENTRYPOINT"),
    }
    assert parsed[0][0] == "FROM" and "/" not in parsed[0][1], "the base image names no registry"
    check_settings(variables := image())
    [entry] = [yaml.safe_load(rest) for word, rest in parsed if word == "ENTRYPOINT"]
    assert entry[:3] == ["tini", "--", "tidings"]
    check_command_line(entry[3:])
    for command in re.findall(
        r"tidings (doctor .*)", " ".join(rest for word, rest in parsed if word == "RUN")
    ):
        check_command_line(command.split())
    extras = re.search(r"\[([a-z,]+)\]", next(rest for word, rest in parsed if "pip --python" in rest))
    known_extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert extras and set(extras[1].split(",")) <= set(known_extras)
    [volumes] = [yaml.safe_load(rest) for word, rest in parsed if word == "VOLUME"]
    assert volumes == [variables["TIDINGS_HOME"], variables["NUMBA_CACHE_DIR"]]
    [user] = [rest for word, rest in parsed if word == "USER"]
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user), (
        "from a name, Kubernetes could not tell that it is not root"
    )


def test_dockerignore_allows_copied_files_only() -> None:
    copied = {
        source
        for word, rest in instructions()
        if word == "COPY" and not rest.startswith("--from")
        for source in rest.split()[:-1]
    }
    lines = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line[0] != "#"]
    assert lines[0] == "*" and {line[1:] for line in lines if line[0] == "!"} == copied
    assert all((ROOT / source).exists() for source in copied)


def test_health_check_of_image_reports_state_of_service(tmp_path: Path) -> None:
    """It succeeds with a running service and fails without one, whatever proxy is set."""
    [health] = [rest for word, rest in instructions() if word == "HEALTHCHECK"]
    _, *words = yaml.safe_load(health.partition("CMD")[2])
    proxy = {"http_proxy": "http://127.0.0.1:1"}
    with served(tmp_path / "home") as service:
        environment = proxy | {"TIDINGS_PORT": service.url.rpartition(":")[2]}
        assert subprocess.run([sys.executable, *words], env=environment, check=False).returncode == 0
    failed = subprocess.run([sys.executable, *words], env=environment, check=False, stderr=subprocess.DEVNULL)
    assert failed.returncode == 1


def containers() -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    for manifest in MANIFESTS:
        pod = manifest.get("spec", {}).get("template", {}).get("spec")
        for container in pod["containers"] if pod else ():
            yield manifest, container


def of_kind(kind: str) -> dict[str, dict[str, Any]]:
    return {each["metadata"]["name"]: each for each in MANIFESTS if each["kind"] == kind}


def test_kubernetes_manifests_use_existing_settings_options_and_probes(tmp_path: Path) -> None:
    settings = tmp_path / "tidings.toml"
    settings.write_text(of_kind("ConfigMap")["tidings"]["data"]["tidings.toml"])
    parts = set()
    for manifest, container in containers():
        words = container.get("command", ["tidings", "serve", *container.get("args", ())])
        assert words[0] == "tidings"
        check_command_line(words[1:])
        parts |= set(container.get("args", ()))
        environment = {each["name"]: each.get("value", "postgresql://x/y") for each in container["env"]}
        check_settings(environment)
        check_not_overridden(settings, image() | environment)
        if manifest["kind"] == "Job":
            continue
        probes = [container[f"{name}Probe"]["httpGet"] for name in ("liveness", "readiness")]
        assert [probe["path"] for probe in probes] == ["/healthz", "/readyz"]
        [port] = container["ports"]
        assert {probe["port"] for probe in probes} == {port["name"]}
        assert str(port["containerPort"]) == image()["TIDINGS_PORT"]
        grace = manifest["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
        assert grace > read_sources().settings().drain + 20
    assert parts == {"--only", "api", "delivery", "stream"}


def test_kubernetes_manifests_are_consistent_and_hardened() -> None:
    """Volumes are mounted, selectors match pods, ingresses lead to services, one stream runs, and nothing runs as
    root.
    """
    [user] = [rest for word, rest in instructions() if word == "USER"]
    labels = []
    for manifest, container in containers():
        pod, spec = manifest["spec"]["template"]["spec"], manifest["spec"]
        volumes = {each["name"] for each in pod["volumes"]}
        volumes |= {each["metadata"]["name"] for each in spec.get("volumeClaimTemplates", ())}
        assert {each["name"] for each in container["volumeMounts"]} == volumes
        assert {"/tmp", "/var/lib/tidings"} <= {each["mountPath"] for each in container["volumeMounts"]}
        own, common = container["securityContext"], pod["securityContext"]
        assert own["readOnlyRootFilesystem"] and not own["allowPrivilegeEscalation"]
        assert own["capabilities"] == {"drop": ["ALL"]} and common["runAsNonRoot"]
        assert f"{common['runAsUser']}:{common['runAsGroup']}" == user
        if "selector" in spec:
            labels.append(spec["template"]["metadata"]["labels"])
            assert spec["selector"]["matchLabels"] == labels[-1]
    services = of_kind("Service")
    assert all(each["spec"]["selector"] in labels for each in services.values())
    assert all(
        each["spec"]["selector"]["matchLabels"] in labels for each in of_kind("PodDisruptionBudget").values()
    )
    [stream] = of_kind("StatefulSet").values()
    assert stream["spec"]["replicas"] == 1, "one process runs the stream of a home"
    assert stream["spec"]["serviceName"] in services
    for ingress in of_kind("Ingress").values():
        for path in ingress["spec"]["rules"][0]["http"]["paths"]:
            assert path["backend"]["service"]["name"] in services
    unlogged = of_kind("Ingress")["tidings-feeds"]["spec"]["rules"][0]["http"]["paths"]
    assert {path["path"] for path in unlogged} == {"/feeds", "/opml", "/websub"}


def test_proxy_configurations_forward_required_headers() -> None:
    nginx, caddy = (DEPLOY / "nginx.conf").read_text(), (DEPLOY / "Caddyfile").read_text()
    for word in ("X-Forwarded-For", "X-Forwarded-Proto", "X-Request-ID", "Upgrade", "proxy_buffering off"):
        assert word in nginx
    assert nginx.count("{") == nginx.count("}") and caddy.count("{") == caddy.count("}")
    assert "access_log off" in nginx

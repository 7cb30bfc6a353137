"""What stands in deploy/ is true: commands, options, settings and probes that it names are there."""

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


def understood(words: list[str]) -> None:
    """A command line that `tidings` understands; it is not carried out."""
    command = commands()
    while hasattr(command, "commands"):
        command = command.commands[words[0]]
        words = words[1:]
    command.make_context("tidings", words)


def known(variables: dict[str, str]) -> None:
    """Variables of the environment that are settings, with values that can be."""
    assert not find_unknown_variables(variables, OTHER_VARIABLES)
    given = {name: value for name, value in variables.items() if name not in OTHER_VARIABLES}
    before = dict(os.environ)
    os.environ.update(given)
    try:
        assert not read_sources().refusals()
    finally:
        os.environ.clear()
        os.environ.update(before)


def not_outweighed(file: Path, variables: dict[str, str]) -> None:
    """Settings of a file that no variable of the same deployment outweighs: whoever changed them would see nothing."""
    found = read_sources(config=file)
    assert not found.refusals()
    outweighed = {variable(name) for name in found.origins} & set(variables)
    assert not outweighed, f"{file.name} says in vain what the environment says, too"


def variable(setting: str) -> str:
    return "TIDINGS_" + setting.upper().replace(".", "__")


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd(unit: Path, tmp_path: Path) -> None:
    lines = [line.partition("=") for line in unit.read_text().splitlines() if "=" in line and line[0] != "#"]
    known(environment := dict(value.split("=", 1) for name, _, value in lines if name == "Environment"))
    assert environment["TIDINGS_HOME"] == "/var/lib/tidings" and ("StateDirectory", "=", "tidings") in lines
    assert (
        environment["NUMBA_CACHE_DIR"] == "/var/cache/tidings" and ("CacheDirectory", "=", "tidings") in lines
    )
    not_outweighed(DEPLOY / "systemd" / "tidings.toml", environment)
    seconds = next(int(value) for name, _, value in lines if name == "TimeoutStopSec")
    assert seconds > read_sources().settings().drain + 20
    started = [value for name, _, value in lines if name.startswith("ExecStart")]
    assert len(started) == 2
    for command in started:
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
    words = [analyze, "security", "--offline=true", "--threshold=35", tmp_path / name]
    exposed = subprocess.run(words, capture_output=True, text=True, check=False)
    assert exposed.returncode == 0, exposed.stdout


def instructions() -> Iterator[tuple[str, str]]:
    text = re.sub(r"\\\n", " ", (DEPLOY / "Containerfile").read_text())
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            word, _, rest = line.partition(" ")
            yield word, rest.strip()


def image() -> dict[str, str]:
    """The environment of the image."""
    [environment] = [rest for word, rest in instructions() if word == "ENV"]
    return dict(each.split("=", 1) for each in environment.split())


def test_containerfile() -> None:
    found = list(instructions())
    assert {word for word, _ in found} <= {
        *("FROM", "RUN", "WORKDIR", "COPY", "ENV", "USER", "VOLUME", "EXPOSE"),
        *("STOPSIGNAL", "HEALTHCHECK", "ENTRYPOINT"),
    }
    assert found[0][0] == "FROM" and "/" not in found[0][1], "no registry is named"
    known(variables := image())
    [entry] = [yaml.safe_load(rest) for word, rest in found if word == "ENTRYPOINT"]
    assert entry[:3] == ["tini", "--", "tidings"]
    understood(entry[3:])
    for command in re.findall(
        r"tidings (doctor .*)", " ".join(rest for word, rest in found if word == "RUN")
    ):
        understood(command.split())
    extras = re.search(r"\[([a-z,]+)\]", next(rest for word, rest in found if "pip --python" in rest))
    known_extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert extras and set(extras[1].split(",")) <= set(known_extras)
    [volumes] = [yaml.safe_load(rest) for word, rest in found if word == "VOLUME"]
    assert volumes == [variables["TIDINGS_HOME"], variables["NUMBA_CACHE_DIR"]]
    [user] = [rest for word, rest in found if word == "USER"]
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user), "a name would not show Kubernetes that it is not root"


def test_what_is_copied_is_not_ignored_and_nothing_else_is_sent() -> None:
    copied = {
        source
        for word, rest in instructions()
        if word == "COPY" and not rest.startswith("--from")
        for source in rest.split()[:-1]
    }
    lines = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line[0] != "#"]
    assert lines[0] == "*" and {line[1:] for line in lines if line[0] == "!"} == copied
    assert all((ROOT / source).exists() for source in copied)


def test_the_health_check_asks(tmp_path: Path) -> None:
    """As it stands there: it is well with a service that is, and not if nobody is there; whatever proxy is set."""
    [health] = [rest for word, rest in instructions() if word == "HEALTHCHECK"]
    _, *words = yaml.safe_load(health.partition("CMD")[2])
    proxy = {"http_proxy": "http://127.0.0.1:1"}
    with served(tmp_path / "home") as service:
        given = proxy | {"TIDINGS_PORT": service.url.rpartition(":")[2]}
        assert subprocess.run([sys.executable, *words], env=given, check=False).returncode == 0
    gone = subprocess.run([sys.executable, *words], env=given, check=False, stderr=subprocess.DEVNULL)
    assert gone.returncode == 1


def containers() -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    for manifest in MANIFESTS:
        pod = manifest.get("spec", {}).get("template", {}).get("spec")
        for container in pod["containers"] if pod else ():
            yield manifest, container


def of_kind(kind: str) -> dict[str, dict[str, Any]]:
    return {each["metadata"]["name"]: each for each in MANIFESTS if each["kind"] == kind}


def test_kubernetes_names_what_there_is(tmp_path: Path) -> None:
    """Settings, commands, options, probes: all of them are the product's."""
    settings = tmp_path / "tidings.toml"
    settings.write_text(of_kind("ConfigMap")["tidings"]["data"]["tidings.toml"])
    parts = set()
    for manifest, container in containers():
        words = container.get("command", ["tidings", "serve", *container.get("args", ())])
        assert words[0] == "tidings"
        understood(words[1:])
        parts |= set(container.get("args", ()))
        given = {each["name"]: each.get("value", "postgresql://x/y") for each in container["env"]}
        known(given)
        not_outweighed(settings, image() | given)
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


def test_kubernetes_hangs_together() -> None:
    """Volumes that are mounted, pods that are selected, services that are led to; one stream; nothing as root."""
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


def test_proxies_pass_on_what_the_service_needs() -> None:
    nginx, caddy = (DEPLOY / "nginx.conf").read_text(), (DEPLOY / "Caddyfile").read_text()
    for word in ("X-Forwarded-For", "X-Forwarded-Proto", "X-Request-ID", "Upgrade", "proxy_buffering off"):
        assert word in nginx
    assert nginx.count("{") == nginx.count("}") and caddy.count("{") == caddy.count("}")
    assert "access_log off" in nginx

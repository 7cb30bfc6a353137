"""nginx and Caddy in front of a service, with TLS, from the configuration in deploy/ with other addresses and paths."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from tests.support.paths import ROOT
from tests.support.servers.ports import free_port

DEPLOY = ROOT / "deploy"
HOST, BEHIND = "tidings.example.org", "127.0.0.1:8080"
"""The addresses of the service in the configurations."""


@dataclass
class Proxy:
    """The address of a proxy, its certificate and its logs."""

    port: int
    folder: Path

    @property
    def url(self) -> str:
        return f"https://localhost:{self.port}"

    @cached_property
    def trusting(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self.folder / "tidings.pem")

    def client(self, token: str = "", **headers: str) -> httpx.Client:
        authorization = {"Authorization": f"Bearer {token}"} if token else {}
        return httpx.Client(
            base_url=self.url,
            headers=authorization | headers,
            verify=self.trusting,
            trust_env=False,
            timeout=60,
        )

    def logs(self) -> str:
        return "".join(log.read_text() for log in self.folder.glob("*.log"))


def program(name: str) -> str:
    """Return the path of a program; Debian has some of them in folders for root."""
    path = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin")
    if path is None:
        pytest.skip(f"no {name} here")
    return path


def make_certificate(folder: Path) -> None:
    subject = ("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost")
    kind = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    output = ("-keyout", str(folder / "tidings.key"), "-out", str(folder / "tidings.pem"))
    words = (program("openssl"), "req", "-x509", "-days", "2", *kind, *subject, *output)
    subprocess.run(words, check=True, capture_output=True)


def replaced(text: str, others: Mapping[str, str]) -> str:
    """Replace addresses and paths in a text, which must contain all of them."""
    for old, new in others.items():
        assert old in text, f"{old} is not in the configuration any more"
        text = text.replace(old, new)
    return text


def nginx(proxy: Proxy, behind: str) -> list[str]:
    folder = proxy.folder
    others = {
        "listen 80;": f"listen 127.0.0.1:{free_port()};",
        "listen 443 ": f"listen 127.0.0.1:{proxy.port} ",
        HOST: "localhost",
        "/etc/ssl/": f"{folder}/",
        BEHIND: behind,
    }
    (folder / "tidings.conf").write_text(replaced((DEPLOY / "nginx.conf").read_text(), others))
    temporary = "".join(
        f"{name}_temp_path {folder}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(
        f"daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log info;\n"
        f"events {{}}\nhttp {{ access_log {folder}/access.log; {temporary} include {folder}/tidings.conf; }}\n"
    )
    return [
        program("nginx"),
        "-p",
        str(folder),
        "-c",
        str(folder / "nginx.conf"),
        "-e",
        str(folder / "error.log"),
    ]


def caddy(proxy: Proxy, behind: str) -> list[str]:
    folder = proxy.folder
    site = f"{proxy.url} {{\n\tbind 127.0.0.1\n\ttls {folder}/tidings.pem {folder}/tidings.key"
    others = {
        "\n{\n": "\n{\n\tadmin off\n\tauto_https disable_redirects\n",
        f"\n{HOST} {{": f"\n{site}",
        BEHIND: behind,
    }
    (folder / "Caddyfile").write_text(replaced((DEPLOY / "Caddyfile").read_text(), others))
    return [program("caddy"), "run", "--config", str(folder / "Caddyfile"), "--adapter", "caddyfile"]


PROXIES: dict[str, Callable[[Proxy, str], list[str]]] = {"nginx": nginx, "caddy": caddy}


@contextmanager
def proxied(name: str, folder: Path, behind: str, port: int) -> Iterator[Proxy]:
    """Run a proxy at this port in front of the address until the block ends."""
    proxy = Proxy(port, folder)
    make_certificate(folder)
    words = PROXIES[name](proxy, urlsplit(behind).netloc)
    output = folder / "output.log"
    with output.open("w") as log:
        process = subprocess.Popen(words, stdout=log, stderr=log, env=os.environ | {"HOME": str(folder)})
    try:
        _wait_until_listening(process, proxy)
        yield proxy
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def _wait_until_listening(process: subprocess.Popen[bytes], proxy: Proxy) -> None:
    while process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", proxy.port), timeout=10).close()
            return
        except ConnectionRefusedError:
            os.sched_yield()
    raise AssertionError(proxy.logs())

"""A small WebSub hub on a local site, which verifies subscribers and signs pushed content."""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlencode

import httpx

from tests.support.servers.site import Request, Response, Site


@dataclass
class Hub:
    """A hub that verifies during the request, as some hubs do, and records callback, secret and response."""

    lease: int = 864_000
    status: int = 202
    subscriptions: list[dict[str, str]] = field(default_factory=list)
    verified: list[tuple[int, str]] = field(default_factory=list)

    def at(self, site: Site, path: str = "/hub") -> str:
        site.pages[path] = self.answer
        return site.url(path)

    def answer(self, request: Request) -> Response:
        form = {name: values[0] for name, values in parse_qs(request.body.decode()).items()}
        self.subscriptions.append(form)
        if self.status < 300:
            self.verified.append(self.verify(form["hub.callback"], form["hub.topic"]))
        return Response(self.status)

    def verify(self, callback: str, topic: str, mode: str = "subscribe") -> tuple[int, str]:
        query = {"hub.mode": mode, "hub.topic": topic, "hub.challenge": "prove it"}
        query |= {"hub.lease_seconds": str(self.lease)}
        answer = httpx.get(f"{callback}?{urlencode(query)}", trust_env=False)
        return answer.status_code, answer.text

    def push(self, body: bytes, method: str = "sha256", secret: str | None = None) -> int:
        """Push to the last subscriber; another secret simulates a forged push."""
        last = self.subscriptions[-1]
        key = (secret if secret is not None else last["hub.secret"]).encode()
        signed = {"X-Hub-Signature": f"{method}={hmac.new(key, body, method).hexdigest()}"}
        headers = {"Content-Type": "application/rss+xml", **signed}
        return httpx.post(last["hub.callback"], content=body, headers=headers, trust_env=False).status_code

"""Limits of the API: each is a setting, and is answered with what it is."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from tests.interfaces.api import served_api
from tidings.errors import SetupError
from tidings.interfaces.http.rates import Rates
from tidings.interfaces.http.v1.limits import VARIABLE, Limits, limits
from tidings.service import Tidings


def test_limits_are_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "rate=600, burst=10 subscriptions=5")
    assert limits() == Limits(rate=600, burst=10, subscriptions=5)
    for wrong in ("rate=0", "speed=5", "clauses=100000"):
        monkeypatch.setenv(VARIABLE, wrong)
        with pytest.raises(SetupError, match="limit"):
            limits()


def test_a_bucket_fills_up_again() -> None:
    now = [0.0]
    rates = Rates(60, 3, 2, clock=lambda: now[0])
    assert [rates.take("a").is_allowed for _ in range(4)] == [True, True, True, False]
    left = rates.take("a")
    assert (left.requests, left.seconds) == (0, 1)
    assert rates.take("b").is_allowed
    now[0] = 1.5
    assert [rates.take("a").is_allowed for _ in range(2)] == [True, False]
    rates.take("b"), rates.take("c")
    assert rates.take("a").requests == 2, "the one who came longest ago is forgotten"


def test_who_asks_too_often_with_a_token(tmp_path: Path) -> None:
    with Tidings(tmp_path) as tidings, served_api(tidings, Limits(rate=1, burst=3)) as service:
        ana, bo = service.caller("ana"), service.caller("bo")
        answers = [ana.get("/v1/subscriptions") for _ in range(4)]
        assert [one.status_code for one in answers] == [200, 200, 200, 429]
        assert answers[0].headers["ratelimit-policy"] == '"token";q=1;w=60'
        assert answers[0].headers["ratelimit"].startswith('"token";r=2;t=')
        refused = answers[3]
        assert 1 <= int(refused.headers["retry-after"]) <= 60
        assert (refused.json()["error"], refused.json()["status"]) == ("TooOften", 429)
        assert refused.json()["accepted"] == "1 request a minute with one token, 3 at once"
        assert refused.headers["ratelimit"].startswith('"token";r=0')
        assert bo.get("/v1/subscriptions").status_code == 200, "each token has its own"
        assert httpx.get(f"{service.address}/v1/openapi.json").status_code == 200


def test_more_than_memory_is_meant_for(tmp_path: Path) -> None:
    """A body that fits its own limit may still be too much, with all that is under way."""
    with Tidings(tmp_path) as tidings, served_api(tidings, Limits(body=5_000, uploads=1_000)) as service:
        headers = {"Content-Type": "application/json"}
        answer = service.shop.post("/v1/publications", content=b"x" * 2_000, headers=headers)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
        assert service.shop.post("/v1/publications", content=b"{}", headers=headers).status_code == 201

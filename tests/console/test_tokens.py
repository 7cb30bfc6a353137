"""Login to the console: tokens, cookies, sessions, and limits of attempts."""

from __future__ import annotations

import httpx

from tests.console.place import FORMS, PAGES, Clock, Place
from tests.support.processes.console_visitor import Visitor, console
from tidings.api.rate_limiter import RateLimiter
from tidings.console.tokens import FAILURES
from tidings.service.authorization import Access, Scope


def test_console_without_session_redirects_to_login(place: Place) -> None:
    for page in PAGES:
        answer = place.anonymous.get(f"/console/{page}")
        assert (answer.status_code, answer.headers["location"][:22]) == (303, "/console/login?next=/c")
    for form in FORMS:
        answer = place.anonymous.post(f"/console/{form}", text="{}")
        assert (answer.status_code, answer.headers["location"]) == (303, "/console/login")


def test_login_cookie_is_http_only_and_redirects_stay_local(place: Place) -> None:
    answer = place.anonymous.client.post(
        "/console/login", data={"token": place.secrets["ana"], "next": "/console/browse"}
    )
    cookie = answer.headers["set-cookie"].lower()
    assert answer.headers["location"] == "/console/browse"
    assert "httponly" in cookie and "samesite=strict" in cookie and "secure" not in cookie
    place.anonymous.client.cookies.clear()
    for next in ("https://elsewhere.example/", "//elsewhere.example", "/console/login", "/elsewhere"):
        answer = place.anonymous.client.post(
            "/console/login", data={"token": place.secrets["ana"], "next": next}
        )
        assert answer.headers["location"] == "/console"
        place.anonymous.client.cookies.clear()


def test_login_cookie_behind_https_is_secure(place: Place) -> None:
    with console(place.tidings, "https://tidings.example.org") as address:
        data = {"token": place.secrets["ana"]}
        answer = httpx.post(f"{address}/console/login", data=data, headers={"Origin": address})
        assert "secure" in answer.headers["set-cookie"].lower()


def test_logout_ends_session(place: Place) -> None:
    visitor = Visitor(place.address, place.secrets["bo"])
    assert visitor.post("/console/logout").headers["location"] == "/console/login"
    assert visitor.get("/console/browse").status_code == 303


def test_revoked_token_ends_session(place: Place) -> None:
    short_lived = Access(place.tidings.store).make("short", [Scope.PUBLISH])
    visitor = Visitor(place.address, short_lived.secret)
    assert place.root.post(f"/console/tokens/{short_lived.token.id}/revoke").status_code == 303
    assert visitor.get("/console/browse").status_code == 303


def test_login_over_attempt_limit_answers_429(place: Place) -> None:
    def attempt(token: str = "tdg_none") -> httpx.Response:
        return place.anonymous.client.post("/console/login", data={"token": token})

    assert "may be mistyped, expired or revoked" in attempt().text
    assert [attempt().status_code for _ in range(FAILURES - 1)] == [403] * (FAILURES - 1)
    refused = attempt(place.secrets["ana"])
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "6")
    place.clock.now += 6
    assert attempt(place.secrets["ana"]).status_code == 303
    place.anonymous.client.cookies.clear()


def test_login_attempts_refill_every_six_seconds(place: Place) -> None:
    """As docs/console.md states: ten at once, then one every six seconds, and at most twenty in a minute. The clock
    moves two seconds per attempt, starting with a full bucket.
    """
    place.clock.now += 60
    answers = []
    for _ in range(60):
        answers.append(place.anonymous.client.post("/console/login", data={"token": "tdg_none"}).status_code)
        place.clock.now += 2
    first = answers.index(429)
    assert answers[:first] == [403] * 14, "ten, and the four that came back in the 26 seconds that they took"
    assert answers[first:] == ([429, 403, 429] * 20)[: 60 - first]
    assert max(answers[at : at + 30].count(403) for at in range(30)) <= 2 * FAILURES
    place.clock.now += 60


def test_console_requests_over_rate_answer_429(place: Place) -> None:
    with console(place.tidings, rates=RateLimiter(1, 3, 10, Clock())) as address:
        visitor = Visitor(address, place.secrets["ana"])
        answers = [visitor.get("/console/browse") for _ in range(3)]
        assert [answer.status_code for answer in answers] == [200, 200, 429]
        assert answers[-1].headers["retry-after"] == "60" and "Too many requests" in answers[-1].text

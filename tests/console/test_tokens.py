"""Who gets into the console, with what cookie, for how long, and how often they may try."""

from __future__ import annotations

import httpx

from tests.console.place import FORMS, PAGES, Clock, Place
from tests.support.processes.console_visitor import Visitor, console
from tidings.api.limits import RateLimiter
from tidings.console.tokens import FAILURES
from tidings.service.authorization import Access, Scope


def test_visitor_without_a_session_is_redirected_to_the_login(place: Place) -> None:
    for page in PAGES:
        answer = place.nobody.get(f"/console/{page}")
        assert (answer.status_code, answer.headers["location"][:22]) == (303, "/console/login?next=/c")
    for form in FORMS:
        answer = place.nobody.post(f"/console/{form}", text="{}")
        assert (answer.status_code, answer.headers["location"]) == (303, "/console/login")


def test_the_cookie_is_out_of_reach(place: Place) -> None:
    answer = place.nobody.client.post(
        "/console/login", data={"token": place.secrets["ana"], "next": "/console/browse"}
    )
    said = answer.headers["set-cookie"].lower()
    assert answer.headers["location"] == "/console/browse"
    assert "httponly" in said and "samesite=strict" in said and "secure" not in said
    place.nobody.client.cookies.clear()
    for next in ("https://elsewhere.example/", "//elsewhere.example", "/console/login", "/elsewhere"):
        answer = place.nobody.client.post(
            "/console/login", data={"token": place.secrets["ana"], "next": next}
        )
        assert answer.headers["location"] == "/console"
        place.nobody.client.cookies.clear()


def test_cookie_behind_https_is_secure(place: Place) -> None:
    with console(place.tidings, "https://tidings.example.org") as address:
        data = {"token": place.secrets["ana"]}
        answer = httpx.post(f"{address}/console/login", data=data, headers={"Origin": address})
        assert "secure" in answer.headers["set-cookie"].lower()


def test_logging_out(place: Place) -> None:
    visitor = Visitor(place.address, place.secrets["bo"])
    assert visitor.post("/console/logout").headers["location"] == "/console/login"
    assert visitor.get("/console/browse").status_code == 303


def test_revoked_token_ends_the_session(place: Place) -> None:
    made = Access(place.tidings.store).make("short", [Scope.PUBLISH])
    visitor = Visitor(place.address, made.secret)
    assert place.root.post(f"/console/tokens/{made.token.id}/revoke").status_code == 303
    assert visitor.get("/console/browse").status_code == 303


def test_attempts_are_counted(place: Place) -> None:
    def attempt(token: str = "tdg_none") -> httpx.Response:
        return place.nobody.client.post("/console/login", data={"token": token})

    assert "may be mistyped, expired or revoked" in attempt().text
    assert [attempt().status_code for _ in range(FAILURES - 1)] == [403] * (FAILURES - 1)
    refused = attempt(place.secrets["ana"])
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "6")
    place.clock.now += 6
    assert attempt(place.secrets["ana"]).status_code == 303
    place.nobody.client.cookies.clear()


def test_failed_logins_regain_an_attempt_every_six_seconds(place: Place) -> None:
    """As docs/console.md says: ten at once, then one every six seconds, and twenty in a minute at most. By a clock that
    is moved two seconds for each attempt, from a bucket that is full.
    """
    place.clock.now += 60
    answers = []
    for _ in range(60):
        answers.append(place.nobody.client.post("/console/login", data={"token": "tdg_none"}).status_code)
        place.clock.now += 2
    first = answers.index(429)
    assert answers[:first] == [403] * 14, "ten, and the four that came back in the 26 seconds that they took"
    assert answers[first:] == ([429, 403, 429] * 20)[: 60 - first]
    assert max(answers[at : at + 30].count(403) for at in range(30)) <= 2 * FAILURES
    place.clock.now += 60


def test_console_requests_beyond_the_rate_answer_429(place: Place) -> None:
    with console(place.tidings, rates=RateLimiter(1, 3, 10, Clock())) as address:
        visitor = Visitor(address, place.secrets["ana"])
        answers = [visitor.get("/console/browse") for _ in range(3)]
        assert [answer.status_code for answer in answers] == [200, 200, 429]
        assert answers[-1].headers["retry-after"] == "60" and "Too many requests" in answers[-1].text

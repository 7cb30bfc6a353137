"""The console over HTTP: who gets in, what they see, and that forms of other sites do nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from fastapi.routing import APIRoute

from tests.browser.filled import fill
from tests.feeds.site import Response, a_site
from tests.interfaces.visiting import Visitor, console
from tidings.delivery import Rules
from tidings.interfaces.http.console.answering import GUARDED
from tidings.interfaces.http.console.examples import LANGUAGES
from tidings.interfaces.http.console.log_in import FAILURES
from tidings.interfaces.http.console.router import parts_for
from tidings.interfaces.http.console.subscriptions import PAGE
from tidings.interfaces.http.rates import Rates
from tidings.interfaces.http.v1.limits import Limits
from tidings.languages.rules import parse
from tidings.model import Reason
from tidings.service import Tidings
from tidings.service.access import Access, Scope
from tidings.service.delivering import destinations_of
from tidings.store import Found

HREF = re.compile(r'href="([^"]+)"')


class Clock:
    """Time that passes when somebody says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Place:
    """A console with something in it, and visitors with tokens of all kinds."""

    def __init__(self, tidings: Tidings, address: str, table: str, clock: Clock) -> None:
        self.tidings, self.address, self.table, self.clock = tidings, address, table, clock
        make = Access(tidings.store).make
        self.secrets = {
            "ana": make("phone", [Scope.SUBSCRIBE], "ana").secret,
            "bo": make("laptop", [Scope.SUBSCRIBE, Scope.PUBLISH], "bo").secret,
            "shop": make("shop", [Scope.PUBLISH]).secret,
            "root": make("root", [Scope.ADMINISTER]).secret,
        }
        self.ana, self.bo, self.shop, self.root = (Visitor(address, each) for each in self.secrets.values())
        self.nobody = Visitor(address)
        reached = destinations_of(tidings.store, Rules(inside=True))
        self.hook = reached.add("ana", "webhook", "http://127.0.0.1:9/hook", name="ana's hook").id


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    clock = Clock()
    with (
        Tidings(tmp_path_factory.mktemp("home")) as tidings,
        console(tidings, attempts=Rates(FAILURES, FAILURES, clock=clock)) as address,
    ):
        yield Place(tidings, address, fill(tidings), clock)


PAGES = (
    "notifications",
    "notifications/1",
    "notifications/1/inside",
    "notifications/new?after=0",
    "subscriptions",
    "subscriptions/new",
    "subscriptions/S",
    "subscriptions/S/edit",
    "destinations",
    "destinations/D",
    "publish",
    "browse",
    "browse/schema",
    "browse/taxonomies",
    "browse/references",
    "browse/metadata",
    "browse/metadata/class/CycleProvider",
    "browse/metadata/resource?uri=http://example.org/doc.ttl%23host",
    "browse/model",
    "browse/rules",
    "dead-letters",
    "dead-letters/1/mend",
    "pipeline",
    "tokens",
)
"""All pages that are only looked at; S is ana's subscription, D her destination."""

FORMS = (
    "notifications/acknowledge",
    "subscriptions",
    "subscriptions/S",
    "subscriptions/S/pause",
    "subscriptions/S/resume",
    "subscriptions/S/delete",
    "destinations",
    "destinations/quiet-hours",
    "destinations/D/test",
    "destinations/D/pause",
    "destinations/D/resume",
    "destinations/D/rotate",
    "destinations/D/replay",
    "destinations/D/delete",
    "publish",
    "dead-letters/1/replay",
    "tokens",
    "tokens/t-1/revoke",
    "logout",
)
"""All that forms are sent to."""


def test_every_route_is_among_those_that_are_tested(place: Place) -> None:
    def kind(path: str) -> str:
        named = {"1", "t-1", "CycleProvider", "S", "D"}
        return "/".join(part for part in path.split("/") if part not in named and not part.startswith("{"))

    known = {kind(path.split("?")[0]) for path in (*PAGES, *FORMS)}
    parts = parts_for(place.tidings, destinations_of(place.tidings.store), Limits())
    routes = [route for part in parts for route in part.routes]
    found = {kind(route.path).strip("/") for route in routes if isinstance(route, APIRoute)}
    assert found == known | {"login", "static"}


def test_strangers_are_led_to_the_log_in(place: Place) -> None:
    for page in PAGES:
        answer = place.nobody.get(f"/console/{page}")
        assert (answer.status_code, answer.headers["location"][:22]) == (303, "/console/login?next=/c")
    for form in FORMS:
        answer = place.nobody.post(f"/console/{form}", text="{}")
        assert (answer.status_code, answer.headers["location"]) == (303, "/console/login")


def test_every_answer_is_guarded(place: Place) -> None:
    pages = [
        page.replace("S", place.table).replace("D", place.hook)
        for page in PAGES
        if "notifications" not in page
    ]
    answers = [place.root.get(f"/console/{page}") for page in pages]
    answers += [place.nobody.get("/console/login"), place.ana.get("/console/tokens")]
    answers += [place.ana.get("/console/nonsense"), place.nobody.get("/console")]
    assert [answer.status_code for answer in answers[:-3]] == [200] * (len(answers) - 3)
    for answer in answers:
        for name, value in GUARDED.items():
            assert answer.headers[name] == value
        assert "<script>" not in answer.text and " style=" not in answer.text and "onclick" not in answer.text
    assert "default-src 'none'; script-src 'self'" in GUARDED["Content-Security-Policy"]


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


def test_behind_https_the_cookie_goes_nowhere_else(place: Place) -> None:
    with console(place.tidings, "https://tidings.example.org") as address:
        data = {"token": place.secrets["ana"]}
        answer = httpx.post(f"{address}/console/login", data=data, headers={"Origin": address})
        assert "secure" in answer.headers["set-cookie"].lower()


def test_logging_out(place: Place) -> None:
    visitor = Visitor(place.address, place.secrets["bo"])
    assert visitor.post("/console/logout").headers["location"] == "/console/login"
    assert visitor.get("/console/browse").status_code == 303


def test_a_revoked_token_opens_nothing_from_then_on(place: Place) -> None:
    made = Access(place.tidings.store).make("short", [Scope.PUBLISH])
    visitor = Visitor(place.address, made.secret)
    assert place.root.post(f"/console/tokens/{made.token.id}/revoke").status_code == 303
    assert visitor.get("/console/browse").status_code == 303


def test_attempts_are_counted(place: Place) -> None:
    def attempt(token: str = "tdg_none") -> httpx.Response:
        return place.nobody.client.post("/console/login", data={"token": token})

    assert [attempt().status_code for _ in range(FAILURES)] == [403] * FAILURES
    refused = attempt(place.secrets["ana"])
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "6")
    place.clock.now += 6
    assert attempt(place.secrets["ana"]).status_code == 303
    place.nobody.client.cookies.clear()


def test_a_token_that_asks_too_often_is_told_when_to_come_back(place: Place) -> None:
    with console(place.tidings, rates=Rates(1, 3, 10, Clock())) as address:
        visitor = Visitor(address, place.secrets["ana"])
        answers = [visitor.get("/console/browse") for _ in range(3)]
        assert [answer.status_code for answer in answers] == [200, 200, 429]
        assert answers[-1].headers["retry-after"] == "60" and "Too many requests" in answers[-1].text


def test_a_form_needs_its_word(place: Place) -> None:
    before = place.tidings.store.journal.head()
    for word in ("", "0" * 64, place.bo.word):
        answer = place.shop.client.post("/console/publish", data={"word": word, "text": '{"a": 1}'})
        assert (answer.status_code, "not made for you" in answer.text) == (403, True)
    assert place.tidings.store.journal.head() == before


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://elsewhere.example"},
        {"Origin": "null"},
        {"Origin": ""},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_other_sites_change_nothing(place: Place, headers: dict[str, str]) -> None:
    before = place.tidings.store.journal.head()
    data = {"word": place.shop.word, "text": '{"a": 1}'}
    answer = place.shop.client.post("/console/publish", data=data, headers=headers)
    assert (answer.status_code, "not sent by a page of this service" in answer.text) == (403, True)
    logged_in = place.nobody.client.post(
        "/console/login", data={"token": place.secrets["bo"]}, headers=headers
    )
    assert (logged_in.status_code, "set-cookie" in logged_in.headers) == (403, False)
    assert place.tidings.store.journal.head() == before


def test_what_a_token_is_for_is_all_it_shows(place: Place) -> None:
    def statuses(visitor: Visitor) -> set[str]:
        return {page for page in PAGES if visitor.get(f"/console/{page}").status_code == 403}

    of_administrators = {"dead-letters", "dead-letters/1/mend", "pipeline", "tokens"}
    of_subscribers = {
        page for page in PAGES if page.startswith(("notifications", "subscriptions", "destinations"))
    }
    assert statuses(place.bo) == of_administrators
    assert statuses(place.ana) == of_administrators | {"publish"}
    assert statuses(place.shop) == of_administrators | of_subscribers
    assert statuses(place.root) == set()
    assert place.ana.post("/console/publish", text="{}").status_code == 403
    for path in ("tokens", "tokens/t-1/revoke", "dead-letters/1/replay"):
        assert place.bo.post(f"/console/{path}", name="x", subscribe="yes").status_code == 403
    assert '/console/tokens"' not in place.ana.get("/console/browse").text


def test_nobody_sees_what_is_somebody_elses(place: Place) -> None:
    assert "price 180 &lt; 200" in place.ana.get("/console/notifications").text
    for path in ("notifications", "notifications/1", "notifications/1/inside", "notifications/new"):
        for given in ({}, {"subscriber": "ana"}):
            answer = place.bo.get(f"/console/{path}", after="0", **given)
            assert "price" not in answer.text, path
            assert answer.status_code == (403 if given else 404 if "/1" in path else 200)
    for act in ("", "/edit"):
        answer = place.bo.get(f"/console/subscriptions/{place.table}{act}")
        assert (answer.status_code, "dining room" in answer.text) == (404, False)
    for act in ("", "/pause", "/resume", "/delete"):
        assert (
            place.bo.post(f"/console/subscriptions/{place.table}{act}", text="price = 1").status_code == 404
        )
    assert "dining room" not in place.bo.get("/console/subscriptions").text
    assert place.bo.get("/console/subscriptions", subscriber="ana").status_code == 403
    given = {"language": "predicates", "text": "price < 5", "subscriber": "ana"}
    assert place.bo.post("/console/subscriptions", **given).status_code == 403
    assert place.root.get("/console/notifications", subscriber="a\x07").status_code == 422
    for act in ("test", "pause", "resume", "rotate", "replay", "delete"):
        assert place.bo.post(f"/console/destinations/{place.hook}/{act}").status_code == 404
    assert place.bo.get(f"/console/destinations/{place.hook}").status_code == 404
    assert place.hook not in place.bo.get("/console/destinations").text
    given = {"kind": "webhook", "target": "http://127.0.0.1:9/x", "subscriber": "ana"}
    assert place.bo.post("/console/destinations", **given).status_code == 403
    mine = given | {"subscriber": "bo", "subscription": place.table}
    assert place.bo.post("/console/destinations", **mine).status_code == 422
    assert place.bo.post("/console/destinations/quiet-hours", subscriber="ana").status_code == 403
    refused = place.bo.post("/console/notifications/acknowledge", upto="1", subscriber="ana")
    assert refused.status_code == 403
    assert place.tidings.store.acknowledgements.standing("ana").acknowledged == 0
    assert "No rules of yours" in place.bo.get("/console/browse/rules").text
    assert "memory" in place.ana.get("/console/browse/rules").text


def test_notifications_are_shown_with_why_and_acknowledged(place: Place) -> None:
    listed = place.ana.get("/console/notifications").text
    assert listed.index("price 180 &lt; 200") < listed.index("price 95 &lt; 200")
    numbers = [
        each.sequence for each in place.tidings.notifications("ana") if each.subscription == place.table
    ]
    inside = place.ana.get(f"/console/notifications/{numbers[-1]}/inside").text
    assert (
        '<mark class="number">180</mark>' in inside
        and '<mark class="string">&#34;table&#34;</mark>' in inside
    )
    graph = place.ana.get(f"/console/notifications/{len(place.tidings.notifications('ana'))}").text
    assert "<dt>?page</dt><dd>http://example.org/page</dd>" in graph and "text/turtle" in graph
    visitor = Visitor(place.address, place.secrets["root"])
    assert "Whose notifications?" in visitor.get("/console/notifications").text
    assert "of ana" in visitor.get("/console/notifications", subscriber="ana").text
    assert visitor.post("/console/notifications/acknowledge", upto="2", subscriber="ana").status_code == 303
    assert place.tidings.store.acknowledgements.standing("ana").acknowledged == 2
    assert visitor.post("/console/notifications/acknowledge", upto="99", subscriber="ana").status_code == 422
    assert "<strong" in place.ana.get("/console/notifications", before="3").text


def test_a_subscription_is_written_changed_paused_and_deleted(place: Place) -> None:
    """By plain forms, as without scripts."""
    checked = place.bo.post("/console/subscriptions", language="predicates", text="price < 5", act="check")
    assert checked.status_code == 200 and "1 predicate, reached through price" in checked.text
    made = place.bo.post(
        "/console/subscriptions", language="predicates", text="price < 5", within="10 minutes"
    )
    at = made.headers["location"].partition("?")[0]
    shown = place.bo.get(at).text
    assert "price &lt; 5" in shown and "10 minutes" in shown and ">active<" in shown
    assert place.bo.post(at, text="price < 6", within="").status_code == 303
    assert "price &lt; 6" in place.bo.get(f"{at}/edit").text
    for act, state in (("pause", ">paused<"), ("resume", ">active<")):
        assert place.bo.post(f"{at}/{act}").status_code == 303
        assert state in place.bo.get(at).text
    assert at in place.bo.get("/console/subscriptions", search="PRICE < 6").text
    assert "Nothing found" in place.bo.get("/console/subscriptions", search="price < 7").text
    assert "Deleted." in place.bo.get(place.bo.post(f"{at}/delete").headers["location"]).text
    assert place.bo.get(at).status_code == 404


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"text": "prise < 200"}, "<mark>prise</mark>"),
        ({"text": "price < 5 and"}, "expected a predicate"),
        ({"text": "price < 5", "within": "a while"}, "no duration"),
        ({"text": "price < 5", "language": "sql"}, "a subscription language"),
    ],
)
def test_what_is_wrong_with_a_subscription_stands_below_its_text(
    place: Place, fields: dict[str, str], said: str
) -> None:
    for act in ("check", "save"):
        for path in ("subscriptions", f"subscriptions/{place.table}"):
            if "language" in fields and "/" in path:
                continue  # it keeps its language
            answer = place.ana.post(f"/console/{path}", **({"language": "predicates", "act": act} | fields))
            assert answer.status_code == 422 and said.lower() in answer.text.lower()
    assert place.tidings.store.subscriptions.find(place.table) is not None


def test_subscriptions_are_shown_in_pages(place: Place) -> None:
    for number in range(PAGE + 1):
        place.tidings.subscribe("many", f"quantity = {number}", id=f"s-{number:03}")
    token = Access(place.tidings.store).make("many", [Scope.SUBSCRIBE], "many")
    visitor = Visitor(place.address, token.secret)
    first = visitor.get("/console/subscriptions").text
    assert "s-049" in first and "s-050" not in first and "after=s-049" in first
    assert "s-050" in visitor.get("/console/subscriptions", after="s-049").text
    everybodys = place.root.get("/console/subscriptions", search="quantity = 50").text
    assert "s-050" in everybodys and ">many<" in everybodys


def test_examples_are_taken_as_they_are(place: Place) -> None:
    """Those of rules are of the papers' schema, and parse."""
    for language in LANGUAGES:
        for example in language.examples:
            if language.name == "rules":
                parse(example.text)
            else:
                place.tidings.subscribing().check(language.name, example.text)


@pytest.mark.parametrize(
    ("text", "kind", "said"),
    [
        ('{"event_type": "antiques", "price": 9, "quantity": 1, "period": "XVI"}', "", "application/json"),
        ("<stock><price>9</price></stock>", "", "application/xml"),
        ("@prefix ex: <http://example.org/> . ex:a ex:b 1 .", "", "text/turtle"),
        ('<http://a.example/s> <http://a.example/p> "x" .', "application/n-triples", "application/n-triples"),
    ],
)
def test_publishing_by_paste(place: Place, text: str, kind: str, said: str) -> None:
    before = place.tidings.store.journal.head()
    answer = place.bo.post("/console/publish", text=text, kind=kind)
    assert (
        answer.status_code == 200 and "Published</strong> at position" in answer.text and said in answer.text
    )
    assert place.tidings.store.journal.head() == before + 1


def test_several_lines_have_an_outcome_each(place: Place) -> None:
    good = '{"event_type": "antiques", "price": 9, "quantity": 1, "period": "XVI"}'
    answer = place.bo.post("/console/publish", text=f'{good}\n{{"event_type": "antiques"}}\n{good}')
    assert "<strong>2 publications</strong>, 1 refused" in answer.text
    assert "mandatory for antiques" in answer.text


def test_what_cannot_be_published_is_underlined(place: Place) -> None:
    answer = place.bo.post("/console/publish", text='{"price": 1e999}\r\n')
    assert answer.status_code == 422 and 'role="alert"' in answer.text
    assert "{&#34;price&#34;: 1e999}" in answer.text  # the text is still there
    assert place.bo.post("/console/publish", text="<a><b></a>").status_code == 422
    assert place.bo.post("/console/publish", text=" ").status_code == 422
    assert place.bo.post("/console/publish", text="{}", kind="text/html").status_code == 422


def test_a_dead_letter_is_published_again_or_mended(place: Place) -> None:
    listed = place.root.get("/console/dead-letters").text
    assert "price is no number" in listed and "a lot" in listed
    refused = place.root.post("/console/dead-letters/1/replay")
    assert refused.status_code == 422 and "a lot" in refused.text  # it is as wrong as before: the form has it
    assert "a lot" in place.root.get("/console/dead-letters/1/mend").text
    assert place.root.post("/console/dead-letters/99/replay").status_code == 404


def test_a_destination_is_made_tried_rotated_and_paused(place: Place) -> None:
    with a_site() as site:
        site.pages["/hook"] = Response(204)
        made = place.bo.post("/console/destinations", kind="webhook", target=site.url("/hook"), name="mine")
        id = re.search(r"/console/destinations/(d-[0-9a-f]+)/test", made.text)[1]  # type: ignore[index]
        secret = re.search(r"whsec_[\w+/=]+", made.text)
        assert secret is not None and secret[0] not in place.bo.get(f"/console/destinations/{id}").text
        assert "The sample was taken" in place.bo.post(f"/console/destinations/{id}/test").text
        site.pages["/hook"] = Response(500, b"never")
        assert "The sample was not taken" in place.bo.post(f"/console/destinations/{id}/test").text
        rotated = re.search(r"whsec_[\w+/=]+", place.bo.post(f"/console/destinations/{id}/rotate").text)
        assert rotated is not None and rotated[0] != secret[0]
        for act, state in (("pause", ">paused<"), ("resume", ">active<")):
            assert (
                state
                in place.bo.get(place.bo.post(f"/console/destinations/{id}/{act}").headers["location"]).text
            )
        assert "mine" in place.bo.get("/console/destinations").text
        assert place.bo.post(f"/console/destinations/{id}/delete").status_code == 303
        assert place.bo.get(f"/console/destinations/{id}").status_code == 404
    refused = place.bo.post("/console/destinations", kind="webhook", target="ftp://example.org")
    assert refused.status_code == 422 and "ftp://example.org" in refused.text


def test_quiet_hours_are_kept(place: Place) -> None:
    said = {"start": "22:00", "end": "07:00", "zone": "Europe/Berlin"}
    assert place.bo.post("/console/destinations/quiet-hours", **said).status_code == 303
    assert 'value="Europe/Berlin"' in place.bo.get("/console/destinations").text
    assert place.bo.post("/console/destinations/quiet-hours", **said | {"zone": "Mars"}).status_code == 422
    assert place.bo.post("/console/destinations/quiet-hours", start="", end="", zone="").status_code == 303
    assert 'value="Europe/Berlin"' not in place.bo.get("/console/destinations").text


def test_what_somebody_may_not_see_any_more_is_withheld(place: Place) -> None:
    audiences, tidings = place.tidings.store.audiences, place.tidings
    audiences.grant("cy", "board")
    id = tidings.subscribe("cy", "price < 7").id
    secret_text = '{"event_type": "antiques", "price": 6, "quantity": 1, "period": "XIX"}'
    given = {"text": secret_text, "audience": "board"}
    published = re.search(r"<code>(p-[0-9a-f]+)</code>", place.shop.post("/console/publish", **given).text)
    assert published is not None
    found = [Found(published[1], id, "cy", (Reason("price < 7", 6, "/price"),))]
    tidings.store.notifications.commit_batch("a test", 77, found)
    visitor = Visitor(place.address, Access(tidings.store).make("cy", [Scope.SUBSCRIBE], "cy").secret)
    check = {"language": "predicates", "text": "price < 7", "act": "check"}
    assert "XIX" in visitor.get("/console/notifications/1").text
    assert published[1] in visitor.post("/console/subscriptions", **check).text
    audiences.revoke("cy", "board")
    for page in ("notifications", "notifications/1", "notifications/1/inside"):
        shown = visitor.get(f"/console/{page}").text
        assert "withheld" in shown and "XIX" not in shown and "price 6" not in shown
    assert published[1] not in visitor.post("/console/subscriptions", **check).text


def test_tokens_are_made_shown_once_and_listed(place: Place) -> None:
    made = place.root.post(
        "/console/tokens", name="cy's phone", subscriber="cy", lasting="2 days", subscribe="yes"
    )
    assert made.status_code == 200 and ">tdg_" in made.text
    listed = place.root.get("/console/tokens").text
    assert "cy&#39;s phone" in listed and ">tdg_" not in listed
    refused = place.root.post("/console/tokens", name="x", subscribe="yes")
    assert refused.status_code == 422 and "a token to subscribe is for somebody" in refused.text.lower()


def test_the_pipeline_is_a_table_without_scripts(place: Place) -> None:
    place.tidings.store.measures.add({"publications": 120, "batch_seconds": 0.25, "lag": 7, "segments": 3})
    shown = place.root.get("/console/pipeline").text
    assert "Throughput: publications (/s)" in shown and '<td class="number">0.25</td>' in shown
    assert '<td class="number">7</td>' in shown and "no stream runs" in shown


def test_what_no_page_can_be_asked_for_is_refused(place: Place) -> None:
    huge = "9" * 5_000
    for path in (f"notifications/{huge[:40]}", f"dead-letters/{huge[:40]}/mend", "notifications/x"):
        assert place.root.get(f"/console/{path}", subscriber="ana").status_code == 400
    for path, given in (
        ("notifications", {"before": huge[:40]}),
        ("subscriptions", {"search": "a\0"}),
        ("subscriptions", {"after": "\0"}),
        ("dead-letters", {"published": "\0"}),
        ("browse/metadata/class/%00", {}),
    ):
        assert place.root.get(f"/console/{path}", **given).status_code == 400
    assert place.ana.post("/console/notifications/acknowledge", upto=huge).status_code == 422
    assert place.ana.post("/console/notifications/acknowledge", upto="").status_code == 422
    hook = f"/console/destinations/{place.hook}"
    for number in (huge, "all", "\u0661"):
        assert place.ana.post(f"{hook}/replay", number=number).status_code == 422
    assert place.ana.post(f"{hook}/replay", number="1\0").status_code == 400
    assert place.ana.client.post(f"{hook}/replay", json={}).status_code == 415
    assert place.ana.client.post("/console/login", data={"token": "x" * 20_000}).status_code == 413


def test_pictures_are_drawn_in_the_page(place: Place) -> None:
    model = place.ana.get("/console/browse/model").text
    assert "<svg" in model and "«subscriber»" in model and "<style" not in model
    assert (
        "Lecturer" not in place.ana.get("/console/browse/model", **{"class": "Student"}).text.split("<svg")[1]
    )
    assert place.ana.get("/console/browse/model", source="none").status_code == 404
    assert "<svg" in place.ana.get("/console/browse/rules").text


def test_rules_of_others_are_not_drawn(place: Place) -> None:
    """Nor is their name told to whoever guesses one like it."""
    theirs = "search CycleProvider c register c where c.information.memory > 4711"
    id = place.tidings.subscribe("bo", theirs, "rules", id="bos-ports").id
    assert "4711" in place.bo.get("/console/browse/rules", rule=id).text
    assert "4711" not in place.ana.get("/console/browse/rules", rule=id).text
    for given in ({"rule": "bos-port"}, {}):
        assert id not in place.ana.get("/console/browse/rules", **given).text
    assert place.ana.get("/console/browse/rules", rule=id).status_code == 404
    assert "4711" in place.root.get("/console/browse/rules", rule=id).text
    place.tidings.unsubscribe([id])


def test_an_id_may_have_any_characters(place: Place) -> None:
    """Those of an address, too: other programs give ids."""
    id = "lots/of 100% #1?"
    place.tidings.subscribe("bo", "price < 4", id=id)
    [at] = [found for found in HREF.findall(place.bo.get("/console/subscriptions").text) if "lots" in found]
    assert "price &lt; 4" in place.bo.get(at).text and "price &lt; 4" in place.bo.get(f"{at}/edit").text
    changed = place.bo.post(at, text="price < 3").headers["location"]
    assert "Changed." in place.bo.get(changed).text
    paused = place.bo.post(f"{at}/pause").headers["location"]
    assert ">paused<" in place.bo.get(paused).text
    assert place.bo.post(f"{at}/delete").status_code == 303
    assert place.bo.get(at).status_code == 404


def test_whatever_is_published_stays_text(place: Place) -> None:
    evil = "<script>alert(1)</script>"
    resource = place.ana.get("/console/browse/metadata/resource", uri="http://example.org/doc.ttl#host").text
    assert "&lt;b&gt;pirates&lt;/b&gt; &amp; co" in resource
    assert evil not in place.bo.post("/console/publish", text=evil, kind="application/json").text
    assert evil not in place.ana.get(f"/console/{evil}").text


def test_files_are_asked_for_once(place: Place) -> None:
    first = place.nobody.get("/console/static/console.css")
    headers = {"If-None-Match": first.headers["etag"]}
    assert first.headers["content-type"].startswith("text/css")
    assert place.nobody.client.get("/console/static/console.css", headers=headers).status_code == 304
    assert place.nobody.get("/console/static/console.py").status_code == 404
    assert place.nobody.get("/console/static/..%2F__init__.py").status_code in (303, 404)


def test_nothing_comes_from_elsewhere() -> None:
    """No file that a browser loads names another host, and pages have neither scripts nor styles in them."""
    folder = Path(__import__("tidings.interfaces.http.console", fromlist=["x"]).__file__).parent
    for file in (*folder.glob("static/*"), *folder.glob("templates/*")):
        text = re.sub(r'http://www\.w3\.org/2000/svg|placeholder="[^"]*"', "", file.read_text())
        assert "http:" not in text and "https:" not in text and "@import" not in text, file.name
        assert "style=" not in text and "onclick" not in text and "javascript:" not in text, file.name

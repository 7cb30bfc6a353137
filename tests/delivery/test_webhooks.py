"""Webhooks to a real receiver on loopback: signatures, order, retries, what is refused."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import chain, repeat
from pathlib import Path

import pytest
from standardwebhooks.webhooks import WebhookVerificationError

from tests.delivery.delivering_store import OK, RULES, Delivering, delivering, event, subjects, verified
from tests.support.servers.site import Request, Response, Site
from tidings.delivery.destinations import WEBHOOK
from tidings.delivery.retry_policy import DeliveryPolicy
from tidings.errors import Absent, InputError
from tidings.operations.egress_policy import EgressPolicy
from tidings.store.encoding import format_instant

SCHEDULE = (5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000)


def in_turn(*answers: Response) -> object:
    """Answers in turn, then the last again and again."""
    left = chain(answers, repeat(answers[-1]))
    return lambda _: next(left)


def test_a_notification_arrives_signed_as_a_cloud_event(at: Delivering, site: Site) -> None:
    hook = at.webhook(site)
    at.tell("ana", "s-1", "p-1")
    at.steps()
    [request] = site.requests
    told = verified(request, hook.secret)
    assert (told["type"], told["source"], told["subject"]) == (
        "tidings.notification",
        "/subscriptions/s-1",
        "p-1",
    )
    assert told["data"]["publication"]["body"] == {"title": "p-1", "price": 180}
    assert request.headers["webhook-id"] == told["id"] and told["id"].startswith("n-")
    assert request.headers["content-type"] == "application/cloudevents+json"
    with pytest.raises(WebhookVerificationError):
        verified(replace(request, body=request.body + b" "), hook.secret)
    [happened] = at.happened
    assert (happened.what, happened.kind, happened.ids) == ("delivered", WEBHOOK, (told["id"],))


def test_it_begins_with_what_is_told_after_it_was_made(at: Delivering, site: Site) -> None:
    at.tell("ana", "s-1", "p-1", "p-2")
    at.webhook(site, path="/all")
    at.webhook(site, path="/one", subscription="s-2")
    at.tell("ana", "s-1", "p-3")
    at.tell("ana", "s-2", "p-3", "p-4")
    at.tell("bo", "s-3", "p-5")
    at.steps()
    arrived = {path: [one for one in site.requests if one.path == path] for path in ("/all", "/one")}
    of = [(event(one)["source"][-3:], event(one)["subject"]) for one in arrived["/all"]]
    assert sorted(of) == [("s-1", "p-3"), ("s-2", "p-3"), ("s-2", "p-4")]
    assert subjects(arrived["/one"]) == ["p-3", "p-4"]


def test_order_is_kept_and_a_failure_holds_its_own_subscription_only(at: Delivering, site: Site) -> None:
    failing = {"p-2"}

    def answer(request: Request) -> Response:
        return Response(500, b"not now") if event(request)["subject"] in failing else OK

    site.pages["/"] = answer  # type: ignore[assignment]
    hook = at.webhook(site)
    at.tell("ana", "s-1", "p-1", "p-2", "p-3")
    at.tell("ana", "s-2", "p-4", "p-5")
    at.steps()
    assert sorted(subjects(site.requests)) == ["p-1", "p-2", "p-4", "p-5"]
    health = at.store.destinations.health("ana")
    assert (health["s-1"].delivered, health["s-1"].consecutive_failures) == (1, 1)
    assert health["s-1"].last_error == "status 500: not now"
    assert (health["s-2"].delivered, health["s-2"].consecutive_failures) == (2, 0)
    failing.clear()
    at.clock.go(5)
    at.steps()
    of_first = [one for one in site.requests if event(one)["source"].endswith("s-1")]
    assert subjects(of_first) == ["p-1", "p-2", "p-2", "p-3"]
    assert len({one.headers["webhook-id"] for one in of_first}) == 3, "what is repeated has its id again"
    whole = at.store.destinations.health_of([hook.id])[hook.id]
    assert (whole.delivered, whole.consecutive_failures) == (5, 0)
    assert whole.last_success == format_instant(at.clock()) and whole.last_error == "status 500: not now"


def test_the_schedule_of_standard_webhooks_then_a_dead_letter(at: Delivering, site: Site) -> None:
    assert DeliveryPolicy().retries == SCHEDULE
    site.pages["/"] = Response(503)
    hook = at.webhook(site)
    at.tell("ana", "s-1", "p-1", "p-2")
    for number, wait in enumerate(SCHEDULE, 1):
        at.steps()
        at.steps()
        assert len(site.requests) == number
        at.clock.go(wait - 1)
        at.steps()
        assert len(site.requests) == number, "not before its time"
        at.clock.go(1)
    assert at.store.dead_deliveries.list(hook.id) == []
    at.steps()
    assert subjects(site.requests) == ["p-1"] * 9 + ["p-2"], "the lane goes on"
    [letter] = at.store.dead_deliveries.list(hook.id)
    assert (letter.first, letter.attempts, letter.problem) == (1, 9, "status 503")
    assert letter.message == site.requests[0].headers["webhook-id"]
    assert [one.what for one in at.happened] == ["failed"] * 8 + ["dead", "failed"]


def test_waits_differ_by_chance(sqlite: str, site: Site) -> None:
    with delivering(sqlite, replace(RULES, jitter=0.5)) as at:
        site.pages["/"] = Response(500)
        at.subscribe("ana", "s-1")
        at.webhook(site)
        at.tell("ana", "s-1", "p-1")
        at.steps()
        at.clock.go(5)
        at.steps()
        assert len(site.requests) == 1
        at.clock.go(2.5)
        at.steps()
        assert len(site.requests) == 2


@pytest.mark.parametrize(("said", "waits"), [("60", 60), ("1", 5), ("99999999", 86_400)])
@pytest.mark.parametrize("status", [429, 503])
def test_retry_after_is_heeded(tmp_path: Path, site: Site, status: int, said: str, waits: int) -> None:
    with delivering(f"sqlite:///{tmp_path}/store.db") as at:
        at.subscribe("ana", "s-1")
        site.pages["/"] = in_turn(Response(status, headers={"Retry-After": said}), OK)  # type: ignore[assignment]
        at.webhook(site)
        at.tell("ana", "s-1", "p-1")
        at.steps()
        at.clock.go(waits - 1)
        at.steps()
        assert len(site.requests) == 1
        at.clock.go(1)
        at.steps()
        assert len(site.requests) == 2


def test_410_disables_and_resuming_goes_on(at: Delivering, site: Site) -> None:
    site.pages["/"] = Response(410)
    hook = at.webhook(site)
    at.tell("ana", "s-1", "p-1")
    at.steps()
    at.tell("ana", "s-1", "p-2")
    at.clock.go(1_000_000)
    at.steps()
    assert len(site.requests) == 1
    found = at.destinations.find(hook.id)
    assert found.state == "disabled" and found.reason and "410" in found.reason
    site.pages["/"] = OK
    assert at.store.destinations.resume(hook.id)
    at.steps()
    assert subjects(site.requests[1:]) == ["p-1", "p-2"]
    assert at.destinations.find(hook.id).reason is None


def test_a_redirect_is_a_failure(sqlite_at: Delivering, site: Site) -> None:
    site.pages["/"] = Response(302, headers={"Location": "/other"})
    site.pages["/other"] = OK
    sqlite_at.webhook(site)
    sqlite_at.tell("ana", "s-1", "p-1")
    sqlite_at.steps()
    assert [one.path for one in site.requests] == ["/"]
    error = sqlite_at.store.destinations.health("ana")["s-1"].last_error
    assert error == "status 302 (redirects are not followed: /other)"


def test_pausing_keeps_the_place(at: Delivering, site: Site) -> None:
    hook = at.webhook(site)
    at.tell("ana", "s-1", "p-1")
    at.steps()
    at.store.destinations.pause(hook.id)
    at.tell("ana", "s-1", "p-2")
    at.tell("ana", "s-2", "p-3")
    at.steps()
    assert len(site.requests) == 1
    at.store.destinations.resume(hook.id)
    at.steps()
    assert sorted(subjects(site.requests)) == ["p-1", "p-2", "p-3"]


def test_a_changed_target_is_tried_at_once(at: Delivering, site: Site) -> None:
    site.pages["/"], site.pages["/new"] = Response(500), OK
    hook = at.webhook(site)
    at.tell("ana", "s-1", "p-1")
    at.steps()
    at.destinations.change(hook.id, site.url("/new"), "phone")
    at.steps()
    assert [one.path for one in site.requests] == ["/", "/new"]
    assert at.destinations.find(hook.id).name == "phone"


def test_two_secrets_sign_until_the_old_one_is_dropped(at: Delivering, site: Site) -> None:
    old = at.webhook(site)
    new = at.destinations.rotate(old.id)
    assert new.secret != old.secret and new.old_secret == old.secret
    at.tell("ana", "s-1", "p-1")
    at.steps()
    assert verified(site.requests[0], old.secret) == verified(site.requests[0], new.secret)
    at.store.destinations.drop_old_secret(old.id)
    at.tell("ana", "s-1", "p-2")
    at.steps()
    verified(site.requests[1], new.secret)
    with pytest.raises(WebhookVerificationError):
        verified(site.requests[1], old.secret)


def test_an_old_secret_ends_by_itself(sqlite: str, site: Site) -> None:
    with delivering(sqlite, replace(RULES, overlap=timedelta(hours=1))) as at:
        at.subscribe("ana", "s-1")
        old = at.webhook(site)
        new = at.destinations.rotate(old.id)
        at.clock.go(3_600)
        at.tell("ana", "s-1", "p-1")
        at.steps()
        verified(site.requests[0], new.secret)
        with pytest.raises(WebhookVerificationError):
            verified(site.requests[0], old.secret)


@pytest.mark.parametrize(
    "target",
    ["ftp://example.org/", "http://", "http://ana:secret@example.org/", "http://example.org/#x", "nonsense"],
)
def test_what_is_no_webhook(sqlite_at: Delivering, target: str) -> None:
    with pytest.raises(InputError) as refused:
        sqlite_at.destinations.add("ana", WEBHOOK, target)
    assert "secret" not in str(refused.value)


def test_private_addresses_are_refused_when_made(sqlite: str) -> None:
    with delivering(sqlite, DeliveryPolicy()) as at:
        for target in ("http://127.0.0.1/", "http://[::1]/", "http://169.254.169.254/x", "http://10.0.0.1/"):
            with pytest.raises(InputError, match="private network") as refused:
                at.destinations.add("ana", WEBHOOK, target)
            assert "delivery.private_callbacks" in (refused.value.hint or "")


def test_a_name_that_leads_inside_later_gains_nothing(sqlite: str, site: Site) -> None:
    """DNS rebinding: public when the destination was made, this machine when it is delivered to."""
    leads = ["93.184.216.34"]
    network = EgressPolicy(resolve=lambda host, port: leads)
    with delivering(sqlite, replace(RULES, inside=False), network) as at:
        at.subscribe("ana", "s-1")
        hook = at.destinations.add("ana", WEBHOOK, f"http://rebound.example:{site.port}/?key=secret")
        leads[:] = ["127.0.0.1"]
        at.tell("ana", "s-1", "p-1")
        at.steps()
        assert site.requests == []
        health = at.store.destinations.health_of([hook.id])[hook.id]
        assert health.last_error == "the address is in a private network, which is not allowed here"
        assert at.destinations.shown(hook) == f"http://rebound.example:{site.port}/?..."


def test_a_subscription_of_somebody_else_is_not_there(sqlite_at: Delivering, site: Site) -> None:
    with pytest.raises(Absent):
        sqlite_at.webhook(site, subscription="s-3")
    with pytest.raises(Absent):
        sqlite_at.webhook(site, subscription="s-9")
    with pytest.raises(InputError, match="unknown type"):
        sqlite_at.destinations.add("ana", "pigeon", "http://example.org/")


def test_only_so_many_destinations(sqlite: str, site: Site) -> None:
    with delivering(sqlite, replace(RULES, per_subscriber=1)) as at:
        at.webhook(site)
        with pytest.raises(InputError, match="too many destinations"):
            at.webhook(site)
        at.webhook(site, "bo")


def test_a_sample_is_sent_now_and_the_answer_told(sqlite_at: Delivering, site: Site) -> None:
    site.pages["/"] = in_turn(OK, Response(418, b"a teapot"))  # type: ignore[assignment]
    hook = sqlite_at.webhook(site)
    tested = sqlite_at.destinations.test(hook)
    assert (tested.taken, tested.status, tested.problem) == (True, 204, None)
    sample = verified(site.requests[0], hook.secret)
    assert sample["type"] == "tidings.test" and sample["data"]["publication"]["body"]["title"] == "A sample"
    tested = sqlite_at.destinations.test(hook)
    assert (tested.taken, tested.status, tested.problem) == (False, 418, "status 418: a teapot")
    sqlite_at.destinations.change(hook.id, "http://127.0.0.1:1/")
    tested = sqlite_at.destinations.test(sqlite_at.destinations.find(hook.id))
    assert not tested.taken and tested.status is None and "connection refused" in str(tested.problem)


def test_what_its_owner_may_not_see_any_more_is_passed_by(at: Delivering, site: Site) -> None:
    """It was theirs to see when they were told; the grant is revoked before it is delivered."""
    at.store.audiences.grant("ana", "press")
    hook = at.webhook(site)
    at.tell("ana", "s-1", "p-1")
    at.tell("ana", "s-1", "p-2", audience="press")
    at.tell("ana", "s-1", "p-3")
    at.tell("ana", "s-1", "p-4", audience="press")
    at.store.audiences.revoke("ana", "press")
    at.steps()
    assert subjects(site.requests) == ["p-1", "p-3"]
    assert at.store.destinations.health_of([hook.id])[hook.id].delivered == 2
    at.store.audiences.grant("ana", "press")
    at.tell("ana", "s-1", "p-5", audience="press")
    at.steps()
    assert subjects(site.requests) == ["p-1", "p-3", "p-5"]


def test_a_destination_that_is_removed_leaves_nothing(at: Delivering, site: Site) -> None:
    hook = at.webhook(site)
    at.tell("ana", "s-1", "p-1")
    assert at.store.destinations.remove(hook.id) and not at.store.destinations.remove(hook.id)
    at.steps()
    assert site.requests == [] and at.store.destinations.health("ana") == {}
    with pytest.raises(Absent):
        at.destinations.find(hook.id)

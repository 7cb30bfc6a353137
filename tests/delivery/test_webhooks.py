"""Webhooks to a real receiver on loopback: signatures, order, retries and rejected targets."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import chain, repeat
from pathlib import Path

import pytest
from standardwebhooks.webhooks import WebhookVerificationError

from tests.delivery.delivery_setup import OK, RULES, DeliverySetup, event, open_delivery, subjects, verified
from tests.support.servers.site import Request, Response, Site
from tidings.delivery.delivery_policy import DeliveryPolicy
from tidings.delivery.destinations import WEBHOOK
from tidings.errors import InputError, NotFound
from tidings.operations.egress_policy import EgressPolicy
from tidings.store.encoding import format_instant

SCHEDULE = (5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000)


def answer_in_turn(*answers: Response) -> object:
    """Return a handler that gives the answers in turn, then repeats the last one."""
    remaining = chain(answers, repeat(answers[-1]))
    return lambda _: next(remaining)


def test_webhook_notification_is_signed_cloud_event(delivery: DeliverySetup, site: Site) -> None:
    hook = delivery.webhook(site)
    delivery.notify("ana", "s-1", "p-1")
    delivery.steps()
    [request] = site.requests
    cloud_event = verified(request, hook.secret)
    assert (cloud_event["type"], cloud_event["source"], cloud_event["subject"]) == (
        "tidings.notification",
        "/subscriptions/s-1",
        "p-1",
    )
    assert cloud_event["data"]["publication"]["body"] == {"title": "p-1", "price": 180}
    assert request.headers["webhook-id"] == cloud_event["id"] and cloud_event["id"].startswith("n-")
    assert request.headers["content-type"] == "application/cloudevents+json"
    with pytest.raises(WebhookVerificationError):
        verified(replace(request, body=request.body + b" "), hook.secret)
    [delivered] = delivery.events
    assert (delivered.what, delivered.kind, delivered.ids) == ("delivered", WEBHOOK, (cloud_event["id"],))


def test_webhook_starts_with_notifications_after_its_creation(delivery: DeliverySetup, site: Site) -> None:
    delivery.notify("ana", "s-1", "p-1", "p-2")
    delivery.webhook(site, path="/all")
    delivery.webhook(site, path="/one", subscription="s-2")
    delivery.notify("ana", "s-1", "p-3")
    delivery.notify("ana", "s-2", "p-3", "p-4")
    delivery.notify("bo", "s-3", "p-5")
    delivery.steps()
    arrived = {path: [one for one in site.requests if one.path == path] for path in ("/all", "/one")}
    sources_and_subjects = [(event(one)["source"][-3:], event(one)["subject"]) for one in arrived["/all"]]
    assert sorted(sources_and_subjects) == [("s-1", "p-3"), ("s-2", "p-3"), ("s-2", "p-4")]
    assert subjects(arrived["/one"]) == ["p-3", "p-4"]


def test_webhook_failure_delays_only_its_own_subscription(delivery: DeliverySetup, site: Site) -> None:
    failing = {"p-2"}

    def answer(request: Request) -> Response:
        return Response(500, b"not now") if event(request)["subject"] in failing else OK

    site.pages["/"] = answer  # type: ignore[assignment]
    hook = delivery.webhook(site)
    delivery.notify("ana", "s-1", "p-1", "p-2", "p-3")
    delivery.notify("ana", "s-2", "p-4", "p-5")
    delivery.steps()
    assert sorted(subjects(site.requests)) == ["p-1", "p-2", "p-4", "p-5"]
    health = delivery.store.destinations.health("ana")
    assert (health["s-1"].delivered, health["s-1"].consecutive_failures) == (1, 1)
    assert health["s-1"].last_error == "status 500: not now"
    assert (health["s-2"].delivered, health["s-2"].consecutive_failures) == (2, 0)
    failing.clear()
    delivery.clock.go(5)
    delivery.steps()
    of_first = [one for one in site.requests if event(one)["source"].endswith("s-1")]
    assert subjects(of_first) == ["p-1", "p-2", "p-2", "p-3"]
    assert len({one.headers["webhook-id"] for one in of_first}) == 3, "a repeated request has the same id"
    total = delivery.store.destinations.health_of([hook.id])[hook.id]
    assert (total.delivered, total.consecutive_failures) == (5, 0)
    assert (
        total.last_success == format_instant(delivery.clock()) and total.last_error == "status 500: not now"
    )


def test_webhook_retries_follow_standard_schedule_then_dead_letter(
    delivery: DeliverySetup, site: Site
) -> None:
    assert DeliveryPolicy().retry_delays == SCHEDULE
    site.pages["/"] = Response(503)
    hook = delivery.webhook(site)
    delivery.notify("ana", "s-1", "p-1", "p-2")
    for number, wait in enumerate(SCHEDULE, 1):
        delivery.steps()
        delivery.steps()
        assert len(site.requests) == number
        delivery.clock.go(wait - 1)
        delivery.steps()
        assert len(site.requests) == number, "not before its time"
        delivery.clock.go(1)
    assert delivery.store.dead_deliveries.list(hook.id) == []
    delivery.steps()
    assert subjects(site.requests) == ["p-1"] * 9 + ["p-2"], "the next notification follows"
    [letter] = delivery.store.dead_deliveries.list(hook.id)
    assert (letter.first, letter.attempts, letter.problem) == (1, 9, "status 503")
    assert letter.message == site.requests[0].headers["webhook-id"]
    assert [one.what for one in delivery.events] == ["failed"] * 8 + ["dead", "failed"]


def test_webhook_retry_delay_has_jitter(sqlite: str, site: Site) -> None:
    with open_delivery(sqlite, replace(RULES, jitter=0.5)) as delivery:
        site.pages["/"] = Response(500)
        delivery.subscribe("ana", "s-1")
        delivery.webhook(site)
        delivery.notify("ana", "s-1", "p-1")
        delivery.steps()
        delivery.clock.go(5)
        delivery.steps()
        assert len(site.requests) == 1
        delivery.clock.go(2.5)
        delivery.steps()
        assert len(site.requests) == 2


@pytest.mark.parametrize(("header", "delay"), [("60", 60), ("1", 5), ("99999999", 86_400)])
@pytest.mark.parametrize("status", [429, 503])
def test_webhook_retry_after_header_sets_delay(
    tmp_path: Path, site: Site, status: int, header: str, delay: int
) -> None:
    with open_delivery(f"sqlite:///{tmp_path}/store.db") as delivery:
        delivery.subscribe("ana", "s-1")
        site.pages["/"] = answer_in_turn(Response(status, headers={"Retry-After": header}), OK)  # type: ignore[assignment]
        delivery.webhook(site)
        delivery.notify("ana", "s-1", "p-1")
        delivery.steps()
        delivery.clock.go(delay - 1)
        delivery.steps()
        assert len(site.requests) == 1
        delivery.clock.go(1)
        delivery.steps()
        assert len(site.requests) == 2


def test_webhook_status_410_disables_destination_until_resumed(delivery: DeliverySetup, site: Site) -> None:
    site.pages["/"] = Response(410)
    hook = delivery.webhook(site)
    delivery.notify("ana", "s-1", "p-1")
    delivery.steps()
    delivery.notify("ana", "s-1", "p-2")
    delivery.clock.go(1_000_000)
    delivery.steps()
    assert len(site.requests) == 1
    destination = delivery.destinations.find(hook.id)
    assert destination.state == "disabled" and destination.reason and "410" in destination.reason
    site.pages["/"] = OK
    assert delivery.store.destinations.resume(hook.id)
    delivery.steps()
    assert subjects(site.requests[1:]) == ["p-1", "p-2"]
    assert delivery.destinations.find(hook.id).reason is None


def test_webhook_redirect_is_failure(sqlite_delivery: DeliverySetup, site: Site) -> None:
    site.pages["/"] = Response(302, headers={"Location": "/other"})
    site.pages["/other"] = OK
    sqlite_delivery.webhook(site)
    sqlite_delivery.notify("ana", "s-1", "p-1")
    sqlite_delivery.steps()
    assert [one.path for one in site.requests] == ["/"]
    error = sqlite_delivery.store.destinations.health("ana")["s-1"].last_error
    assert error == "status 302 (redirects are not followed: /other)"


def test_webhook_pause_keeps_cursor(delivery: DeliverySetup, site: Site) -> None:
    hook = delivery.webhook(site)
    delivery.notify("ana", "s-1", "p-1")
    delivery.steps()
    delivery.store.destinations.pause(hook.id)
    delivery.notify("ana", "s-1", "p-2")
    delivery.notify("ana", "s-2", "p-3")
    delivery.steps()
    assert len(site.requests) == 1
    delivery.store.destinations.resume(hook.id)
    delivery.steps()
    assert sorted(subjects(site.requests)) == ["p-1", "p-2", "p-3"]


def test_webhook_changed_target_is_tried_immediately(delivery: DeliverySetup, site: Site) -> None:
    site.pages["/"], site.pages["/new"] = Response(500), OK
    hook = delivery.webhook(site)
    delivery.notify("ana", "s-1", "p-1")
    delivery.steps()
    delivery.destinations.change(hook.id, site.url("/new"), "phone")
    delivery.steps()
    assert [one.path for one in site.requests] == ["/", "/new"]
    assert delivery.destinations.find(hook.id).name == "phone"


def test_webhook_rotation_signs_with_both_secrets_until_drop(delivery: DeliverySetup, site: Site) -> None:
    old = delivery.webhook(site)
    new = delivery.destinations.rotate(old.id)
    assert new.secret != old.secret and new.old_secret == old.secret
    delivery.notify("ana", "s-1", "p-1")
    delivery.steps()
    assert verified(site.requests[0], old.secret) == verified(site.requests[0], new.secret)
    delivery.store.destinations.drop_old_secret(old.id)
    delivery.notify("ana", "s-1", "p-2")
    delivery.steps()
    verified(site.requests[1], new.secret)
    with pytest.raises(WebhookVerificationError):
        verified(site.requests[1], old.secret)


def test_webhook_old_secret_expires_after_overlap(sqlite: str, site: Site) -> None:
    with open_delivery(sqlite, replace(RULES, secret_overlap=timedelta(hours=1))) as delivery:
        delivery.subscribe("ana", "s-1")
        old = delivery.webhook(site)
        new = delivery.destinations.rotate(old.id)
        delivery.clock.go(3_600)
        delivery.notify("ana", "s-1", "p-1")
        delivery.steps()
        verified(site.requests[0], new.secret)
        with pytest.raises(WebhookVerificationError):
            verified(site.requests[0], old.secret)


@pytest.mark.parametrize(
    "target",
    ["ftp://example.org/", "http://", "http://ana:secret@example.org/", "http://example.org/#x", "nonsense"],
)
def test_webhook_invalid_target_is_rejected(sqlite_delivery: DeliverySetup, target: str) -> None:
    with pytest.raises(InputError) as error:
        sqlite_delivery.destinations.add("ana", WEBHOOK, target)
    assert "secret" not in str(error.value)


def test_webhook_private_address_is_rejected(sqlite: str) -> None:
    with open_delivery(sqlite, DeliveryPolicy()) as delivery:
        for target in ("http://127.0.0.1/", "http://[::1]/", "http://169.254.169.254/x", "http://10.0.0.1/"):
            with pytest.raises(InputError, match="private network") as error:
                delivery.destinations.add("ana", WEBHOOK, target)
            assert "delivery.private_callbacks" in (error.value.hint or "")


def test_webhook_host_that_resolves_to_private_address_later_is_blocked(sqlite: str, site: Site) -> None:
    """DNS rebinding: the name is public when the destination is added, and this machine at delivery."""
    addresses = ["93.184.216.34"]
    network = EgressPolicy(resolve=lambda host, port: addresses)
    with open_delivery(sqlite, replace(RULES, inside=False), network) as delivery:
        delivery.subscribe("ana", "s-1")
        hook = delivery.destinations.add("ana", WEBHOOK, f"http://rebound.example:{site.port}/?key=secret")
        addresses[:] = ["127.0.0.1"]
        delivery.notify("ana", "s-1", "p-1")
        delivery.steps()
        assert site.requests == []
        health = delivery.store.destinations.health_of([hook.id])[hook.id]
        assert health.last_error == "the address is in a private network, which is not allowed here"
        assert delivery.destinations.mask_target(hook) == f"http://rebound.example:{site.port}/?..."


def test_webhook_subscription_of_other_subscriber_is_absent(
    sqlite_delivery: DeliverySetup, site: Site
) -> None:
    with pytest.raises(NotFound):
        sqlite_delivery.webhook(site, subscription="s-3")
    with pytest.raises(NotFound):
        sqlite_delivery.webhook(site, subscription="s-9")
    with pytest.raises(InputError, match="unknown type"):
        sqlite_delivery.destinations.add("ana", "pigeon", "http://example.org/")


def test_webhook_destinations_are_limited_per_subscriber(sqlite: str, site: Site) -> None:
    with open_delivery(sqlite, replace(RULES, per_subscriber=1)) as delivery:
        delivery.webhook(site)
        with pytest.raises(InputError, match="too many destinations"):
            delivery.webhook(site)
        delivery.webhook(site, "bo")


def test_webhook_test_sends_sample_and_returns_response(sqlite_delivery: DeliverySetup, site: Site) -> None:
    site.pages["/"] = answer_in_turn(OK, Response(418, b"a teapot"))  # type: ignore[assignment]
    hook = sqlite_delivery.webhook(site)
    result = sqlite_delivery.destinations.test(hook)
    assert (result.taken, result.status, result.problem) == (True, 204, None)
    sample = verified(site.requests[0], hook.secret)
    assert sample["type"] == "tidings.test" and sample["data"]["publication"]["body"]["title"] == "A sample"
    result = sqlite_delivery.destinations.test(hook)
    assert (result.taken, result.status, result.problem) == (False, 418, "status 418: a teapot")
    sqlite_delivery.destinations.change(hook.id, "http://127.0.0.1:1/")
    result = sqlite_delivery.destinations.test(sqlite_delivery.destinations.find(hook.id))
    assert not result.taken and result.status is None and "connection refused" in str(result.problem)


def test_webhook_notification_with_revoked_audience_is_skipped(delivery: DeliverySetup, site: Site) -> None:
    """The subscriber could see the publications when notified; the grant is revoked before delivery."""
    delivery.store.audiences.grant("ana", "press")
    hook = delivery.webhook(site)
    delivery.notify("ana", "s-1", "p-1")
    delivery.notify("ana", "s-1", "p-2", audience="press")
    delivery.notify("ana", "s-1", "p-3")
    delivery.notify("ana", "s-1", "p-4", audience="press")
    delivery.store.audiences.revoke("ana", "press")
    delivery.steps()
    assert subjects(site.requests) == ["p-1", "p-3"]
    assert delivery.store.destinations.health_of([hook.id])[hook.id].delivered == 2
    delivery.store.audiences.grant("ana", "press")
    delivery.notify("ana", "s-1", "p-5", audience="press")
    delivery.steps()
    assert subjects(site.requests) == ["p-1", "p-3", "p-5"]


def test_webhook_removed_destination_sends_nothing(delivery: DeliverySetup, site: Site) -> None:
    hook = delivery.webhook(site)
    delivery.notify("ana", "s-1", "p-1")
    assert delivery.store.destinations.remove(hook.id) and not delivery.store.destinations.remove(hook.id)
    delivery.steps()
    assert site.requests == [] and delivery.store.destinations.health("ana") == {}
    with pytest.raises(NotFound):
        delivery.destinations.find(hook.id)

"""Permissions of console pages: scopes of tokens, and data of other subscribers."""

from __future__ import annotations

import re

from tests.console.place import PAGES, Place
from tests.support.processes.console_visitor import Visitor
from tidings.model import Reason
from tidings.service.authorization import Access, Scope
from tidings.store.encoding import MatchRow


def test_console_pages_require_scopes(place: Place) -> None:
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


def test_console_hides_data_of_other_subscribers(place: Place) -> None:
    assert "price 180 &lt; 200" in place.ana.get("/console/notifications").text
    for path in ("notifications", "notifications/1", "notifications/1/inside", "notifications/new"):
        for fields in ({}, {"subscriber": "ana"}):
            answer = place.bo.get(f"/console/{path}", after="0", **fields)
            assert "price" not in answer.text, path
            assert answer.status_code == (403 if fields else 404 if "/1" in path else 200)
    for act in ("", "/edit"):
        answer = place.bo.get(f"/console/subscriptions/{place.table}{act}")
        assert (answer.status_code, "dining room" in answer.text) == (404, False)
    for act in ("", "/pause", "/resume", "/delete"):
        assert (
            place.bo.post(f"/console/subscriptions/{place.table}{act}", text="price = 1").status_code == 404
        )
    assert "dining room" not in place.bo.get("/console/subscriptions").text
    assert place.bo.get("/console/subscriptions", subscriber="ana").status_code == 403
    fields = {"language": "predicates", "text": "price < 5", "subscriber": "ana"}
    assert place.bo.post("/console/subscriptions", **fields).status_code == 403
    assert place.root.get("/console/notifications", subscriber="a\x07").status_code == 422
    for act in ("test", "pause", "resume", "rotate", "replay", "delete"):
        assert place.bo.post(f"/console/destinations/{place.hook}/{act}").status_code == 404
    assert place.bo.get(f"/console/destinations/{place.hook}").status_code == 404
    assert place.hook not in place.bo.get("/console/destinations").text
    fields = {"kind": "webhook", "target": "http://127.0.0.1:9/x", "subscriber": "ana"}
    assert place.bo.post("/console/destinations", **fields).status_code == 403
    own = fields | {"subscriber": "bo", "subscription": place.table}
    assert place.bo.post("/console/destinations", **own).status_code == 422
    assert place.bo.post("/console/destinations/quiet-hours", subscriber="ana").status_code == 403
    before = place.tidings.store.acknowledgements.cursor("ana")
    refused = place.bo.post("/console/notifications/acknowledge", upto="1", subscriber="ana")
    assert refused.status_code == 403
    assert place.tidings.store.acknowledgements.cursor("ana") == before
    assert "You have no rules" in place.bo.get("/console/browse/rules").text
    assert "memory" in place.ana.get("/console/browse/rules").text


def test_console_withholds_notification_after_grant_is_revoked(place: Place) -> None:
    audiences, tidings = place.tidings.store.audiences, place.tidings
    audiences.grant("cy", "board")
    id = tidings.subscribe("cy", "price < 7").id
    secret_text = '{"event_type": "antiques", "price": 6, "quantity": 1, "period": "XIX"}'
    fields = {"text": secret_text, "audience": "board"}
    published = re.search(r"<code>(p-[0-9a-f]+)</code>", place.shop.post("/console/publish", **fields).text)
    assert published is not None
    matches = [MatchRow(published[1], id, "cy", (Reason("price < 7", 6, "/price"),))]
    tidings.store.notifications.commit_batch("a test", 77, matches)
    visitor = Visitor(place.address, Access(tidings.store).make("cy", [Scope.SUBSCRIBE], "cy").secret)
    check = {"language": "predicates", "text": "price < 7", "act": "check"}
    assert "XIX" in visitor.get("/console/notifications/1").text
    assert published[1] in visitor.post("/console/subscriptions", **check).text
    audiences.revoke("cy", "board")
    for page in ("notifications", "notifications/1", "notifications/1/inside"):
        shown = visitor.get(f"/console/{page}").text
        assert "withheld" in shown.lower() and "XIX" not in shown and "price 6" not in shown
    assert published[1] not in visitor.post("/console/subscriptions", **check).text


def test_rule_diagram_omits_rules_of_other_subscribers(place: Place) -> None:
    """Similar names are not suggested either."""
    theirs = "search CycleProvider c register c where c.information.memory > 4711"
    id = place.tidings.subscribe("bo", theirs, "rules", id="bos-ports").id
    assert "4711" in place.bo.get("/console/browse/rules", rule=id).text
    assert "4711" not in place.ana.get("/console/browse/rules", rule=id).text
    for parameters in ({"rule": "bos-port"}, {}):
        assert id not in place.ana.get("/console/browse/rules", **parameters).text
    assert place.ana.get("/console/browse/rules", rule=id).status_code == 404
    assert "4711" in place.root.get("/console/browse/rules", rule=id).text
    place.tidings.unsubscribe([id])

"""Audiences over HTTP, for administrators: who may see publications that carry a label.

GET     /v1/audiences      ?subscriber=
PUT     /v1/audiences      {"label": "board", "subscriber": "ana"}
DELETE  /v1/audiences      ?label=board&subscriber=ana
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from tidings.api.authentication import AdministerCaller
from tidings.api.v1.route_classes import VersionedRoute, problem_descriptions
from tidings.errors import Absent, pointing
from tidings.store.store import Store

Label = Annotated[str, Query(min_length=1, max_length=500, description="The label that publications carry.")]
Whom = Annotated[str, Query(min_length=1, max_length=500, description="The subscriber.")]
Whose = Annotated[str | None, Query(max_length=500, description="Only the grants of this subscriber.")]


class NewGrant(BaseModel):
    """A subscriber may see what carries a label."""

    model_config = ConfigDict(extra="forbid")
    label: str = Field(min_length=1, max_length=500)
    subscriber: str = Field(min_length=1, max_length=500)


class Grant(BaseModel):
    """A grant, and since when it holds."""

    label: str
    subscriber: str
    since: str


class Grants(BaseModel):
    """The grants of now, by subscriber and label."""

    grants: list[Grant]


def router_for(store: Store) -> APIRouter:
    """The endpoints."""
    router = APIRouter(prefix="/v1/audiences", tags=["audiences"], route_class=VersionedRoute)
    audiences = store.audiences

    @router.get("")
    def listed(caller: AdministerCaller, subscriber: Whose = None) -> Grants:
        """Who may see which labels."""
        wanted = None if subscriber is None or not subscriber.isprintable() else subscriber
        found = [] if wanted != subscriber else audiences.list(wanted and caller.acting_as(wanted))
        return Grants(grants=[Grant(**asdict(one)) for one in found])

    @router.put("")
    def granted(caller: AdministerCaller, given: NewGrant) -> Grant:
        """Let a subscriber see what carries a label; it is well if they may already."""
        with pointing("/subscriber"):
            subscriber = caller.acting_as(given.subscriber)
        audiences.grant(subscriber, given.label)
        [found] = [one for one in audiences.list(subscriber) if one.label == given.label]
        return Grant(**asdict(found))

    @router.delete("", status_code=204, responses=problem_descriptions(404))
    def revoked(caller: AdministerCaller, label: Label, subscriber: Whom) -> Response:
        """Take a label back from a subscriber: what they were told before is withheld from now on."""
        names = label.isprintable() and subscriber.isprintable()
        if not names or not audiences.revoke(caller.acting_as(subscriber), label):
            raise Absent("there is no such grant")
        return Response(status_code=204)

    return router

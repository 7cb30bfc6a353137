"""Audience grants, for administrators: which subscribers may see publications that carry a label.

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

Label = Annotated[str, Query(min_length=1, max_length=500, description="The label of publications.")]
Subscriber = Annotated[str, Query(min_length=1, max_length=500, description="The subscriber.")]
SubscriberFilter = Annotated[str | None, Query(max_length=500, description="Only grants of this subscriber.")]


class NewGrant(BaseModel):
    """Permission for a subscriber to see publications with a label."""

    model_config = ConfigDict(extra="forbid")
    label: str = Field(min_length=1, max_length=500)
    subscriber: str = Field(min_length=1, max_length=500)


class Grant(BaseModel):
    """A grant, and when it was made."""

    label: str
    subscriber: str
    since: str


class Grants(BaseModel):
    """Current grants, by subscriber and label."""

    grants: list[Grant]


def router_for(store: Store) -> APIRouter:
    router = APIRouter(prefix="/v1/audiences", tags=["audiences"], route_class=VersionedRoute)
    audiences = store.audiences

    @router.get("")
    def list_grants(caller: AdministerCaller, subscriber: SubscriberFilter = None) -> Grants:
        """List grants: which subscriber may see which labels."""
        if subscriber is not None and not subscriber.isprintable():
            return Grants(grants=[])
        grants = audiences.list(subscriber and caller.acting_as(subscriber))
        return Grants(grants=[Grant(**asdict(grant)) for grant in grants])

    @router.put("")
    def grant(caller: AdministerCaller, given: NewGrant) -> Grant:
        """Let a subscriber see publications with a label. Granting twice changes nothing."""
        with pointing("/subscriber"):
            subscriber = caller.acting_as(given.subscriber)
        audiences.grant(subscriber, given.label)
        [stored] = [grant for grant in audiences.list(subscriber) if grant.label == given.label]
        return Grant(**asdict(stored))

    @router.delete("", status_code=204, responses=problem_descriptions(404))
    def revoke(caller: AdministerCaller, label: Label, subscriber: Subscriber) -> Response:
        """Revoke a grant. Earlier notifications about such publications are withheld from now on."""
        names = label.isprintable() and subscriber.isprintable()
        if not names or not audiences.revoke(caller.acting_as(subscriber), label):
            raise Absent("there is no such grant")
        return Response(status_code=204)

    return router

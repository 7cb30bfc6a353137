"""Publications, subscriptions, checks and their description, with the limits of the application."""

from __future__ import annotations

from fastapi import FastAPI

from tidings.interfaces.http.joining import join
from tidings.interfaces.http.rates import Rates
from tidings.interfaces.http.v1 import checking, openapi, publications, subscriptions
from tidings.interfaces.http.v1.limits import Limits, limits
from tidings.interfaces.http.v1.uploads import Uploads
from tidings.service import Tidings


def add_to(app: FastAPI, tidings: Tidings, given: Limits | None = None) -> None:
    """Add the endpoints to an application; without limits, those of the environment hold."""
    found = given or limits()
    app.state.limits = found
    app.state.rates = Rates(found.rate, found.burst, found.tokens)
    app.state.uploads = Uploads(found.uploads)
    join(app, *(module.router_for(tidings, found) for module in (publications, subscriptions, checking)))
    join(app, openapi.router)

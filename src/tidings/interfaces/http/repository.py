"""A repository over HTTP, for whoever is near it.

    GET         /status             where it is, what it holds, and whether it is cut off
    GET, POST   /query, /sparql     queries

Answers come from the repository alone, also while its provider cannot be reached.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from typing import Any

from fastapi import APIRouter, Depends, FastAPI

from tidings.interfaces.http import queries
from tidings.interfaces.http.answers import Answering
from tidings.interfaces.http.joining import join
from tidings.interfaces.http.trust import TOKEN, Trust, only_for
from tidings.queries import Queries
from tidings.repository.news import Connected, CutOff, Followed, News, Refreshed
from tidings.repository.repository import Repository


@dataclass(slots=True)
class Following:
    """Whom the repository follows now, as far as its news have told."""

    link: str | None = None
    problem: str | None = None

    def hear(self, news: News) -> None:
        if isinstance(news, CutOff):
            self.link, self.problem = None, news.problem
        elif isinstance(news, Connected | Refreshed | Followed):
            self.link, self.problem = news.link, None


def app_for(repository: Repository, following: Following) -> FastAPI:
    """The application of a repository."""
    trust = Trust(os.environ.get(TOKEN))
    dependencies = [Depends(only_for(trust, "a repository"))]
    router = APIRouter(route_class=Answering, dependencies=dependencies)

    @router.get("/status")
    def status() -> dict[str, Any]:
        return {**asdict(repository.status()), "following": following.link, "problem": following.problem}

    app = FastAPI(title="Tidings repository", docs_url=None, redoc_url=None)
    join(app, router, queries.router_for(Queries.at_repository(repository.store), trust))
    return app

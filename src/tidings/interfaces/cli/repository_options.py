"""Where a repository is: what its commands have in common."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidings.errors import SetupError

if TYPE_CHECKING:
    from tidings.repository.repository import Repository

DEFAULT_HOME = Path(".tidings-repository")
MAKES_ONE = "tidings repository --provider URL --rules FILE makes one"
Home = Annotated[
    Path,
    typer.Option(
        "--home", envvar="TIDINGS_REPOSITORY_HOME", help="The repository's own folder.", file_okay=False
    ),
]
Store = Annotated[
    str | None,
    typer.Option(
        "--store",
        envvar="TIDINGS_REPOSITORY_STORE",
        metavar="URL",
        help="Another store than the folder's: [cyan]sqlite:///path[/] or [cyan]postgresql://...[/]",
        show_default=False,
    ),
]


def make_repository(home: Path, store: str | None) -> Repository:
    from tidings.repository.repository import Repository

    return Repository(home, store)


def open_repository(home: Path, store: str | None) -> Repository:
    """One that is there: looking at a repository, or leaving a provider, makes none."""
    if store is None and not (home / "store.db").is_file():
        raise SetupError("there is no repository here", where=str(home), hint=MAKES_ONE)
    return make_repository(home, store)

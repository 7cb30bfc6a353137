"""Options that several commands share, and the home folder they all work in."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidings.cli import output
from tidings.core.arguments import LARGEST_INTEGER
from tidings.errors import Absent, InputError, SetupError

if TYPE_CHECKING:
    from tidings.metadata.provider.provider import Provider
    from tidings.metadata.repository.repository import Repository
    from tidings.operations.settings_sources import LoadedSettings
    from tidings.service.tidings import Tidings
    from tidings.store.store import Store


DEFAULT_HOME = Path(".tidings")


def check_storable(number: int | None) -> int | None:
    """Refuse a number that no store can count to. As the range of an option it would stand in each help."""
    if number is not None and number > LARGEST_INTEGER:
        raise typer.BadParameter(f"{number} is not in the range x<={LARGEST_INTEGER}.")
    return number


def _remember_json(context: typer.Context, asked: bool) -> bool:
    """Errors are drawn outside the command that raised them: they look here for how to speak."""
    context.meta["json"] = asked
    return asked


def _check_utf8(name: str | None) -> str | None:
    """What a shell hands over need not be UTF-8; a name has to be."""
    if name is not None and any("\ud800" <= character <= "\udfff" for character in name):
        raise typer.BadParameter("this is not UTF-8")
    return name


HomeOption = Annotated[
    Path,
    typer.Option(
        "--home",
        envvar="TIDINGS_HOME",
        help="The folder everything lives in: the store, the segments, the checkpoint.",
        file_okay=False,
    ),
]
StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        envvar="TIDINGS_STORE",
        metavar="URL",
        help="Another store than the home folder's: [cyan]sqlite:///path[/] or [cyan]postgresql://...[/]",
        show_default=False,
    ),
]
JsonOption = Annotated[
    bool,
    typer.Option("--json", help="JSON Lines on standard output, for machines.", callback=_remember_json),
]
SubscriberOption = Annotated[
    str, typer.Option("--as", metavar="NAME", help="The subscriber.", callback=_check_utf8)
]
OptionalSubscriberOption = Annotated[
    str | None,
    typer.Option(
        "--as",
        metavar="NAME",
        help="The subscriber; lines of a file may name theirs instead.",
        callback=_check_utf8,
        show_default=False,
    ),
]
PublicUrlOption = Annotated[
    str | None,
    typer.Option(
        "--public-url",
        envvar="TIDINGS_PUBLIC_URL",
        metavar="URL",
        help="How readers reach [cyan]tidings serve[/]; where it listens, when nothing is said.",
        show_default=False,
    ),
]
ContactOption = Annotated[
    str | None,
    typer.Option(
        "--contact",
        envvar="TIDINGS_CONTACT",
        metavar="TEXT",
        help="An address for those whose sites are asked; it stands in each request.",
        show_default=False,
    ),
]
MasterOption = Annotated[
    str | None,
    typer.Option(
        "--master",
        metavar="URL",
        help="Where Spark runs: [cyan]local[*][/] when nothing is said, [cyan]spark://host:7077[/], or "
        "[cyan]sc://host[/] for Spark Connect ([cyan]SPARK_REMOTE[/] says the same).",
        show_default=False,
    ),
]
ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        envvar="TIDINGS_CONFIG",
        metavar="FILE",
        help="The settings; [cyan]tidings.toml[/] in the home folder when nothing is said.",
        show_default=False,
        dir_okay=False,
    ),
]


def format_help(command: Callable[..., None]) -> str:
    """A command's help from its docstring: paragraphs flow with the terminal's width, examples stay as written."""
    paragraphs = inspect.cleandoc(command.__doc__ or "").split("\n\n")
    return "\n\n".join(each if each.startswith("[dim]") else each.replace("\n", " ") for each in paragraphs)


def check_master(master: str | None) -> None:
    """Reject an address that no Spark session can have, before any work starts."""
    from tidings.spark.session import check_address

    if master is not None:
        check_address(master)


def open_spark(master: str | None, log: Path | None = None) -> Any:
    """Open a Spark session at the address that the user chose."""
    from tidings.spark.session import open_session_at

    return open_session_at(master, log)


def close_spark(session: Any) -> None:
    """Close a session, even if its JVM has died."""
    from tidings.spark.session import close_session

    close_session(session)


def load_command_settings(
    context: typer.Context, config: Path | None, names: Mapping[str, str]
) -> LoadedSettings:
    """The settings of a command: what its options say outweighs the environment, and that the file.

    `names` are the settings of options that are called otherwise.
    """
    from tidings.operations.settings_sources import load_settings

    return load_settings(collect_typed_settings(context, names), config)


def collect_typed_settings(context: typer.Context, names: Mapping[str, str]) -> dict[str, Any]:
    """The settings that somebody has typed as options."""
    from tidings.operations.settings_errors import list_setting_names as known

    settings = {names.get(option, option): option for option in context.params}
    return {
        setting: context.params[option]
        for setting, option in settings.items()
        if setting in known() and _is_typed(context, option)
    }


def _is_typed(context: typer.Context, option: str) -> bool:
    """Whether somebody has typed an option: its variable of the environment is read with all the others."""
    source = context.get_parameter_source(option)
    return source is not None and source.name == "COMMANDLINE"


def resolve_home(home: Path, store: str | None) -> tuple[Path, str | None]:
    """The home folder and the store that settings in a file name, if nobody has said others: what the service works
    with is what commands work with.
    """
    named = os.environ.get("TIDINGS_CONFIG")
    if not (named or (home / "tidings.toml").is_file()):
        return home, store
    from tidings.operations.settings_sources import load_settings

    settings = load_settings({} if home == DEFAULT_HOME else {"home": home}).settings
    return settings.home, store or settings.store_url()


def open_tidings(home: Path, store: str | None) -> Tidings:
    from tidings.service.tidings import Tidings

    return Tidings(*resolve_home(home, store))


@contextmanager
def open_provider(home: Path, store: str | None) -> Iterator[Provider]:
    """The provider of a home."""
    from tidings.metadata.provider.provider import Provider

    with open_tidings(home, store) as tidings:
        yield Provider(tidings.store)


# Where a repository is: what its commands have in common.


REPOSITORY_HOME = Path(".tidings-repository")
REPOSITORY_HINT = "tidings repository --provider URL --rules FILE makes one"
RepositoryHomeOption = Annotated[
    Path,
    typer.Option(
        "--home", envvar="TIDINGS_REPOSITORY_HOME", help="The repository's own folder.", file_okay=False
    ),
]
RepositoryStoreOption = Annotated[
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
    from tidings.metadata.repository.repository import Repository

    return Repository(home, store)


def open_repository(home: Path, store: str | None) -> Repository:
    """One that is there: looking at a repository, or leaving a provider, makes none."""
    if store is None and not (home / "store.db").is_file():
        raise SetupError("there is no repository here", where=str(home), hint=REPOSITORY_HINT)
    return make_repository(home, store)


# Subscribers that are objects: commands accept every name of theirs, and say under which they are notified.


def resolve_subscriber(store: Store, subscriber: str, quiet: bool = False) -> str:
    """Return the name under which a subscriber is notified, for commands that keep it; say if it is another one."""
    from tidings.objects.watches import SubscriberNames

    name = SubscriberNames(store).resolve(subscriber)
    if name != subscriber and not quiet:
        output.print_note(f"{subscriber} is notified as {name}")
    return name


def find_subscriber(store: Store, subscriber: str, quiet: bool = False) -> str:
    """Return the same for commands that only read: what cannot be resolved is looked for as it is."""
    try:
        return resolve_subscriber(store, subscriber, quiet)
    except Absent:
        return subscriber
    except InputError as problem:
        output.print_note(problem.headline())
        return subscriber

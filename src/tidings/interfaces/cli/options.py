"""Options that several commands share, and the home folder they all work in."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidings.storable import LARGEST_INTEGER

if TYPE_CHECKING:
    from tidings.operating.loading import Loaded
    from tidings.provider import Provider
    from tidings.service import Tidings

DEFAULT_HOME = Path(".tidings")
NO_SETTINGS: Mapping[str, str] = MappingProxyType({})


def countable(number: int | None) -> int | None:
    """Refuse a number that no store can count to. As the range of an option it would stand in each help."""
    if number is not None and number > LARGEST_INTEGER:
        raise typer.BadParameter(f"{number} is not in the range x<={LARGEST_INTEGER}.")
    return number


def _remember_json(context: typer.Context, asked: bool) -> bool:
    """Errors are drawn outside the command that raised them: they look here for how to speak."""
    context.meta["json"] = asked
    return asked


def _readable(name: str | None) -> str | None:
    """What a shell hands over need not be UTF-8; a name has to be."""
    if name is not None and any("\ud800" <= character <= "\udfff" for character in name):
        raise typer.BadParameter("this is not UTF-8")
    return name


Home = Annotated[
    Path,
    typer.Option(
        "--home",
        envvar="TIDINGS_HOME",
        help="The folder everything lives in: the store, the segments, the checkpoint.",
        file_okay=False,
    ),
]
Store = Annotated[
    str | None,
    typer.Option(
        "--store",
        envvar="TIDINGS_STORE",
        metavar="URL",
        help="Another store than the home folder's: [cyan]sqlite:///path[/] or [cyan]postgresql://...[/]",
        show_default=False,
    ),
]
AsJson = Annotated[
    bool,
    typer.Option("--json", help="JSON Lines on standard output, for machines.", callback=_remember_json),
]
Subscriber = Annotated[str, typer.Option("--as", metavar="NAME", help="The subscriber.", callback=_readable)]
SubscriberIfAny = Annotated[
    str | None,
    typer.Option(
        "--as",
        metavar="NAME",
        help="The subscriber; lines of a file may name theirs instead.",
        callback=_readable,
        show_default=False,
    ),
]
PublicUrl = Annotated[
    str | None,
    typer.Option(
        "--public-url",
        envvar="TIDINGS_PUBLIC_URL",
        metavar="URL",
        help="How readers reach [cyan]tidings serve[/]; where it listens, when nothing is said.",
        show_default=False,
    ),
]
Contact = Annotated[
    str | None,
    typer.Option(
        "--contact",
        envvar="TIDINGS_CONTACT",
        metavar="TEXT",
        help="An address for those whose sites are asked; it stands in each request.",
        show_default=False,
    ),
]
Master = Annotated[
    str | None,
    typer.Option(
        "--master",
        metavar="URL",
        help="Where Spark runs: [cyan]local[*][/] when nothing is said, [cyan]spark://host:7077[/], or "
        "[cyan]sc://host[/] for Spark Connect ([cyan]SPARK_REMOTE[/] says the same).",
        show_default=False,
    ),
]
Config = Annotated[
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


def prose(command: Callable[..., None]) -> str:
    """A command's help from its docstring: paragraphs flow with the terminal's width, examples stay as written."""
    paragraphs = inspect.cleandoc(command.__doc__ or "").split("\n\n")
    return "\n\n".join(each if each.startswith("[dim]") else each.replace("\n", " ") for each in paragraphs)


def check_master(master: str | None) -> None:
    """Refuse an address that names no Spark, before anything else is begun."""
    from tidings.spark.session import check_address

    if master is not None:
        check_address(master)


def open_spark(master: str | None, log: Path | None = None, conf: Mapping[str, str] = NO_SETTINGS) -> Any:
    """Open a session where the user wants it (`sc://` is Spark Connect); the JVM's error output goes to `log`."""
    from tidings.spark.session import open_session

    if master and master.startswith("sc:"):
        return open_session(remote=master, log=log, **conf)
    return open_session(master, log=log, **conf)


def close_spark(session: Any) -> None:
    """End a session, also one whose JVM has died."""
    from tidings.spark.session import close_session

    close_session(session)


def given_settings(context: typer.Context, config: Path | None, names: Mapping[str, str]) -> Loaded:
    """The settings of a command: what its options say outweighs the environment, and that the file.

    `names` are the settings of options that are called otherwise.
    """
    from tidings.operating.loading import load

    return load(typed_settings(context, names), config)


def typed_settings(context: typer.Context, names: Mapping[str, str]) -> dict[str, Any]:
    """The settings that somebody has typed as options."""
    from tidings.operating.refusals import names as known

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


def configured(home: Path, store: str | None) -> tuple[Path, str | None]:
    """The home folder and the store that settings in a file name, if nobody has said others: what the service works
    with is what commands work with.
    """
    named = os.environ.get("TIDINGS_CONFIG")
    if not (named or (home / "tidings.toml").is_file()):
        return home, store
    from tidings.operating.loading import load

    settings = load({} if home == DEFAULT_HOME else {"home": home}).settings
    return settings.home, store or settings.store_url()


def open_tidings(home: Path, store: str | None) -> Tidings:
    from tidings.service import Tidings

    return Tidings(*configured(home, store))


@contextmanager
def open_provider(home: Path, store: str | None) -> Iterator[Provider]:
    """The provider of a home."""
    from tidings.provider import Provider

    with open_tidings(home, store) as tidings:
        yield Provider(tidings.store)

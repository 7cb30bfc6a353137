"""Options that several commands share, and bundles that open a home folder, a repository or Spark."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidings.cli.output import Output, print_note, show_spinner
from tidings.core.arguments import LARGEST_INTEGER
from tidings.errors import InputError, NotFound, SetupError

if TYPE_CHECKING:
    from tidings.metadata.provider.provider import Provider
    from tidings.metadata.repository.repository import Repository
    from tidings.operations.settings_sources import LoadedSettings
    from tidings.service.tidings import Tidings
    from tidings.store.store import Store


DEFAULT_HOME = Path(".tidings")


def check_storable(number: int | None) -> int | None:
    """Refuse a number that no store can hold; as `max` of an option it would appear in every help text."""
    if number is not None and number > LARGEST_INTEGER:
        raise typer.BadParameter(f"{number} is not in the range x<={LARGEST_INTEGER}.")
    return number


def _check_utf8(name: str | None) -> str | None:
    if name is not None and any("\ud800" <= character <= "\udfff" for character in name):
        raise typer.BadParameter("this is not UTF-8")
    return name


HomeOption = Annotated[
    Path,
    typer.Option(
        "--home",
        envvar="TIDINGS_HOME",
        help="The home folder: it holds the store, the index and the checkpoint.",
        file_okay=False,
    ),
]
STORE_HELP = (
    "The database, if it is not the SQLite file of the folder: `sqlite:///path` or `postgresql://...`"
)
StoreOption = Annotated[
    str | None, typer.Option("--store", envvar="TIDINGS_STORE", metavar="URL", help=STORE_HELP)
]
SubscriberOption = Annotated[
    str, typer.Option("--as", metavar="NAME", help="The subscriber.", callback=_check_utf8)
]
OptionalSubscriberOption = Annotated[
    str | None,
    typer.Option(
        "--as", metavar="NAME", help="The subscriber; lines of a file may name theirs.", callback=_check_utf8
    ),
]
SubscriberFilter = Annotated[
    str | None, typer.Option("--as", metavar="NAME", help="Only those of this subscriber.")
]
AfterOption = Annotated[
    int, typer.Option(min=0, callback=check_storable, metavar="N", help="Only those after number N.")
]
LimitOption = Annotated[
    int | None, typer.Option(min=1, callback=check_storable, metavar="N", help="At most N of them.")
]
FollowFlag = Annotated[bool, typer.Option("--follow", "-f", help="Wait for more until Ctrl-C.")]
DelayOption = Annotated[
    str | None,
    typer.Option(
        metavar="DELAY",
        help="Batch notifications for up to this delay: `10 minutes`, `1 hour`. Without it they are sent at once.",
    ),
]
PublicUrlOption = Annotated[
    str | None,
    typer.Option(
        "--public-url",
        envvar="TIDINGS_PUBLIC_URL",
        metavar="URL",
        help="The address at which others reach `tidings serve`; by default, the address it listens at.",
    ),
]
ContactOption = Annotated[
    str | None,
    typer.Option(
        "--contact",
        envvar="TIDINGS_CONTACT",
        metavar="TEXT",
        help="A contact address for operators of the polled sites; it is sent with each request.",
    ),
]
MasterOption = Annotated[
    str | None,
    typer.Option(
        "--master",
        metavar="URL",
        help="The Spark master: `local[*]` by default, `spark://host:7077`, or `sc://host` for Spark Connect "
        "(or set `SPARK_REMOTE`).",
    ),
]
ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        envvar="TIDINGS_CONFIG",
        metavar="FILE",
        help="The settings file; by default, `tidings.toml` in the home folder.",
        dir_okay=False,
    ),
]


@dataclass(frozen=True)
class Home:
    """The home folder that a command works in, and its store."""

    home: HomeOption = DEFAULT_HOME
    store: StoreOption = None

    def resolve(self) -> tuple[Path, str | None]:
        """Return the folder and store that a settings file names unless options do, as the service resolves them."""
        if not (os.environ.get("TIDINGS_CONFIG") or (self.home / "tidings.toml").is_file()):
            return self.home, self.store
        from tidings.operations.settings_sources import load_settings

        settings = load_settings({} if self.home == DEFAULT_HOME else {"home": self.home}).settings
        return settings.home, self.store or settings.store_url()

    def has_store(self) -> bool:
        """Return whether there is a store, without creating one."""
        return self.store is not None or (self.home / "store.db").is_file()

    def open(self) -> Tidings:
        """Open the service of the home folder."""
        from tidings.service.tidings import Tidings

        return Tidings(*self.resolve())

    @contextmanager
    def open_provider(self) -> Iterator[Provider]:
        """Open the metadata provider of the home folder."""
        from tidings.metadata.provider.provider import Provider

        with self.open() as tidings:
            yield Provider(tidings.store)


REPOSITORY_HOME = Path(".tidings-repository")
REPOSITORY_HINT = "tidings repository --provider URL --rules FILE creates one"


@dataclass(frozen=True)
class RepositoryHome:
    """The folder of a metadata repository, and its store."""

    home: Annotated[
        Path,
        typer.Option(
            "--home", envvar="TIDINGS_REPOSITORY_HOME", help="The folder of the repository.", file_okay=False
        ),
    ] = REPOSITORY_HOME
    store: Annotated[
        str | None,
        typer.Option("--store", envvar="TIDINGS_REPOSITORY_STORE", metavar="URL", help=STORE_HELP),
    ] = None

    def create(self) -> Repository:
        """Open the repository; create it if there is none."""
        from tidings.metadata.repository.repository import Repository

        return Repository(self.home, self.store)

    def open(self) -> Repository:
        """Open a repository that exists."""
        if self.store is None and not (self.home / "store.db").is_file():
            raise SetupError("there is no repository here", where=str(self.home), hint=REPOSITORY_HINT)
        return self.create()


# Subscribers may be objects with several names: commands accept each, and print the one that is notified.


def resolve_subscriber(store: Store, subscriber: str, out: Output) -> str:
    """Return the name under which a subscriber is notified; print it if it is another one."""
    from tidings.objects.watches import SubscriberNames

    name = SubscriberNames(store).resolve(subscriber)
    if name != subscriber:
        out.print_note(f"{subscriber} is notified as {name}")
    return name


def find_subscriber(store: Store, subscriber: str, out: Output) -> str:
    """Return the same for commands that only read: a name that cannot be resolved is used as it is."""
    try:
        return resolve_subscriber(store, subscriber, out)
    except NotFound:
        return subscriber
    except InputError as problem:
        print_note(problem.headline())
        return subscriber


# Settings that are options.


def load_command_settings(
    context: typer.Context, config: Path | None, names: Mapping[str, str]
) -> LoadedSettings:
    """Load the settings of a command: options outweigh the environment, which outweighs the settings file.

    `names` maps options to the settings that have other names.
    """
    from tidings.operations.settings_sources import load_settings

    return load_settings(collect_typed_settings(context, names), config)


def collect_typed_settings(context: typer.Context, names: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings that were typed as options; variables of the environment are read with the settings."""
    from tidings.operations.settings_sources import list_setting_names

    setting_names = list_setting_names()
    typed = {names.get(option, option): value for option, value in find_typed_options(context).items()}
    return {setting: value for setting, value in typed.items() if setting in setting_names}


def find_typed_options(context: typer.Context) -> dict[str, Any]:
    """Return the options that were typed, without those from defaults and variables."""
    sources = {option: context.get_parameter_source(option) for option in context.params}
    typed = [
        option for option, source in sources.items() if source is not None and source.name == "COMMANDLINE"
    ]
    return {option: context.params[option] for option in typed}


# Spark.


def check_master(master: str | None) -> None:
    """Refuse an address that is not a Spark master, before any work starts."""
    from tidings.spark.session import check_address

    if master is not None:
        check_address(master)


@dataclass(frozen=True)
class SparkOptions:
    """Spark master of a command, with settings and connectors."""

    master: MasterOption = None
    conf: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE", help="A setting of Spark, such as `spark.executor.memory=4g`; repeatable."
        ),
    ] = None
    packages: Annotated[
        str | None,
        typer.Option(
            metavar="COORDINATES", help="Maven coordinates of Spark connectors, separated by commas."
        ),
    ] = None
    jars: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", file_okay=False, exists=True, help="A folder with jars of Spark connectors."
        ),
    ] = None

    def check(self) -> None:
        """Refuse an address that is not a Spark master, and unsupported settings, before any work starts."""
        check_master(self.master)
        self.build_settings()

    def build_settings(self) -> dict[str, str]:
        """Return the Spark settings that the options make."""
        jars = ",".join(str(path.absolute()) for path in sorted(self.jars.glob("*.jar"))) if self.jars else ""
        connectors = {"spark.jars.packages": self.packages or "", "spark.jars": jars}
        settings = _parse_conf(self.conf) | {name: value for name, value in connectors.items() if value}
        fixed = [name for name in settings if name.startswith("spark.jars")]
        if fixed and (self.master or os.environ.get("SPARK_REMOTE", "")).startswith("sc:"):
            raise InputError(
                "a Spark Connect server has its own connectors",
                received=", ".join(fixed),
                hint="start the server with them: start-connect-server.sh --packages ...",
            )
        return settings

    def open(self, spinner: str = "", log: Path | None = None) -> AbstractContextManager[Any]:
        """Open a Spark session for a block."""
        return open_spark(self.master, spinner, log, self.build_settings())


def _parse_conf(pairs: Sequence[str] | None) -> dict[str, str]:
    settings = parse_pairs("--conf", pairs)
    for name in settings:
        if not name.startswith("spark."):
            raise InputError(
                "this is no setting of Spark",
                where="--conf",
                received=name,
                accepted="a name that begins with spark.",
                hint=f"--conf spark.{name}={settings[name]}",
            )
    return settings


def parse_pairs(option: str, texts: Sequence[str] | None) -> dict[str, str]:
    """Parse the values of a repeatable option of the form KEY=VALUE."""
    pairs = [text.partition("=") for text in texts or ()]
    for key, separator, value in pairs:
        if not (key and separator):
            raise InputError(f"{option} needs a key and a value", received=key + value, accepted="KEY=VALUE")
    return {key: value for key, _, value in pairs}


@contextmanager
def open_spark(
    master: str | None, spinner: str = "", log: Path | None = None, conf: Mapping[str, str] | None = None
) -> Iterator[Any]:
    """Open a Spark session for a block, with a spinner while it starts; close it even if its JVM has died."""
    from tidings.spark.session import close_session, open_session_at

    with show_spinner(spinner) if spinner else nullcontext():
        session = open_session_at(master, log, conf)
    try:
        yield session
    finally:
        close_session(session)

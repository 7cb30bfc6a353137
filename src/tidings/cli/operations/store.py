"""`store version`, `store migrate`, `store backup` and `store restore`: the store as whoever operates it sees it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from tidings.cli import output
from tidings.cli.options import (
    DEFAULT_HOME,
    HomeOption,
    JsonOption,
    StoreOption,
    format_help,
    open_tidings,
    resolve_home,
)
from tidings.core.text import plural

app = typer.Typer(no_args_is_help=True, help="The store: its version, migrations, backup and restore.")

File = Annotated[Path, typer.Argument(metavar="FILE", help="A backup, a tar file.", show_default=False)]


def version(home: HomeOption = DEFAULT_HOME, store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Show of which version the store is, and which one this Tidings works with. Nothing is changed.

    [dim]Example[/]
      tidings store version
    """
    from tidings.service.backup import read_store_version

    found = read_store_version(*resolve_home(home, store))
    if as_json:
        output.print_json(asdict(found))
        return
    state = "current" if found.store == found.works_with else "tidings store migrate brings it there"
    output.print_line((found.name, "bold cyan"), f"version {found.store} of {found.works_with}", state)


def migrate(home: HomeOption = DEFAULT_HOME, store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Bring the store to the version that this Tidings works with. The service does so when it starts, unless
    [cyan]migrate = false[/] says that this is done here.

    [dim]Example[/]
      tidings store migrate --store postgresql://tidings@db/tidings
    """
    from tidings.service.backup import read_store_version

    before = read_store_version(*resolve_home(home, store))
    with open_tidings(home, store) as tidings:
        tidings.store.check()
    after = read_store_version(*resolve_home(home, store))
    if as_json:
        output.print_json({"name": after.name, "before": before.store, "after": after.store})
    else:
        output.print_line((after.name, "bold cyan"), f"version {after.store}, was {before.store}")


def backup(
    file: File, home: HomeOption = DEFAULT_HOME, store: StoreOption = None, as_json: JsonOption = False
) -> None:
    """Write a backup of the home folder: the store as of one moment, the key of the feeds' addresses, the settings.
    Everything may go on running meanwhile.

    The index is not in it: the stream makes it anew. Whoever has the backup has everything that is in it; its owner
    alone may read the file. PostgreSQL is backed up with [cyan]pg_dump[/], as the docs say.

    [dim]Example[/]
      tidings store backup /backups/tidings-2026-11-17.tar
    """
    from tidings.service.backup import create_backup as write

    made = write(*resolve_home(home, store), file)
    if as_json:
        output.print_json({"file": str(file), **asdict(made)})
        return
    known = f"{plural(made.publications, 'publication')}, matched up to {made.matched:,}"
    output.print_line((str(file), "bold cyan"), f"version {made.version}", known)


def restore(file: File, home: HomeOption = DEFAULT_HOME, as_json: JsonOption = False) -> None:
    """Make a home folder of a backup. There must be none yet: nothing is overwritten.

    A stream that is started there goes on where the backup was made: what was matched then is not matched again.

    [dim]Example[/]
      tidings store restore /backups/tidings-2026-11-17.tar --home restored
    """
    from tidings.service.backup import restore_backup as read

    made = read(file, home)
    if as_json:
        output.print_json({"home": str(home), **asdict(made)})
        return
    known = f"{plural(made.publications, 'publication')}, matched up to {made.matched:,}"
    output.print_line((str(home), "bold cyan"), f"as of {made.taken}", known)


for command in (version, migrate, backup, restore):
    app.command(help=format_help(command))(command)

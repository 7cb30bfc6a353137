"""Import every module of the package and render the help of every command, with the installed versions.

`scripts/lowest` runs this with the lowest versions that pyproject.toml allows.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys

import typer.main
from typer.testing import CliRunner

import tidings
from tidings.cli.main import app


def main() -> None:
    found = (each.name for each in pkgutil.walk_packages(tidings.__path__, "tidings."))
    names = [name for name in found if not name.endswith("__main__")]  # importing that one runs it
    for name in names:
        importlib.import_module(name)
    commands = list(paths(typer.main.get_command(app)))
    for path in commands:
        result = CliRunner().invoke(app, [*path, "--help"])
        if result.exit_code:
            raise SystemExit(f"tidings {' '.join(path)} --help: {result.exception!r}")
    sys.stdout.write(f"{len(names)} modules, {len(commands)} commands\n")


def paths(command: object, above: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Return the paths of a command and of all its subcommands."""
    below = getattr(command, "commands", {})
    return [above, *(path for name, each in below.items() for path in paths(each, (*above, name)))]


if __name__ == "__main__":
    main()

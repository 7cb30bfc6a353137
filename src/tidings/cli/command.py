"""Conversion of functions to commands: option bundles, help from its docstring, and the signals that end it.

    def list_tokens(at: Home, out: Output) -> None: ...      # tidings token list --home ... --store ... --json

A parameter whose type is a dataclass is a bundle: each field of it is an option, after the command's own.
"""

from __future__ import annotations

import inspect
import re
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from inspect import Parameter
from itertools import takewhile
from types import FrameType
from typing import Any, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

INTERRUPTED = 130
"""The exit code after Ctrl-C."""

RENAMED_COMMANDS = {"tell": "notify", "letters": "dead-letters", "forget": "remove-rule"}
RENAMED_OPTIONS = {
    "--tell": "--notify",
    "--tell-author": "--notify-author",
    "--most-steps": "--max-steps",
    "--most-told": "--max-subscribers",
    "--log": "--metadata-log",
    "--lasting": "--expires-in",
}
"""Earlier names of commands and options. They are not accepted: the error suggests the new name."""


class Group(TyperGroup):
    """A group of commands. For an earlier name of a command it suggests the new one."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        new = RENAMED_COMMANDS.get(args[0])
        if new in self.commands and args[0] not in self.commands:
            ctx.fail(f"No such command {args[0]!r}. Did you mean {new!r}?")
        return super().resolve_command(ctx, args)


class Command(TyperCommand):
    """A command. For an earlier name of an option it suggests the new one."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        options = {option for parameter in self.params for option in parameter.opts}
        for name in (word.partition("=")[0] for word in takewhile(lambda word: word != "--", args)):
            new = RENAMED_OPTIONS.get(name)
            if new in options and name not in options:
                ctx.fail(f"No such option: {name} (Possible options: {new})")
        return super().parse_args(ctx, args)


def make_group(help: str, commands: Mapping[str, Callable[..., None]]) -> typer.Typer:
    """Make the group of commands with these names, in this order."""
    app = typer.Typer(cls=Group, no_args_is_help=True, help=format_help(help))
    add_commands(app, commands)
    return app


def add_commands(
    app: typer.Typer, commands: Mapping[str, Callable[..., None]], panel: str | None = None
) -> None:
    """Add commands under their names; `panel` is the part of the overview that lists them."""
    for name, function in commands.items():
        decorate = app.command(name, cls=Command, help=format_help(function.__doc__), rich_help_panel=panel)
        decorate(expand_bundles(function))


def expand_bundles(function: Callable[..., None]) -> Callable[..., None]:
    """Return the function as typer reads it: every bundle replaced by the options that are its fields."""
    hints = get_type_hints(function, include_extras=True)
    bundles: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    own = inspect.signature(function).parameters.values()
    options = [(each.name, hints[each.name], each.default) for each in own if each.name not in bundles]
    options += [option for bundle in bundles.values() for option in _list_options(bundle)]

    @wraps(function)
    def command(**values: Any) -> None:
        for name, bundle in bundles.items():
            values[name] = bundle(**{each.name: values.pop(each.name) for each in fields(bundle)})
        function(**values)

    parameters = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=_format_option_help(hint))
        for name, hint, default in options
    ]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {name: hint for name, hint, _ in options}
    return command


def _list_options(bundle: Any) -> Iterator[tuple[str, Any, Any]]:
    hints = get_type_hints(bundle, include_extras=True)
    for field in fields(bundle):
        yield field.name, hints[field.name], Parameter.empty if field.default is MISSING else field.default


def _format_option_help(hint: Any) -> Any:
    for option in getattr(hint, "__metadata__", ()):
        option.help = option.help and _colour_code(option.help)
    return hint


def format_help(text: str | None) -> str:
    """Make help of a docstring: the summary, the examples as written, then paragraphs that flow with the terminal."""
    paragraphs = inspect.cleandoc(text or "").split("\n\n")
    examples = [paragraph for paragraph in paragraphs if paragraph.startswith(("Example", "[dim]Example"))]
    summary, *others = [
        _colour_code(paragraph.replace("\n", " ")) for paragraph in paragraphs if paragraph not in examples
    ]
    shown = [re.sub(r"^Examples?:", lambda title: f"[dim]{title[0]}[/]", paragraph) for paragraph in examples]
    return "\n\n".join([summary, *shown, *others])


def _colour_code(text: str) -> str:
    return re.sub(r"`([^`]+)`", r"[cyan]\1[/]", text)


CHECK_SECONDS = 1.0
"""Interval at which a wait for a signal checks whether one has arrived."""


class StopSignal(threading.Event):
    """An event that SIGINT and SIGTERM set; `by` is the signal that came first.

    Python runs signal handlers in the main thread, between any two of its steps. If that thread is inside `wait`, it
    may hold the lock that `set` needs: so another thread sets the event.
    """

    by: int | None = None

    def __init__(self, interrupts: bool) -> None:
        super().__init__()
        self._interrupts = interrupts

    def __call__(self, number: int, _: FrameType | None) -> None:
        self.by = self.by or number
        threading.Thread(target=self.set, name="stop", daemon=True).start()
        if self._interrupts:
            raise KeyboardInterrupt

    def is_set(self) -> bool:
        return self.by is not None or super().is_set()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait. Without a timeout, check regularly: a signal just before the wait would not interrupt it."""
        if timeout is not None:
            return super().wait(timeout)
        while not super().wait(CHECK_SECONDS):
            pass
        return True

    def exit_if_interrupted(self) -> None:
        """End the command with the exit code of Ctrl-C if a signal stopped it."""
        if self.by == signal.SIGINT:
            raise typer.Exit(INTERRUPTED)


@contextmanager
def stop_on_signals(*, interrupts: bool = False) -> Iterator[StopSignal]:
    """Have SIGINT and SIGTERM ask a loop to end after its current step.

    An exception would cut a call to Spark or a transaction in half. A loop that works in threads only may have it:
    with `interrupts`, a signal raises KeyboardInterrupt in the main thread, too.
    """
    stop = StopSignal(interrupts)
    handlers = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)

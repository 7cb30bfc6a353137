"""The docs are correct: examples run and print what they show, links resolve, and everything public is documented.

Fenced blocks marked `console` are run, and those marked `python` if they have prompts. In a console, lines with `$ `
are commands, and the lines below are their output; ids may differ, but the same id must be the same everywhere on the
page, and `...` stands for anything. The commands of a page run in order, in one empty folder with `examples/` beside
it. Those that start Spark share a process; `make long` runs those of the README as processes, as users do.
"""

from __future__ import annotations

import ast
import doctest
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.main import get_command
from typer.testing import CliRunner

from tests.support.paths import ROOT
from tests.support.processes.terminal import Terminal
from tidings.cli.main import app
from tidings.events.operators import OPERATORS, Operator

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")])
MODULES = sorted((ROOT / "src").rglob("*.py"))
FENCED = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
MADE_ID = re.compile(r"\b([spnd])-[0-9a-f]{8,20}\b")
ON_SPARK = re.compile(r"tidings (run|match|demo|doctor|model changes)\b")
SHELL = re.compile(r"[|<>&;]+")


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@dataclass
class Example:
    """A command of a page and its output on the page."""

    line: int
    command: str
    printed: list[str] = field(default_factory=list)


def examples(page: Path) -> Iterator[Example]:
    text = page.read_text()
    for block in FENCED.finditer(text):
        if block[1] != "console":
            continue
        first = text.count("\n", 0, block.start(2)) + 1
        block_examples: list[Example] = []
        for number, row in enumerate(block[2].splitlines(), first):
            if row.startswith("$ "):
                block_examples.append(Example(number, row[2:].split("   #")[0].rstrip()))
            elif row.strip():
                block_examples[-1].printed.append(row.rstrip())
        yield from block_examples


class Page:
    """Runs the commands of a page, and maps the ids on the page to real ones."""

    def __init__(self, folder: Path, terminal: Terminal | None) -> None:
        self.folder = folder
        self.terminal = terminal
        self.real: dict[str, str] = {}

    def run(self, example: Example) -> None:
        command = MADE_ID.sub(lambda id: self.real.get(id[0], id[0]), example.command)
        printed = "".join(f"{row.rstrip()}\n" for row in self._output(command).splitlines() if row.strip())
        expected = "".join(f"{row}\n" for row in example.printed)
        new: dict[str, str] = {}
        match = re.fullmatch(self._pattern(expected, new), printed)
        assert match, (
            f"line {example.line}: $ {example.command}\nprints\n{printed}\nbut the page says\n{expected}"
        )
        self.real |= {id: match[group] for id, group in new.items()}

    def _output(self, command: str) -> str:
        words = split(command)
        if words[0] != "tidings" or any(map(SHELL.fullmatch, words)):
            return self._process(command)
        if not ON_SPARK.match(command):
            return CliRunner().invoke(app, words[1:], catch_exceptions=False).output
        return self.terminal.call(self.folder, *words[1:]).output if self.terminal else self._process(command)

    def _process(self, command: str) -> str:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = os.environ | {"PATH": path, "COLUMNS": "200"}
        process = subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return process.stdout

    def _pattern(self, expected: str, new: dict[str, str]) -> str:
        parts = re.split(r"(^\.\.\.\n|\.\.\.|\b[spnd]-[0-9a-f]{8,20}\b)", expected, flags=re.MULTILINE)
        return "".join(self._part(part, new) for part in parts)

    def _part(self, part: str, new: dict[str, str]) -> str:
        """Return a piece of the page as a pattern; a new id matches any id, and is recorded in `new`."""
        if part.startswith("..."):
            return "(?:.*\n)*" if part.endswith("\n") else ".*"
        if not MADE_ID.fullmatch(part):
            return re.escape(part)
        if part in self.real:
            return re.escape(self.real[part])
        if part in new:
            return f"(?P={new[part]})"
        new[part] = f"id{len(new)}"
        return f"(?P<{new[part]}>{part[0]}-[0-9a-f]{{8,20}})"


def split(command: str) -> list[str]:
    """Split a command like a shell; an unquoted operator of the shell is a word of its own."""
    words = shlex.shlex(command, posix=True, punctuation_chars="|<>&;")
    words.whitespace_split = True
    words.commenters = ""  # within a word, # is an ordinary character
    return list(words)


def prompts(page: Path) -> str:
    """Return the Python blocks of a page that have prompts, as one session."""
    return "\n".join(block[2] for block in FENCED.finditer(page.read_text()) if ">>> " in block[2])


README = ROOT / "README.md"
RUNNABLE = [page for page in PAGES if any(True for _ in examples(page))]


@pytest.mark.xdist_group("terminal")
@pytest.mark.parametrize("page", RUNNABLE, ids=name)
def test_docs_console_examples_print_shown_output(
    page: Path, terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_all(page, Page(tmp_path, terminal), monkeypatch)


@pytest.mark.long
def test_docs_readme_console_examples_run_as_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_all(README, Page(tmp_path, None), monkeypatch)


def run_all(page: Path, here: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / "examples", here.folder / "examples")
    monkeypatch.chdir(here.folder)
    for example in examples(page):
        here.run(example)


PROMPTED = [page for page in PAGES if prompts(page)]
PAGES_ON_SPARK = [page for page in PROMPTED if "spark." in prompts(page)]


@pytest.mark.parametrize("page", [page for page in PROMPTED if page not in PAGES_ON_SPARK], ids=name)
def test_docs_python_examples_print_shown_output(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_prompts(page, tmp_path, monkeypatch)


@pytest.mark.parametrize("page", PAGES_ON_SPARK, ids=name)
def test_docs_python_examples_on_spark_print_shown_output(
    page: Path, session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_prompts(page, tmp_path, monkeypatch, spark=session)


def run_prompts(page: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, **names: object) -> None:
    shutil.copytree(ROOT / "examples", folder / "examples")
    monkeypatch.chdir(folder)
    session = doctest.DocTestParser().get_doctest(prompts(page), names, name(page), str(page), 0)
    report: list[str] = []
    outcome = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(session, out=report.append)
    assert outcome.failed == 0, "".join(report)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_docs_links_resolve(page: Path) -> None:
    text = FENCED.sub("", page.read_text())
    for target in LINK.findall(text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), f"{name(page)} links to {target}, which does not exist"
        if anchor:
            assert anchor in anchors(linked), f"{name(page)} links to {target}, which has no such heading"


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", FENCED.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", sorted(ROOT.glob("docs/**/*.md")), ids=name)
def test_docs_every_page_is_linked(page: Path) -> None:
    others = [other for other in PAGES if other != page]
    reached = {
        (other.parent / link.partition("#")[0]).resolve()
        for other in others
        for link in LINK.findall(other.read_text())
    }
    assert page in reached, f"no page links to {name(page)}"


@pytest.mark.parametrize("module", MODULES, ids=name)
def test_every_module_has_docstring(module: Path) -> None:
    docstring = ast.get_docstring(ast.parse(module.read_text()))
    assert docstring or not module.read_text().strip(), f"{name(module)} has no docstring"


@pytest.mark.parametrize("schema", ["furniture.yaml", "curiosities.yaml"])
def test_demo_schemas_equal_example_files(schema: str) -> None:
    """They are copies, because symbolic links would dangle in a copy of the folder."""
    packaged = ROOT / "src/tidings/service" / schema
    assert not (ROOT / "examples" / schema).is_symlink()
    assert (ROOT / "examples" / schema).read_bytes() == packaged.read_bytes()


def commands() -> Iterator[str]:
    for command_name, command in get_command(app).commands.items():  # type: ignore[attr-defined]
        yield from (f"{command_name} {inner}" for inner in getattr(command, "commands", {}))
        yield command_name


@pytest.mark.parametrize("command", commands())
def test_docs_describe_every_command(command: str) -> None:
    assert f"tidings {command}" in (ROOT / "docs/cli.md").read_text()


def options() -> Iterator[tuple[str, str]]:
    for command_name, command in get_command(app).commands.items():  # type: ignore[attr-defined]
        for inner in [command, *getattr(command, "commands", {}).values()]:
            yield from (
                (command_name, option)
                for param in inner.params
                for option in param.opts
                if option[:2] == "--"
            )


@pytest.mark.parametrize("option", sorted({option for _, option in options()} - {"--help"}))
def test_docs_describe_every_option(option: str) -> None:
    assert f"`{option}" in (ROOT / "docs/cli.md").read_text()


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.spelling)
def test_docs_describe_every_operator(operator: Operator) -> None:
    """Each has one row on the page of the language, with the sentence of its declaration."""
    page = (ROOT / "docs/predicates.md").read_text()
    assert f"| `{operator.spelling}` | {operator.meaning} |" in page

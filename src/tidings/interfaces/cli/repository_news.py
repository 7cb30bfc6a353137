"""What a repository says while it runs: a line for each piece of news, or JSON Lines for machines."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Self

from rich.status import Status

from tidings.counts import plural
from tidings.interfaces.cli import output

if TYPE_CHECKING:
    from tidings.repository.news import News
    from tidings.store.repository_changes import Applied


class Teller:
    """Tells news. The same problem is said once, however long it lasts; on terminals something turns all the while."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        console = output.console(stderr=True)
        self._status = Status("", console=console) if console.is_terminal and not as_json else None
        self._problem: str | None = None

    def __enter__(self) -> Self:
        if self._status is not None:
            self._status.start()
        return self

    def __exit__(self, *failure: object) -> None:
        if self._status is not None:
            self._status.stop()

    def begins(self, name: str, rules: int) -> None:
        if self._as_json:
            output.json_line({"news": "begins", "name": name, "rules": rules})
        else:
            output.line(("repository", "bold"), (name, "cyan"), plural(rules, "rule"))

    def answers(self, address: str) -> None:
        if self._as_json:
            output.json_line({"news": "answers", "address": address})
        else:
            output.line(("answers", "bold"), f"at {address}")

    def __call__(self, news: News) -> None:
        kind = type(news).__name__.lower()
        if self._as_json:
            output.json_line({"news": kind, **asdict(news)})
        else:
            getattr(self, f"_{kind}")(news)

    def _connected(self, news: Any) -> None:
        self._problem = None
        how = "moved there, " if news.moved else ""
        output.line(("connected", "bold green"), news.link, f"{how}position {news.position}")
        self._turn(f"following {news.link}")

    def _refreshed(self, news: Any) -> None:
        self._problem = None
        output.line(("refreshed", "bold green"), news.link, *_facts(news), (f"because {news.because}", "dim"))
        self._turn(f"following {news.link}")

    def _followed(self, news: Any) -> None:
        self._problem = None
        output.line(("followed", "bold green"), plural(news.moves, "move"), *_facts(news))

    def _cutoff(self, news: Any) -> None:
        again = f"trying again in {news.retry:.1f} s" if news.retry else "trying the next"
        self._turn(f"cut off, {again}; {plural(news.resources, 'resource')} held")
        if news.problem != self._problem:
            held = f"{plural(news.resources, 'resource')} held all the same"
            output.line(("cut off", "bold yellow"), news.problem, again, held, stderr=True)
        self._problem = news.problem

    def _turn(self, words: str) -> None:
        if self._status is not None:
            self._status.update(words)


def _facts(news: Any) -> list[str]:
    return [f"position {news.position}", _applied(news.applied), f"{plural(news.resources, 'resource')} held"]


def _applied(done: Applied) -> str:
    counts = {"new": done.new, "changed": done.changed, "gone": done.gone}
    return ", ".join(f"{count} {what}" for what, count in counts.items() if count) or "nothing different"

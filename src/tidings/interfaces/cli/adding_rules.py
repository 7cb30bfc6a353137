"""Rules on their way into a provider: evaluated by the store, or on Spark where that would take it long."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidings.counts import plural
from tidings.interfaces.cli import output
from tidings.interfaces.cli.options import check_master, close_spark, open_spark, open_tidings
from tidings.interfaces.cli.subscriber_names import resolved

if TYPE_CHECKING:
    from tidings.provider.reading import Known
    from tidings.service import Tidings
    from tidings.store.evaluated import Evaluated
    from tidings.store.rule_base import NamedRule
    from tidings.store.rule_filter import Pair

OnSpark = Annotated[
    bool | None,
    typer.Option(
        "--spark/--no-spark",
        help="Look through what is stored on Spark, or not; when nothing is said, if there is much to compare.",
        show_default=False,
    ),
]


def add(
    texts: Mapping[str, str],
    owner: str,
    *,
    within: int | None,
    spark: bool | None,
    master: str | None,
    home: Path,
    store: str | None,
) -> frozenset[Pair]:
    """Add rules, and say what they have entered."""
    from tidings.provider import Provider

    check_master(master)
    with open_tidings(home, store) as tidings, Choice(tidings, spark, master) as choice:
        whose = resolved(tidings.store, owner)
        return Provider(tidings.store).add_rules(texts, whose, within=within, evaluate=choice)


def from_file(file: Path, home: Path, store: str | None) -> dict[str, str]:
    """The rules of a file; what is wrong is told with its place there."""
    from tidings.provider import Provider
    from tidings.repository.rule_files import read_rules

    rules = read_rules(file)
    with open_tidings(home, store) as tidings:
        rules.check(Provider(tidings.store).schema)
    return rules.texts


class Choice(ExitStack):
    """What evaluates new rules. Spark is started when it is needed, and stopped in the end."""

    def __init__(self, tidings: Tidings, wanted: bool | None, master: str | None) -> None:
        super().__init__()
        self._tidings, self._wanted, self._master = tidings, wanted, master
        self._on_spark: Any = None

    def __call__(self, known: Known, rules: Sequence[NamedRule]) -> Evaluated | None:
        from tidings.provider.evaluating import MANY, comparisons

        metadata = self._tidings.store.metadata
        new = metadata.new_triggering(known.schema, rules)
        count = metadata.count()
        asked = comparisons(new.values(), count)
        if self._wanted is False or not new or (self._wanted is None and asked < MANY):
            return None
        why = f"{plural(len(new), 'new triggering rule')} over {plural(count, 'resource')}"
        more = "" if self._wanted else f", {asked:,} comparisons; --no-spark leaves it to the store"
        output.note(f"on Spark: {why}{more}")
        found: Evaluated = self._started()(known, rules)
        return found

    def _started(self) -> Any:
        if self._on_spark is None:
            from tidings.spark.rule_evaluation import OnSpark

            session = open_spark(self._master, log=self._tidings.home / "spark.log")
            self.callback(close_spark, session)
            self._on_spark = self.enter_context(OnSpark(session, self._tidings.store, self._tidings.home))
        return self._on_spark

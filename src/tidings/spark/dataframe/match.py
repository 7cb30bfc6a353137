"""`match`: find the subscriptions that each row of a DataFrame satisfies.

    from tidings.spark import match

    matches = match(events, subscriptions)                       # publication, subscription, subscriber
    matches = match(events, subscriptions, id="order_id", explain=True, keep=["region"])
    matches = match(lines, "subscriptions.jsonl", value="body", format="xml", shape="grouped")

A transformation like any other: lazy, for batch and streaming DataFrames, on every master and through Spark Connect.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any, Literal

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidings.core.suggest import did_you_mean
from tidings.errors import InputError
from tidings.kinds import find_kind, media_types
from tidings.model import CONTENT_ID_BYTES
from tidings.spark.dataframe.match_stage import BODY, NUMBERS, PUBLICATION, MatchStage
from tidings.spark.dataframe.subscription_set import Subscriptions, SubscriptionsLike

Shape = Literal["rows", "grouped", "numbers"]
OnError = Literal["separate", "column", "drop", "fail"]
FORMATS = {"json": "application/json", "xml": "application/xml", "rdf": "text/turtle"}
ROW = "row"
VALUE, ID = "value", "id"
TEXT_TYPES = ("string", "binary")
PAIR_PROBLEM = "problem.subscription is not null"
"""Problems of a publication with one subscription, which only the group of that subscription has."""
OWN_COLUMNS = ("publication", "subscription", "subscriber", "explanation", "bindings", "matches", "problem")


def match(
    events: DataFrame,
    subscriptions: SubscriptionsLike,
    *,
    id: str | None = None,
    value: str | None = None,
    format: str | None = None,
    id_field: str = ID,
    explain: bool = False,
    bindings: bool = False,
    keep: Sequence[str] = (),
    shape: Shape = "rows",
    on_error: OnError = "separate",
    groups: int = 1,
) -> DataFrame:
    """Find the subscriptions that each row of `events` satisfies.

    `events` has a publication in each row: in the text or binary column `value`, written as `format` says (json, xml,
    rdf, or a media type), or, with the format `row`, in its typed columns. Without `value` and `format`, a text or
    binary column named `value` holds JSON, as `spark.read.text` and Kafka deliver it; else the columns are the event.
    Structs, arrays and maps become dotted, multi-valued paths.

    `subscriptions` are a `Subscriptions`, a DataFrame with `id`, `text` and perhaps `subscriber` and `language`, a
    file, a compiled index, a published location, or the URL of a store. They are compiled when `match` is called.

    The result has a row per match: `publication`, `subscription`, `subscriber`, on request `explanation` and
    `bindings`, and the columns of `events` that `keep` names. With the shape `grouped` it has a row per publication
    with an array `matches`; with the shape `numbers`, the fastest, `matches` are the numbers of subscriptions in
    `Subscriptions.numbers`. Publications are named by the column `id` (default: a column named `id`), else by the
    field `id_field` of the event, else by a digest of their content.

    Rejected publications are in the DataFrame `result.rejects`, rejected subscriptions in
    `result.rejected_subscriptions`. With `on_error="column"` the result itself has a row with a `problem` for each
    rejected publication; `"drop"` drops them, `"fail"` fails the job.

    With `groups` the segments of the index are divided into so many groups, and each group is matched by tasks of its
    own: for an index that is larger than the memory of one Python worker.
    """
    check_choice("shape", shape, Shape)
    check_choice("on_error", on_error, OnError)
    if groups > 1 and shape != "rows":
        raise InputError(
            "each group of segments gives its own rows",
            where="shape",
            received=f"{shape}, with groups={groups}",
            hint="use the shape rows, and group the result: .groupBy('publication')",
        )
    kept = check_keep(events, keep)
    compiled = Subscriptions.of(subscriptions)
    if shape == "numbers":
        _check_numbers(compiled, explain or bindings)
    source = PublicationColumns.of(events, value, format)
    publications = source.select(events, id, id_field, kept, compiled.attributes)
    named = ("subscription", "subscriber", *["explanation"] * explain, *["bindings"] * bindings)
    fields = NUMBERS if shape == "numbers" else named
    environment = compiled.environment(events.sparkSession)
    stages = [
        MatchStage(part, source.media_type, id_field, fields, kept, on_error == "fail")
        for part in environment.split(groups)
    ]
    types = [dict(events.dtypes)[name] for name in kept]
    staged = [publications.mapInArrow(stage, stage.output_schema(types)) for stage in stages]
    # Each group decodes every publication, so that only the problems of one group count.
    staged = [staged[0], *(each.where(f"matches is not null or {PAIR_PROBLEM}") for each in staged[1:])]
    result = reduce(DataFrame.unionByName, (_shape(each, shape, on_error, kept) for each in staged))
    result.rejects = reduce(DataFrame.unionByName, (_select_problems(each, kept) for each in staged))
    result.rejected_subscriptions = compiled.rejects_frame(events.sparkSession)
    return result


def _shape(staged: DataFrame, shape: Shape, on_error: OnError, keep: Sequence[str]) -> DataFrame:
    """Give the stage's output the shape that the caller wants."""
    problem = ["problem"] if on_error == "column" else []
    rows = staged if problem else staged.where("matches is not null")
    if shape != "rows":
        return rows.select("publication", "matches", *problem, *map(_column, keep))
    exploded = F.inline_outer("matches") if problem else F.inline("matches")
    return rows.select("publication", exploded, *problem, *map(_column, keep))


def _select_problems(staged: DataFrame, keep: Sequence[str]) -> DataFrame:
    return staged.where("problem is not null").select("publication", "problem.*", *map(_column, keep))


class PublicationColumns:
    """Where the publications of a DataFrame are: in one text or binary column, or in all its columns."""

    def __init__(self, value: str | None, media_type: str) -> None:
        self.value, self.media_type = value, media_type

    @classmethod
    def of(cls, events: DataFrame, value: str | None, format: str | None) -> PublicationColumns:
        """Determine the column and the media type from what the caller gives and what the DataFrame has."""
        types = dict(events.dtypes)
        if value is None and format != ROW and types.get(VALUE) in TEXT_TYPES:
            value = VALUE
        if value is None and format in (None, ROW):
            return cls(None, FORMATS["json"])
        if format == ROW:
            raise InputError(
                "a row format has no column for the publication",
                where="value",
                received=value,
                hint='leave out value, or say what the column holds: format="json"',
            )
        if value is None:
            texts = [name for name, kind in types.items() if kind in TEXT_TYPES]
            if len(texts) != 1:
                raise InputError(
                    "which column holds the publications?",
                    where="value",
                    received=", ".join(events.columns),
                    accepted="the name of a text or binary column",
                )
            value = texts[0]
        _check_column(events, "value", value)
        if types[value] not in TEXT_TYPES:
            raise InputError(
                "publications are text or bytes",
                where=f"value={value!r}",
                received=types[value],
                hint='leave out value to match the typed columns themselves, or use format="row"',
            )
        return cls(value, _media_type(format or "json"))

    def select(
        self,
        events: DataFrame,
        id: str | None,
        id_field: str,
        keep: Sequence[str],
        attributes: Sequence[str] | None,
    ) -> DataFrame:
        """Select what the match stage reads: id, body and the columns that are passed through."""
        if id is not None:
            _check_column(events, "id", id)
        body = _column(self.value) if self.value else self._row(events, attributes)
        name = self._name(events, id, id_field).cast("string").alias(PUBLICATION)
        return events.select(name, body.alias(BODY), *map(_column, keep))

    def _name(self, events: DataFrame, id: str | None, id_field: str) -> Any:
        """Return the column with the ids of publications; null where the match stage finds an id in the body."""
        named = id or (ID if ID in events.columns else None)
        if named is not None:
            return _column(named)
        if self.value is not None:
            return F.lit(None)
        if id_field in events.columns:
            return _column(id_field)
        # Of all columns: the body has only those that subscriptions test, and would be the same for different rows.
        return F.substring(F.sha2(F.to_json(F.struct("*")), 256), 1, 2 * CONTENT_ID_BYTES)

    def _row(self, events: DataFrame, attributes: Sequence[str] | None) -> Any:
        """Write the columns that some subscription tests as JSON. Measured: faster than our own columns to atoms."""
        names = events.columns
        if attributes is not None and not any(character in name for name in names for character in '."'):
            tested = {attribute.partition(".")[0] for attribute in attributes}
            names = [name for name in names if name in tested]
        return F.to_json(F.struct(*map(_column, names))) if names else F.lit("{}")


def _media_type(format: str) -> str:
    media_type = FORMATS.get(format, format)
    if find_kind(media_type) is None:
        known = (*FORMATS, ROW, *media_types())
        accepted, hint = ", ".join(known), did_you_mean(format, known)
        raise InputError("unknown format", where="format", received=format, accepted=accepted, hint=hint)
    return media_type


def check_keep(events: DataFrame, keep: Sequence[str]) -> tuple[str, ...]:
    """Return the columns to pass through; raise `InputError` if there is no such column, or its name is taken."""
    if isinstance(keep, str):
        raise InputError("keep is a list of column names", received=keep, hint=f"keep=[{keep!r}]")
    for name in keep:
        _check_column(events, "keep", name)
        if name in OWN_COLUMNS:
            raise InputError(
                "the result has a column of this name already",
                where="keep",
                received=name,
                hint=f"rename it first: events.withColumnRenamed({name!r}, 'event_{name}')",
            )
    return tuple(keep)


def _check_column(events: DataFrame, argument: str, name: str) -> None:
    if name not in events.columns:
        raise InputError(
            "the DataFrame has no such column",
            where=argument,
            received=name,
            accepted=", ".join(events.columns),
            hint=did_you_mean(name, events.columns),
        )


def _check_numbers(subscriptions: Subscriptions, explains: bool) -> None:
    if explains:
        raise InputError(
            "numbers have no explanations",
            where="shape",
            received="numbers, with explain or bindings",
            hint="use the shape grouped or rows",
        )
    if subscriptions.attributes is None:
        raise InputError(
            "numbers belong to one version of the subscriptions, and published ones may change",
            where="shape",
            received="numbers",
            hint="compile the subscriptions here, or use the shape grouped or rows",
        )


def check_choice(argument: str, given: str, choices: Any) -> None:
    known = choices.__args__
    if given not in known:
        hint = did_you_mean(str(given), known)
        raise InputError(
            "unknown value", where=argument, received=str(given), accepted=", ".join(known), hint=hint
        )


def _column(name: str) -> Any:
    """Return a column by its exact name, which may contain dots."""
    return F.col("`" + name.replace("`", "``") + "`")

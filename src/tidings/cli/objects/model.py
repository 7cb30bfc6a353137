"""`model check`, `show`, `diagram` and `triggers`: data models that define who is notified of a change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidings.cli import output
from tidings.cli.output import (
    Output,
    PictureOption,
    View,
    check_picture_format,
    exit_if_rejects,
    write_picture,
)
from tidings.core.text import plural
from tidings.errors import InputError

if TYPE_CHECKING:
    from tidings.objects.model.table_mapping import MappedModel
    from tidings.objects.outbox.database import ObjectDatabase
    from tidings.objects.outbox.installation import SchemaDifference
    from tidings.objects.propagation import Limits
    from tidings.objects.triggers.dialect import Dialect

ModelArgument = Annotated[
    str,
    typer.Argument(
        metavar="FILE|MODULE:BASE",
        help="A class diagram (`.puml`, `.xmi`, `.uml`), or a declarative base of SQLAlchemy: `shop.tables:Base`, "
        "`tables.py:Base`.",
    ),
]


@dataclass(frozen=True)
class PropagationLimits:
    """Limits for following a change: steps and subscribers."""

    max_steps: Annotated[
        int | None,
        typer.Option(
            min=0, metavar="N", help="Follow a change for at most N steps.", show_default="no limit"
        ),
    ] = None
    max_subscribers: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Notify at most N subscribers of a change, the first by class and key; notifications mention it.",
            show_default="no limit",
        ),
    ] = None

    def build(self) -> Limits:
        """Return the limits as the propagation takes them."""
        from tidings.objects.propagation import Limits

        return Limits(self.max_steps, self.max_subscribers)


def read_model(source: str) -> MappedModel:
    """Read a model, or raise all its errors. The readers are imported here: `tidings --help` does not need them."""
    from tidings.objects.readers import model_loader

    return model_loader.read_model(source)


def check(out: Output, model: ModelArgument) -> None:
    """Check a model, and print all errors with their places, or a summary.

    Examples:
      tidings model check university.puml
      tidings model check university.py:Base

    A class may be marked `subscriber`. An association may be marked `implicit` (objects at one end are notified of
    changes at the other end) and `propagates` (a change at one end is a change at the other end).
    """
    from tidings.objects.model.summary import list_marks, summarize_model

    checked = read_model(model).model
    marks = {
        mark: [each.name for each in checked.associations if mark in list_marks(each)]
        for mark in ("implicit", "propagates")
    }
    subscribers = [each.name for each in checked.classes.values() if each.subscriber]
    counts = {"classes": len(checked.classes), "associations": len(checked.associations)}
    out.print_record({**counts, "subscribers": subscribers, **marks}, summarize_model(checked))


def show(out: Output, model: ModelArgument) -> None:
    """Print the classes and associations of a model, the effects of their marks, and their tables.

    Examples:
      tidings model show university.xmi
      tidings model show university.puml --json
    """
    from tidings.objects.model.summary import list_association_rows, list_class_rows, list_records

    mapped = read_model(model)
    if out.as_json:
        for record in list_records(mapped):
            output.print_json(record)
        return
    output.print_table(("class", "", "attributes", "table"), list_class_rows(mapped))
    if mapped.model.associations:
        output.print_line("")
        output.print_table(("association", "", "", "stored in"), list_association_rows(mapped))


def diagram(
    model: ModelArgument,
    out: PictureOption = None,
    classes: Annotated[
        list[str] | None,
        typer.Option(
            "--class", metavar="NAME", help="Only this class and its associations; may be repeated."
        ),
    ] = None,
) -> None:
    """Draw a model in the colours of its marks: an SVG. Changes go up along the lines, to the subscribers.

    Examples:
      tidings model diagram university.puml --out university.svg
      tidings model diagram university.py:Base --class Course > course.svg
    """
    from tidings.objects.model.model_picture import build_model_picture

    check_picture_format(out)
    picture = build_model_picture(read_model(model).model, classes or ())
    write_picture(picture, out)


# `model triggers`.


class DialectName(StrEnum):
    """Databases for which triggers are generated."""

    SQLITE = "sqlite"
    POSTGRESQL = "postgresql"


ModelReference = Annotated[
    str, typer.Argument(metavar="FILE|MODULE:BASE", help="A model, as in `tidings model check`.")
]


def triggers(
    limits: PropagationLimits,
    out: Output,
    model: ModelReference,
    dialect: Annotated[
        DialectName | None, typer.Option(help="The database to write them for; URLs imply it.")
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="The file to write; standard output by default."),
    ] = None,
    install: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="Install them in this database: create, replace and drop as needed."
        ),
    ] = None,
    diff: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="Only list what --install would do; exit code 3 if there is something."
        ),
    ] = None,
    remove: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Remove everything that was installed there, including watches."),
    ] = None,
) -> None:
    """Write or install triggers with which a database itself finds the subscribers of a change.

    Examples:
      tidings model triggers university.puml --dialect postgresql --out triggers.sql
      tidings model triggers university.puml --install sqlite:///university.db
      tidings model triggers university.puml --diff postgresql://localhost/university
      tidings model triggers university.puml --install sqlite:///university.db --max-steps 5 --max-subscribers 10000

    They write the change, the subscribers to notify and the reasons into tables of the same database, in the
    transaction of the change. All their names begin with `tidings_`; nothing else is touched.
    """
    urls = [url for url in (install, diff, remove) if url is not None]
    if len(urls) > 1 or (urls and file is not None):
        accepted = "one of --out, --install, --diff and --remove"
        raise InputError("these exclude each other", where="model triggers", accepted=accepted)
    if remove is not None and limits != PropagationLimits():
        raise InputError("--remove has no limits", where="--remove", accepted="--remove alone")
    mapped = read_model(model)
    if not urls:
        _write_script(mapped, model, dialect, file, limits.build())
        return
    with _open_database(urls[0], dialect) as database:
        if install is not None:
            _install(database, mapped, limits.build(), out)
        elif diff is not None:
            _diff(database, mapped, limits.build(), out)
        else:
            _remove(database, out)


def _write_script(
    mapped: MappedModel, source: str, name: DialectName | None, file: Path | None, limits: Limits
) -> None:
    from tidings.objects.triggers.generator import render_script
    from tidings.objects.triggers.postgresql_dialect import PostgresqlDialect
    from tidings.objects.triggers.sqlite_dialect import SqliteDialect

    if name is None:
        accepted = "--dialect sqlite or --dialect postgresql, or --install URL"
        raise InputError("the kind of database is missing", where="--dialect", accepted=accepted)
    dialect = SqliteDialect() if name is DialectName.SQLITE else PostgresqlDialect()
    script = render_script(mapped, dialect, Path(source).name, limits)
    output.write_text(script, file, "the triggers", _count_triggers(mapped, dialect))


def _count_triggers(mapped: MappedModel, dialect: Dialect) -> str:
    from tidings.objects.triggers.generator import count_triggers, generate_schema

    return plural(count_triggers(generate_schema(mapped, dialect)), "trigger")


def _open_database(url: str, dialect: DialectName | None) -> AbstractContextManager[ObjectDatabase]:
    from tidings.objects.outbox.database import detect_dialect, open_database

    if dialect not in (None, detect_dialect(url)):
        raise InputError("the URL is of another kind of database", where="--dialect", received=dialect)
    return open_database(url)


DIFFERENCES: View[SchemaDifference] = View(
    "no differences",
    columns=(
        ("state", lambda difference: difference.state.value),
        ("what", lambda difference: difference.what.value),
        ("name", "name"),
        ("on", lambda difference: difference.on or "–"),
    ),
    record=lambda difference: {
        "state": difference.state.value,
        "what": difference.what.value,
        "name": difference.name,
        "on": difference.on,
    },
)


def _install(database: ObjectDatabase, mapped: MappedModel, limits: Limits, out: Output) -> None:
    from tidings.objects.model.summary import summarize_model
    from tidings.objects.outbox.installation import install_triggers

    differences = install_triggers(database, mapped, limits)
    if out.as_json:
        out.print_records(differences, DIFFERENCES)
        return
    count = _count_triggers(mapped, database.dialect)
    output.print_line(summarize_model(mapped.model), f"{count} {_describe_installation(differences)}")


def _describe_installation(differences: Sequence[SchemaDifference]) -> str:
    """Describe the changes, by names: a trigger of PostgreSQL and its function have one name."""
    from tidings.objects.outbox.installation import InstallationState
    from tidings.objects.triggers.dialect import SchemaObjectKind

    if not differences:
        return "were there already"
    all_missing = all(each.state is InstallationState.MISSING for each in differences)
    if all_missing and any(each.what is SchemaObjectKind.TABLE for each in differences):
        return "installed"
    counts = Counter({each.name: each.state for each in differences}.values())
    words = {
        InstallationState.MISSING: "new",
        InstallationState.DIFFERENT: "replaced",
        InstallationState.LEFT_OVER: "removed",
    }
    shown = ", ".join(f"{counts[state]} {word}" for state, word in words.items() if counts[state])
    return f"installed: {shown}"


def _diff(database: ObjectDatabase, mapped: MappedModel, limits: Limits, out: Output) -> None:
    from tidings.objects.outbox.installation import find_differences

    differences = find_differences(database, mapped, limits)
    if differences or out.as_json:
        out.print_records(differences, DIFFERENCES)
    else:
        output.print_line(f"{_count_triggers(mapped, database.dialect)}, as the model requires")
    exit_if_rejects(len(differences))


def _remove(database: ObjectDatabase, out: Output) -> None:
    from tidings.objects.outbox.installation import remove_triggers

    count, watches = remove_triggers(database)
    message = f"{plural(count, 'trigger')} removed, with the outbox and {plural(watches, 'watch')}"
    out.print_record({"triggers": count, "watches": watches}, message)

"""An open database that can be asked: what reading, watching and naming need of it, said once for both drivers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from tidings.errors import InputError
from tidings.objects.triggers.dialect import Dialect

INSTALL_COMMAND = "`tidings model triggers MODEL --install URL`"


class DatabaseConnection(ABC):
    """Values stand as $1, $2 in a statement, which both databases understand, and so never in its text.

    `refusal` is what the driver raises where a trigger of ours refuses something, `unfit` where a text cannot be a
    value of a column's type.
    """

    dialect: Dialect
    refusal: type[Exception]
    unfit: type[Exception]

    @abstractmethod
    def ask(self, sql: str, *values: str) -> list[tuple[Any, ...]]: ...

    @abstractmethod
    def do(self, sql: str, *values: str) -> int:
        """How many rows it made, changed or took away."""

    @abstractmethod
    def snapshot(self) -> AbstractContextManager[None]:
        """All that is asked meanwhile is of one moment, and nothing is changed."""

    @abstractmethod
    def columns(self, table: str) -> list[str]:
        """Those of a table; none if there is no such table."""

    def tables(self, names: Sequence[str]) -> list[str]:
        """Which of these tables are there."""
        return [name for name in names if self.columns(name)]

    def need_outbox(self) -> None:
        """Refused where none is installed, instead of the database's word about a table that nobody has heard of."""
        columns = self.columns("tidings_changes")
        if not columns:
            raise InputError("this database has no outbox", hint=f"{INSTALL_COMMAND} installs it")
        if "author_key" not in columns:
            raise InputError(
                "the outbox of this database is of an earlier version",
                hint=f"{INSTALL_COMMAND} renews it and keeps what is in it",
            )

"""Who watches what: rows of a table, which programs may write themselves, and whoever has a command or a page."""

from __future__ import annotations

from tidings.errors import InputError
from tidings.objects.definition import Watch
from tidings.objects.reasons import Object
from tidings.objects.triggers.asking import Asking
from tidings.schema.names import did_you_mean, safe

_SAME = "subscriber_class = $1 AND subscriber_key = $2 AND class = $3"
_ONE = f"{_SAME} AND key = $4"
_ALL = f"{_SAME} AND key IS NULL"


class Watching(Asking):
    """Subscribers are named by a class and a key here: `Object("Student", "3")`, also if a student is a person."""

    def watch(self, subscriber: Object, cls: str, key: str | None = None) -> bool:
        """From now on they are told about an object, or with no key about all of a class; False if they were already.

        That there is such an object is not asked: one may watch what is yet to come.
        """
        self.need_outbox()
        values, same = _values(subscriber, cls, key)
        row = "$1, $2, $3, NULL" if key is None else "$1, $2, $3, $4"
        insert = "INSERT INTO tidings_watches (subscriber_class, subscriber_key, class, key)"
        try:
            return bool(
                self.do(
                    f"{insert} SELECT {row} WHERE NOT EXISTS (SELECT 1 FROM tidings_watches WHERE {same})",
                    *values,
                )
            )
        except self.refusal as error:
            raise _refused(str(error).partition("\n")[0], subscriber, cls) from error

    def unwatch(self, subscriber: Object, cls: str, key: str | None = None) -> bool:
        """False if they did not watch it; of what was inserted twice, both go."""
        self.need_outbox()
        values, same = _values(subscriber, cls, key)
        return bool(self.do(f"DELETE FROM tidings_watches WHERE {same}", *values))

    def watches(self, subscriber: Object | None = None) -> list[Watch]:
        """Of all, or of one of them."""
        self.need_outbox()
        query = "SELECT DISTINCT subscriber_class, subscriber_key, class, key FROM tidings_watches"
        mine = "" if subscriber is None else " WHERE subscriber_class = $1 AND subscriber_key = $2"
        values = () if subscriber is None else (subscriber.family, str(subscriber.key))
        rows = sorted(self.ask(f"{query}{mine}", *values), key=lambda row: (row[:3], row[3] or ""))
        return [Watch(Object(family, who), cls, key) for family, who, cls, key in rows]


def _values(subscriber: Object, cls: str, key: str | None) -> tuple[tuple[str, ...], str]:
    values = (subscriber.family, str(subscriber.key), cls)
    return (values, _ALL) if key is None else ((*values, str(key)), _ONE)


def _refused(message: str, subscriber: Object, cls: str) -> InputError:
    """The trigger knows the model that it was made from: `tidings_watches.class: the model has Student, Course`."""
    column, _, said = message.partition(": ")
    what, received = ("no such class can be watched", cls)
    if column.endswith("subscriber_class"):
        what, received = "objects of this class cannot be told", subscriber.family
    accepted = said.removeprefix("the model has ").removeprefix("subscribers are ")
    hint = did_you_mean(received, accepted.split(", "))
    return InputError(what, received=safe(received), accepted=accepted, hint=hint)
